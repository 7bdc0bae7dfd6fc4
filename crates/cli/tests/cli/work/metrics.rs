//! Metrics of each role.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Started, Stored};
use crate::common::{gnarl, path};
use crate::metrics::{free, listen, page, value};

/// The page at `address`, once `metric` is above `least`.
fn once(address: SocketAddr, metric: &str, least: f64) -> String {
    let start = Instant::now();
    loop {
        let found = page(address).unwrap_or_default();
        if value(&found, metric) > Some(least) {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{metric} above {least}: {found}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn each_role_tells_how_it_is_doing() {
    let stored = Stored::new();
    let file = path(&stored.bench.file);
    let [of_coordinator, of_worker] = free();
    let mut coordinator = gnarl();
    coordinator.args(["work", file, "--role", "coordinator", "--set", &stored.place]);
    coordinator.args(["--metrics-listen", &of_coordinator.to_string()]);
    let coordinator = Started::new(&mut coordinator, "coordinating at ");
    assert_eq!(value(&page(of_coordinator).unwrap(), "gnarl_batch_workers"), Some(0.0));
    let mut worker = stored.worker(&coordinator.uri, &[]);
    worker.args(["--metrics-listen", &of_worker.to_string()]);
    let _worker = Started::new(&mut worker, "prepares batches for ");
    once(of_coordinator, "gnarl_batch_workers", 0.0);

    let [of_run, _] = free();
    let join = format!("disaggregated.join={}", coordinator.uri);
    let _run = stored.start(1, &[&join, &listen(of_run), "train.epochs=100000"]);
    let found = once(of_run, "gnarl_epoch{rank=\"0\"}", 1.0);
    assert_eq!(value(&found, "gnarl_batch_workers{rank=\"0\"}"), Some(1.0), "{found}");
    let received = "gnarl_stage_seconds_total{rank=\"0\",stage=\"receive\"}";
    assert!(value(&found, received) > Some(0.0), "{found}");
    // 2 epochs of 10 batches.
    let found = once(of_worker, "gnarl_batches_total", 20.0);
    for total in ["read_bytes", "sent_bytes", "prepare_seconds", "load_seconds"] {
        assert!(value(&found, &format!("gnarl_{total}_total")) > Some(0.0), "{total}: {found}");
    }
    assert!(value(&found, "gnarl_batches_asked").is_some(), "{found}");
    assert!(value(&found, "process_resident_memory_bytes") > Some(0.0), "{found}");
}

#[test]
fn a_taken_address_ends_a_worker_before_it_joins() {
    let stored = Stored::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut worker = stored.worker("http://127.0.0.1:1", &[]);
    let output = worker.args(["--metrics-listen", &address]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--metrics-listen") && text.contains(&address), "{text}");
}
