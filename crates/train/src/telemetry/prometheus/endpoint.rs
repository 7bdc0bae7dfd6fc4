//! A minimal HTTP listener for one page.
//!
//! One thread serves one connection after the other and closes it. A slow or silent client has a
//! second, and keeps other clients waiting at most, never the training.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use gnarl_common::{Error, Kind, Result};

/// The text format of OpenMetrics.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Polling interval for connections.
const PAUSE: Duration = Duration::from_millis(50);
/// Timeout of a client's request, and again of the response.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest request, in bytes.
const LONGEST: usize = 8 << 10;
/// Most header fields of a request.
const FIELDS: usize = 64;

/// A listener that ends when dropped; the address is free then.
pub(super) struct Endpoint {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves `page` at `/metrics` of `address`.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the address cannot be had; [`Kind::Limit`] if no thread can be started.
    pub fn start(address: SocketAddr, page: impl Fn() -> String + Send + 'static) -> Result<Self> {
        let taken = |e: io::Error| {
            Error::usage(format!("cannot listen on {address}: {e}"))
                .hint("choose another port or address, or leave it out")
        };
        let listener = TcpListener::bind(address).map_err(taken)?;
        // Accepting must not block, or dropping would wait for a client.
        listener.set_nonblocking(true).map_err(taken)?;
        let (stop, stopped) = bounded(0);
        let thread = std::thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || serve(&listener, &stopped, page)).map_err(|e| {
            Error::new(Kind::Limit, format!("cannot start a thread for metrics: {e}"))
        })?;
        tracing::info!("metrics at http://{address}/metrics");
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends in any case; its panic, if any, has been printed.
            let _ = thread.join();
        }
    }
}

/// Serves clients until the other end of `stopped` is gone.
fn serve(listener: &TcpListener, stopped: &Receiver<()>, page: impl Fn() -> String) {
    loop {
        let pause = match listener.accept() {
            Ok((stream, _)) => {
                if let Err(e) = answer(stream, &page) {
                    tracing::debug!("a metrics client disconnected: {e}");
                }
                Duration::ZERO
            }
            // Also when descriptors run out: some may be free later.
            Err(_) => PAUSE,
        };
        if stopped.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Reads a request, responds, and closes the connection.
fn answer(mut stream: TcpStream, page: impl Fn() -> String) -> io::Result<()> {
    // Some systems pass the listener's mode on to its connections.
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, kind, body) = match Request::read(&mut stream)? {
        Request::Metrics => ("200 OK", FORMAT, page()),
        Request::Elsewhere => ("404 Not Found", "text/plain", "look at /metrics\n".into()),
        Request::Change => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
        Request::Malformed => ("400 Bad Request", "text/plain", "no HTTP request\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Metrics,
    Elsewhere,
    Change,
    Malformed,
}

impl Request {
    fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let start = Instant::now();
        let mut bytes = Vec::new();
        let mut buffer = [0; 1024];
        while bytes.len() < LONGEST {
            let left = PATIENCE.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut buffer)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                n => bytes.extend_from_slice(&buffer[..n]),
            }
            if let Some(request) = Self::parse(&bytes) {
                return Ok(request);
            }
        }
        Ok(Self::Malformed)
    }

    /// Parses the head of a request; none if it is incomplete.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(bytes) {
            Err(_) => return Some(Self::Malformed),
            Ok(status) if status.is_partial() => return None,
            Ok(_) => {}
        }
        let path = request.path.and_then(|path| path.split('?').next());
        Some(match (request.method, path) {
            (Some("GET"), Some("/metrics")) => Self::Metrics,
            (Some("GET"), _) => Self::Elsewhere,
            _ => Self::Change,
        })
    }
}
