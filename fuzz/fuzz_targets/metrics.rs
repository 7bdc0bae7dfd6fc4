//! Requests to the page of metrics of a run, over a connection: any bytes.
//!
//! Every answer is HTTP, and the page is there for the next client.
#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;

use gnarl_config::RunConfig;
use gnarl_fuzz::memory::within;
use gnarl_train::telemetry::Metrics;
use libfuzzer_sys::fuzz_target;

fn start() -> (SocketAddr, Metrics) {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = free.local_addr().expect("its address");
    drop(free);
    let mut config = RunConfig::default();
    let listen = toml::Value::Integer(address.port().into());
    config.output.metrics_listen = Some(listen.try_into().expect("an address"));
    (address, Metrics::start(&config, 0).expect("a page of metrics"))
}

static SERVED: LazyLock<(SocketAddr, Metrics)> = LazyLock::new(start);

fn answer(request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(SERVED.0)?;
    stream.write_all(request)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fuzz_target!(init: { LazyLock::force(&SERVED); }, |data: &[u8]| {
    let Ok(answer) = within(1 << 20, || answer(data)) else { return };
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "));
});
