//! Latencies of `gnarl serve-model` at a constant rate of requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result, ResultExt};
use serde_json::{Value, json};

/// `gnarl bench online`
#[derive(Debug, Args)]
pub struct OnlineBench {
    /// The server, such as http://127.0.0.1:8080; not over TLS
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// Requests per second
    #[arg(long, default_value_t = 100.0)]
    pub rate: f64,
    /// Ids of a request, drawn at random
    #[arg(long, default_value_t = 32)]
    pub ids: usize,
    /// Seconds of requests
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// The ids to draw from, one per line; by default the row numbers of the first node type
    #[arg(long, value_name = "FILE")]
    pub id_file: Option<PathBuf>,
    /// Connections: the most requests at a time
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// A file with the token of the server
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Requests are sent at their time whether or not those before are answered, and latencies count from that time, so that
/// a server that falls behind shows.
pub fn run(args: &OnlineBench) -> Result<Value> {
    let OnlineBench { rate, seconds, .. } = *args;
    let count = (rate * seconds).ceil();
    if !(rate > 0.0 && (1.0..=1e9).contains(&count)) {
        return Err(Error::usage("invalid --rate or --seconds: expected at least one request"));
    }
    let token = args.token_file.as_ref().map(|file| std::fs::read_to_string(file).at(file));
    let client = Client {
        address: args.url.trim_start_matches("http://").trim_end_matches('/').into(),
        token: token.transpose()?.map(|token| token.trim().into()),
    };
    let ids = ids(args, &client)?;
    let (next, start) = (AtomicU64::new(0), Instant::now());
    let one = || -> Result<Vec<(u16, Duration)>> {
        let (mut answers, mut stream) = (Vec::new(), None);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count as u64 {
                return Ok(answers);
            }
            let due = Duration::from_secs_f64(number as f64 / rate);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            let key = Key::new(number);
            let draw = |i: usize| {
                &ids[((key.unit(i as u64) * ids.len() as f64) as usize).min(ids.len() - 1)]
            };
            let drawn: Vec<&Value> = (0..args.ids).map(draw).collect();
            let body = json!({ "ids": drawn }).to_string();
            let (status, _) = client.ask(&mut stream, "POST /nodes", &body)?;
            answers.push((status, start.elapsed().saturating_sub(due)));
        }
    };
    let answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.connections.max(1)).map(|_| scope.spawn(one)).collect();
        let failed = |_| Error::new(Kind::Limit, "a thread of requests failed");
        let each = threads.into_iter().map(|thread| thread.join().map_err(failed)?);
        each.collect::<Result<Vec<_>>>()
    })?;
    let elapsed = start.elapsed().as_secs_f64();
    let answers = answers.concat();
    let with = |wanted: u16| answers.iter().filter(|(status, _)| *status == wanted).count();
    let mut latencies: Vec<f64> = answers
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, t)| t.as_secs_f64() * 1e3)
        .collect();
    latencies.sort_by(f64::total_cmp);
    // The least latency that so large a share of the answers does not exceed; none without answers.
    let quantile = |share: f64| {
        let rank = (share * latencies.len() as f64).ceil() as usize;
        latencies.get(rank.saturating_sub(1)).copied()
    };
    Ok(json!({
        "requests": answers.len(),
        "answered": latencies.len(),
        "refused": with(503),
        "late": with(504),
        "answers_per_second": latencies.len() as f64 / elapsed,
        "p50_ms": quantile(0.5),
        "p90_ms": quantile(0.9),
        "p99_ms": quantile(0.99),
        "max_ms": quantile(1.0),
    }))
}

/// The ids that requests draw from.
fn ids(args: &OnlineBench, client: &Client) -> Result<Vec<Value>> {
    let ids: Vec<Value> = match &args.id_file {
        Some(file) => std::fs::read_to_string(file).at(file)?.lines().map(Value::from).collect(),
        None => {
            let (status, health) = client.ask(&mut None, "GET /health", "")?;
            if status != 200 {
                return Err(Error::invalid(format!("{}: {health}", args.url)));
            }
            let health: Value = serde_json::from_str(&health)
                .map_err(|e| Error::invalid(format!("{}: {e}", args.url)))?;
            let nodes = health["node_types"][0]["nodes"].as_u64().unwrap_or(0);
            (0..nodes).map(Value::from).collect()
        }
    };
    match ids.is_empty() {
        true => {
            Err(Error::usage("there are no ids to draw from").hint("name a file with --id-file"))
        }
        false => Ok(ids),
    }
}

/// An HTTP client of one server.
struct Client {
    address: String,
    token: Option<String>,
}

impl Client {
    /// Status and body of the answer to a request. The connection `stream` is kept open.
    fn ask(
        &self,
        stream: &mut Option<BufReader<TcpStream>>,
        request: &str,
        body: &str,
    ) -> Result<(u16, String)> {
        let length = body.len();
        let token = self.token.as_ref();
        let token = token.map_or(String::new(), |t| format!("Authorization: Bearer {t}\r\n"));
        let text = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\n{token}Content-Length: {length}\r\n\r\n{body}",
            self.address
        );
        if let Some(open) = stream
            && let Ok(answer) = answer(open, &text)
        {
            return Ok(answer);
        }
        // The first request, or the server has closed an idle connection.
        let fresh = || -> std::io::Result<_> {
            let connected = TcpStream::connect(&self.address)?;
            connected.set_nodelay(true)?;
            let mut open = BufReader::new(connected);
            let answer = answer(&mut open, &text)?;
            Ok((open, answer))
        };
        let (open, answer) = fresh().at(&self.address)?;
        *stream = Some(open);
        Ok(answer)
    }
}

fn answer(stream: &mut BufReader<TcpStream>, request: &str) -> std::io::Result<(u16, String)> {
    stream.get_mut().write_all(request.as_bytes())?;
    let (mut status, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if status.is_none() {
            status = Some(line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0));
        } else if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status.unwrap_or(0), String::from_utf8_lossy(&body).into_owned()))
}
