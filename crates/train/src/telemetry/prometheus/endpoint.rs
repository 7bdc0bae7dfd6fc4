//! A minimal HTTP listener for metrics and the live page.
//!
//! Each connection has a thread of its own, and one request: a slow or silent client, which has a second, keeps neither
//! others waiting nor the training.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use gnarl_common::{Error, Kind, Result};

use super::events::Events;

/// The text format of OpenMetrics.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The live page: without files of its own, or of others.
const LIVE: &str = include_str!("live.html");
/// Permissions of that page in browsers: its own style and script, and requests to this address.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Polling interval for connections.
const PAUSE: Duration = Duration::from_millis(50);
/// Timeout of a client's request, and again of the response.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest request, in bytes.
const LONGEST: usize = 8 << 10;
/// Most header fields of a request.
const FIELDS: usize = 64;
/// Most connections at a time whose request is not read or not answered yet.
const MOST_WAITING: usize = 256;
/// Stack of a connection's thread, in bytes.
const STACK: usize = 256 << 10;

/// Pages of an endpoint.
pub(super) struct Pages {
    /// The text at `/metrics`.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// Events at `/events`, with a page at `/` that shows them.
    pub events: Option<Arc<Events>>,
}

/// A listener that ends when dropped; the address is free then.
pub(super) struct Endpoint {
    stop: Option<Sender<()>>,
    events: Option<Arc<Events>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves `pages` at `address`.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the address cannot be had; [`Kind::Limit`] if no thread can be started.
    pub fn start(address: SocketAddr, pages: Pages) -> Result<Self> {
        let taken = |e: io::Error| {
            Error::usage(format!("cannot listen on {address}: {e}"))
                .hint("choose another port or address, or leave it out")
        };
        let listener = TcpListener::bind(address).map_err(taken)?;
        // Accepting must not block, or dropping would wait for a client.
        listener.set_nonblocking(true).map_err(taken)?;
        let (stop, stopped) = bounded(0);
        let thread = std::thread::Builder::new().name("metrics".into());
        let events = pages.events.clone();
        let pages = Arc::new(pages);
        let thread = thread.spawn(move || serve(&listener, &stopped, &pages)).map_err(|e| {
            Error::new(Kind::Limit, format!("cannot start a thread for metrics: {e}"))
        })?;
        match events {
            Some(_) => tracing::info!("live page at http://{address}/, metrics at /metrics"),
            None => tracing::info!("metrics at http://{address}/metrics"),
        }
        Ok(Self { stop: Some(stop), events, thread: Some(thread) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(events) = &self.events {
            events.end();
        }
        if let Some(thread) = self.thread.take() {
            // The thread ends in any case; its panic, if any, has been printed.
            let _ = thread.join();
        }
    }
}

/// Serves clients until the other end of `stopped` is gone.
fn serve(listener: &TcpListener, stopped: &Receiver<()>, pages: &Arc<Pages>) {
    let waiting = Arc::new(AtomicUsize::new(0));
    loop {
        let pause = match listener.accept() {
            Ok((stream, _)) => {
                connect(stream, pages, &waiting);
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

/// Serves a client on a thread of its own; closes the connection if there are too many, or no thread can be had.
fn connect(stream: TcpStream, pages: &Arc<Pages>, waiting: &Arc<AtomicUsize>) {
    let place = Waiting::new(waiting);
    if waiting.load(Ordering::Relaxed) > MOST_WAITING {
        return;
    }
    let pages = pages.clone();
    let thread = std::thread::Builder::new().name("metrics client".into()).stack_size(STACK);
    let serve = move || {
        if let Err(e) = answer(stream, &pages, place) {
            tracing::debug!("a metrics client disconnected: {e}");
        }
    };
    if let Err(e) = thread.spawn(serve) {
        tracing::debug!("no thread for a metrics client: {e}");
    }
}

/// A connection that waits for its answer, counted while it does.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads a request, responds, and closes the connection, that of events when the run ends.
fn answer(mut stream: TcpStream, pages: &Pages, place: Waiting) -> io::Result<()> {
    // Some systems pass the listener's mode on to its connections.
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = Request::read(&mut stream)?;
    let (status, kind, body) = match (request, &pages.events) {
        (Request::Metrics, _) => ("200 OK", FORMAT, (pages.metrics)()),
        (Request::Live, Some(_)) => ("200 OK", "text/html; charset=utf-8", LIVE.into()),
        (Request::Events { last }, Some(events)) => match events.join() {
            Some(client) => {
                drop(place);
                let kind = "text/event-stream; charset=utf-8";
                stream.write_all(head("200 OK", kind, "").as_bytes())?;
                return client.serve(stream, last.as_deref());
            }
            None => ("503 Service Unavailable", "text/plain", "too many clients\n".into()),
        },
        (Request::Change, _) => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
        (Request::Malformed, _) => ("400 Bad Request", "text/plain", "no HTTP request\n".into()),
        _ => ("404 Not Found", "text/plain", "look at /metrics\n".into()),
    };
    let length = format!("Content-Length: {}\r\n", body.len());
    stream.write_all((head(status, kind, &length) + &body).as_bytes())
}

/// The head of a response, with further fields.
fn head(status: &str, kind: &str, fields: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{fields}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Security-Policy: {POLICY}\r\n\
         Connection: close\r\n\r\n"
    )
}

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Metrics,
    Live,
    /// Events after the last one that the client has.
    Events {
        last: Option<String>,
    },
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
        let field = request.headers.iter().find(|f| f.name.eq_ignore_ascii_case("last-event-id"));
        let last = field.and_then(|f| Some(std::str::from_utf8(f.value).ok()?.trim().to_string()));
        Some(match (request.method, path) {
            (Some("GET"), Some("/metrics")) => Self::Metrics,
            (Some("GET"), Some("/")) => Self::Live,
            (Some("GET"), Some("/events")) => Self::Events { last },
            (Some("GET"), _) => Self::Elsewhere,
            _ => Self::Change,
        })
    }
}
