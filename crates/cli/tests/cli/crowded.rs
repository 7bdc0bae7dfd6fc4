//! Servers under clients that are silent or greedy, with few descriptors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gnarl_serve::{Client, ClientConfig};

use crate::common::{Bench, community, path, succeed};

/// Descriptors of a server: fewer than clients.
const DESCRIPTORS: usize = 64;
const SILENT: usize = 500;
const GREEDY: usize = 200;
/// Memory that a server is given for calls, and what it may take beside.
const MEMORY: u64 = 256 << 20;
const BESIDE: u64 = 256 << 20;

/// A server with few descriptors, ended with the test.
struct Crowded {
    child: Child,
    address: String,
}

impl Crowded {
    fn start(args: &[&str]) -> Self {
        let limited = format!("ulimit -n {DESCRIPTORS}; exec \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_gnarl")])
            .args(args)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell starts the binary");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut seen = String::new();
        let address = loop {
            let Some(Ok(line)) = lines.next() else { panic!("no address: {seen}") };
            if let Some((_, address)) = line.split_once(" at http://") {
                break address.to_string();
            }
            seen.push_str(&line);
        };
        // A full pipe would stop the server.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("the server listens")
    }

    /// Most bytes of memory so far.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    /// A client that waits less than silent ones may.
    fn client(&self) -> Client {
        let config = ClientConfig {
            deadline: Duration::from_secs(8),
            ..ClientConfig::new(format!("http://{}", self.address))
        };
        Client::connect(&config).unwrap()
    }
}

impl Drop for Crowded {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Calls `valid` ten times while as many threads as there are greedy clients do `greedy` again and again.
fn beside_greedy(valid: impl Fn(), greedy: impl Fn() + Sync) {
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..GREEDY {
            scope.spawn(|| {
                while !finished.load(Ordering::Relaxed) {
                    greedy();
                }
            });
        }
        let longest = (0..10).map(|_| {
            std::thread::sleep(Duration::from_millis(200));
            let start = Instant::now();
            let called = catch_unwind(AssertUnwindSafe(&valid));
            (called.is_ok(), start.elapsed())
        });
        let (are_answered, times): (Vec<bool>, Vec<Duration>) = longest.unzip();
        finished.store(true, Ordering::Relaxed);
        eprintln!("valid calls took at most {:?}", times.iter().max());
        assert!(are_answered.iter().all(|&is| is), "{are_answered:?} {times:?}");
    });
}

/// Predicts some nodes over a connection; status line and body.
fn predict(stream: &TcpStream, ids: usize) -> std::io::Result<(String, String)> {
    stream.set_read_timeout(Some(Duration::from_secs(8)))?;
    let body = serde_json::json!({ "ids": (0..ids).collect::<Vec<_>>() }).to_string();
    let head = format!("POST /nodes HTTP/1.1\r\nHost: here\r\nContent-Length: {}", body.len());
    (&*stream).write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut status = String::new();
    reader.read_line(&mut status)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[test]
fn parts_are_served_beside_silent_and_greedy_clients() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    succeed(&["partition", path(&graph), "--parts", "1", "--out", path(&parts)]);
    let memory = MEMORY.to_string();
    let server = Crowded::start(&["serve", path(&parts), "--memory", &memory, "--threads", "2"]);
    let few: Vec<u64> = (0..10).collect();
    let valid = |client: &Client| drop(client.part(0).features(&few).unwrap());
    let client = server.client();
    valid(&client);

    let silent: Vec<TcpStream> = (0..SILENT).map(|_| server.connect()).collect();
    // A new client needs a place of its own.
    (0..5).for_each(|_| valid(&server.client()));
    valid(&client);
    drop(silent);

    // 800 kB of ids for 6 MB of rows.
    let many: Vec<u64> = (0..100_000).map(|i| i % 2000).collect();
    // Some find no place in time: it is the valid calls that must.
    beside_greedy(|| valid(&client), || drop(server.client().part(0).features(&many)));
    let peak = server.peak();
    eprintln!("{} MiB of memory", peak >> 20);
    assert!(peak < MEMORY + BESIDE, "{} MiB", peak >> 20);
}

#[test]
fn a_model_is_served_beside_silent_and_greedy_clients() {
    let bench = Bench::new("[train]\nepochs = 1\n");
    bench.train(&[]);
    let server = Crowded::start(&["serve-model", path(&bench.run), "--deadline-ms", "8000"]);
    let valid = |stream: &TcpStream| {
        let (status, body) = predict(stream, 3).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status} {body}");
    };
    let stream = server.connect();
    valid(&stream);

    let silent: Vec<TcpStream> = (0..SILENT).map(|_| server.connect()).collect();
    (0..5).for_each(|_| valid(&server.connect()));
    valid(&stream);
    drop(silent);

    beside_greedy(|| valid(&stream), || drop(predict(&server.connect(), 2000)));
    let peak = server.peak();
    eprintln!("{} MiB of memory", peak >> 20);
    assert!(peak < MEMORY + BESIDE, "{} MiB", peak >> 20);
}
