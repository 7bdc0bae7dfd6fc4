//! Requests to the server of a trained model, over a connection: any bytes.
//!
//! Every answer is HTTP, and none blames the server.
#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use gnarl_config::RunConfig;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::{fixture, scratch};
use gnarl_train::{Begin, run};
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 64 << 20;

/// Trains a model and serves it.
fn start() -> SocketAddr {
    // The server reads the folder for as long as the process lives.
    let folder = scratch::folder().keep();
    let mut config = RunConfig::default();
    config.dataset.path = folder.join("data");
    config.model.hidden = 4;
    config.train.workers = 1;
    config.train.epochs = 1;
    config.output.dir = folder.join("run");
    fixture::homogeneous(&config.dataset.path);
    run(&config, Begin::Fresh, &|_| {}).expect("a trained model");
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = free.local_addr().expect("its address");
    drop(free);
    let run_dir = config.output.dir.into_os_string();
    std::thread::spawn(move || {
        let listen = address.to_string();
        let words =
            ["gnarl".into(), "serve-model".into(), run_dir, "--listen".into(), listen.into()];
        gnarl_cli::run(words.to_vec())
    });
    while TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    address
}

static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(start);

fn answer(request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(*ADDRESS)?;
    stream.write_all(request)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fuzz_target!(init: { LazyLock::force(&ADDRESS); }, |data: &[u8]| {
    // A connection may be closed before all of it is sent, or no port be free for a moment.
    let Ok(answer) = within(MEMORY, || answer(data)) else { return };
    if answer.is_empty() {
        return;
    }
    let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
    let status = status.and_then(|digits| std::str::from_utf8(digits).ok());
    let status: u16 = status.and_then(|digits| digits.parse().ok()).expect("an answer in HTTP");
    // 503 and 504: the queue is full, or the answer late, as on a loaded machine.
    assert!(status < 500 || [501, 503, 504].contains(&status), "status {status}");
});
