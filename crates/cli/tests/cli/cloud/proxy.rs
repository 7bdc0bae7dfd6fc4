//! A way to a server that is cut off for a while.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Passes connections on to a server of this host, but for a while.
pub struct Proxy {
    pub port: u16,
    /// Connections refused.
    pub refused: Arc<AtomicUsize>,
}

impl Proxy {
    /// A way to `port` that is cut off for `pause` once `after` connections have been made.
    pub fn to(port: u16, after: usize, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), refused: Arc::default() };
        let refused = proxy.refused.clone();
        std::thread::spawn(move || {
            let mut cut = None;
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if number >= after {
                    let since = *cut.get_or_insert_with(Instant::now);
                    if since.elapsed() < pause {
                        refused.fetch_add(1, Ordering::SeqCst);
                        _ = stream.shutdown(Shutdown::Both);
                        continue;
                    }
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
                pass(&stream, &server);
                pass(&server, &stream);
            }
        });
        proxy
    }
}

/// Passes what `from` sends on to `to`, on a thread of its own.
fn pass(from: &TcpStream, to: &TcpStream) {
    let mut from = from.try_clone().unwrap();
    let mut to = to.try_clone().unwrap();
    std::thread::spawn(move || {
        _ = copy(&mut from, &mut to);
        _ = to.shutdown(Shutdown::Write);
    });
}
