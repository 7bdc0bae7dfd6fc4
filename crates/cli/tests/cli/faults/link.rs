//! The link to a server is cut for a while.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use super::{Divided, Run, numbers};
use crate::common::path;
use crate::serve::Serving;

const CUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// A link to a server: nothing gets through while it is cut, in either direction, and no connection is
/// closed.
struct Link {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Link {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, cut) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_cut = cut.clone();
        spawn(move || {
            loop {
                wait_while(&is_cut);
                let (near, _) = listener.accept().unwrap();
                wait_while(&is_cut);
                let Ok(far) = TcpStream::connect(server) else { continue };
                let pair = (near.try_clone().unwrap(), far.try_clone().unwrap());
                for (from, to) in [(near, far), (pair.1, pair.0)] {
                    let is_cut = is_cut.clone();
                    spawn(move || carry(from, to, &is_cut));
                }
            }
        });
        Self { address, cut }
    }

    fn cut_for(&self, time: Duration) {
        self.cut.store(true, Ordering::SeqCst);
        sleep(time);
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn wait_while(cut: &AtomicBool) {
    while cut.load(Ordering::SeqCst) {
        sleep(PAUSE);
    }
}

/// Carries bytes until either end closes.
fn carry(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    to.set_nodelay(true).unwrap();
    let mut bytes = [0; 1 << 14];
    loop {
        let count = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        wait_while(cut);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(std::net::Shutdown::Both));
}

#[test]
fn a_link_cut_for_ten_seconds_changes_no_number() {
    cut_for_ten_seconds(&Divided::new("epochs = 30\nworkers = 2\ndeadline_seconds = 60"));
}

#[test]
fn a_link_to_target_edges_cut_for_ten_seconds_changes_no_number() {
    let train = "epochs = 20\nworkers = 2\ndeadline_seconds = 60";
    cut_for_ten_seconds(&Divided::links(train, &["--algorithm", "spring"]));
}

#[test]
fn a_link_to_typed_parts_cut_for_ten_seconds_changes_no_number() {
    cut_for_ten_seconds(&Divided::typed("epochs = 30\nworkers = 2\ndeadline_seconds = 60"));
}

fn cut_for_ten_seconds(divided: &Divided) {
    let (_server, uri) =
        Serving::start(&[path(&divided.parts), "--part", "1", "--listen", "127.0.0.1:0"]);
    let link = Link::to(uri.trim_start_matches("http://").parse().unwrap());
    let servers = format!("[\"http://{}\"]", link.address);
    let args = divided.args(&divided.only(0), &servers, &["sample.method=exact"]);
    let undisturbed = numbers(&Run::start(divided, &args).result());

    std::fs::remove_dir_all(&divided.bench.run).unwrap();
    let mut run = Run::start(divided, &[&args[..], &["--restart".into()]].concat());
    run.trains(3);
    link.cut_for(CUT);
    run.trains(3);
    assert_eq!(numbers(&run.result()), undisturbed);
}
