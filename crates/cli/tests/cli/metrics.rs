//! Runs that serve metrics.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Bench, fail, gnarl};

/// Long enough to be asked; no test waits for its end.
const RUN: &str = "[train]\nepochs = 100000\nworkers = 2\n";
/// Longest wait for a page.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two addresses where nobody listens, one port after the other.
pub fn free() -> [SocketAddr; 2] {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut second = first;
        second.set_port(first.port().saturating_add(1));
        if TcpListener::bind(second).is_ok() {
            return [first, second];
        }
    }
}

/// The setting that serves there.
pub fn listen(address: SocketAddr) -> String {
    format!("output.metrics_listen={address}")
}

/// The page served there.
pub fn page(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: run\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

/// A run that ends with the test.
pub struct Running(pub Child);

impl Running {
    /// The page, once it satisfies `ready`.
    pub fn page(&mut self, address: SocketAddr, ready: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(page) = page(address).ok().filter(|page| ready(page)) {
                return page;
            }
            assert!(self.0.try_wait().unwrap().is_none(), "the run ended before");
            assert!(Instant::now() < until, "not the page that is waited for");
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The value of a metric with these labels.
pub fn value(page: &str, metric: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(metric)?.trim().parse().ok())
}

#[test]
fn a_run_tells_how_each_rank_is_doing() {
    let bench = Bench::new(RUN);
    for strategy in ["gradient", "average"] {
        let [address, _] = free();
        let (listen, strategy) = (listen(address), format!("train.strategy={strategy}"));
        let args = bench.args(&[&listen, &strategy, "partition.parts=2"]);
        let mut run = gnarl();
        run.args(args).arg("--restart").stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = Running(run.spawn().unwrap());
        let ready = |page: &str| value(page, "gnarl_epoch{rank=\"1\"}") >= Some(2.0);
        let page = run.page(address, ready);
        for rank in 0..2 {
            for (metric, least) in metrics(rank) {
                assert!(value(&page, &metric) > Some(least), "{strategy}: {metric}\n{page}");
            }
        }
        let steps = "gnarl_steps_total{rank=\"1\"}";
        let before = value(&page, steps);
        run.page(address, |page| value(page, steps) > before);
    }
}

/// Metrics of a rank, and what they are above after some epochs.
fn metrics(rank: usize) -> Vec<(String, f64)> {
    let of = |name: &str, labels: &str| format!("gnarl_{name}{{rank=\"{rank}\"{labels}}}");
    let plain = ["sampled_edges_total", "seeds_total", "steps_total", "training_loss"];
    // Neither strategy exchanges columns.
    let stages =
        ["schedule", "sample", "fetch", "compact", "wait", "compute", "reduce", "evaluate"];
    let stage = |stage| of("stage_seconds_total", &format!(",stage=\"{stage}\""));
    let mut all: Vec<_> = plain.iter().map(|name| (of(name, ""), 0.0)).collect();
    all.extend(stages.into_iter().map(|name| (stage(name), 0.0)));
    all.push((of("validation_score", ",metric=\"accuracy\""), 0.25));
    all.push((of("epochs_planned", ""), 99_999.0));
    let process = ["process_resident_memory_bytes", "process_open_fds", "gnarl_start_time_seconds"];
    all.extend(process.map(|name| (name.into(), 0.0)));
    all
}

#[test]
fn a_taken_address_ends_the_run_before_it_begins() {
    let bench = Bench::new(RUN);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = fail(&bench.args(&[&listen(address)]), 2);
    assert!(text.contains(&format!("output.metrics_listen: cannot listen on {address}")), "{text}");
    assert!(!bench.run.exists(), "nothing is written");
    let text = fail(&bench.args(&["output.metrics_listen=0"]), 2);
    assert!(text.contains("expected a port above 0"), "{text}");
}
