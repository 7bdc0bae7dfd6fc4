use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use gnarl_common::Kind;
use gnarl_config::Listen;

use super::*;
use crate::evaluation::Scores;
use crate::telemetry::{EpochRecord, Stages, Tally};

/// Counters and gauges of two ranks, the second twice as far as the first.
fn filled(metrics: &Metrics) -> String {
    for rank in 0..2 {
        let meter = metrics.meter(rank);
        let times = 1.0 + rank as f64;
        let stages = Stages { sample: 0.25 * times, compute: 0.5, ..Stages::default() };
        let before = Tally { edges: 40, seeds: 10, stages, ..Tally::default() };
        let mut after = before;
        after.edges += 7 * (1 + rank as u64);
        after.seeds += 3;
        after.stages.compute += times;
        meter.step(&after.since(&before));
        meter.spent(Stages { evaluate: 4.0, ..Stages::default() });
        let valid = Scores::from([("accuracy".into(), 0.75)]);
        let batch_workers = Some(2);
        let record = EpochRecord {
            epoch: 3,
            loss: 1.5,
            lr: 0.5,
            valid,
            batch_workers,
            ..EpochRecord::default()
        };
        meter.epoch(&record);
    }
    metrics.board.page()
}

fn unserved() -> Metrics {
    Metrics::start(&RunConfig::default(), 0).unwrap()
}

/// A run that is to listen where nobody does.
fn served() -> (RunConfig, SocketAddr) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = RunConfig::default();
    config.output.metrics_listen = Listen::try_from(toml::Value::from(address.to_string())).ok();
    (config, address)
}

/// The response to `request`.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Names of the metrics on a page.
fn names(page: &str) -> BTreeSet<&str> {
    let values = page.lines().filter(|line| !line.starts_with('#'));
    values.filter_map(|line| line.split(['{', ' ']).next()).collect()
}

#[test]
fn ranks_have_numbers_of_their_own() {
    let page = filled(&unserved());
    for line in [
        "gnarl_epoch{rank=\"0\"} 3",
        "gnarl_epochs_planned{rank=\"1\"} 100",
        "gnarl_training_loss{rank=\"0\"} 1.5",
        "gnarl_learning_rate{rank=\"1\"} 0.5",
        "gnarl_validation_score{rank=\"0\",metric=\"accuracy\"} 0.75",
        "gnarl_stage_seconds_total{rank=\"0\",stage=\"compute\"} 1.0",
        "gnarl_stage_seconds_total{rank=\"1\",stage=\"compute\"} 2.0",
        "gnarl_stage_seconds_total{rank=\"1\",stage=\"sample\"} 0.0",
        "gnarl_stage_seconds_total{rank=\"1\",stage=\"evaluate\"} 4.0",
        "gnarl_sampled_edges_total{rank=\"0\"} 7",
        "gnarl_sampled_edges_total{rank=\"1\"} 14",
        "gnarl_seeds_total{rank=\"1\"} 3",
        "gnarl_steps_total{rank=\"1\"} 1",
        concat!("gnarl_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(page.lines().any(|l| l == line), "{line}\n{page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
    let types = page.lines().filter(|l| l.starts_with("# TYPE"));
    let described: BTreeSet<_> = types.clone().collect();
    assert_eq!(types.count(), described.len(), "each metric is described once");
}

#[test]
fn what_is_not_known_yet_is_not_shown() {
    let metrics = unserved();
    metrics.meter(0);
    let page = metrics.board.page();
    assert!(page.contains("gnarl_steps_total{rank=\"0\"} 0"), "{page}");
    assert!(!page.contains("gnarl_training_loss{"), "{page}");
}

#[test]
fn only_the_page_is_served() {
    let (config, address) = served();
    let metrics = Metrics::start(&config, 0).unwrap();
    filled(&metrics);
    let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"));
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(names(body).contains("gnarl_steps_total"), "{body}");
    for (request, status) in [
        ("GET /metrics?of=all HTTP/1.0\r\n\r\n", "200"),
        ("GET / HTTP/1.1\r\n\r\n", "200"),
        ("GET /live.html HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics/../etc HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("no request\r\n\r\n", "400"),
        (&format!("{:x<1$}", "GET /metrics HTTP/1.1\r\nLong: ", 8 << 10), "400"),
    ] {
        let answer = ask(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
}

/// A client of events that has read the head of the response.
fn follow(address: SocketAddr, field: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET /events HTTP/1.1\r\n{field}\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    reader
}

/// The next event: its lines.
fn event(reader: &mut impl BufRead) -> Vec<String> {
    let lines = reader.lines().map(Result::unwrap);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn epochs_are_events_until_the_run_ends() {
    let (config, address) = served();
    let metrics = Metrics::start(&config, 0).unwrap();
    let [first, second] = [0, 1].map(|rank| metrics.meter(rank));
    let tell = |epoch: usize| {
        let valid = Scores::from([("accuracy".into(), 0.5)]);
        let record = EpochRecord { epoch, loss: 0.25, lr: 0.5, valid, ..EpochRecord::default() };
        [&first, &second].into_iter().for_each(|meter| meter.epoch(&record));
    };
    tell(1);
    let mut client = follow(address, "");
    let found = event(&mut client);
    let run = found[0].strip_suffix("-0").unwrap().to_string();
    let data: serde_json::Value =
        serde_json::from_str(found[1].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(
        (&data["epoch"], &data["epochs"], &data["loss"]),
        (&1.into(), &100.into(), &0.25.into())
    );
    assert_eq!(data["valid"]["accuracy"], 0.5);
    tell(2);
    assert_eq!(event(&mut client)[0], format!("{run}-1"), "one of the ranks sends each epoch");
    tell(3);
    let mut again = follow(address, &format!("Last-Event-{}-1\r\n", run.replace("id", "ID")));
    for client in [&mut client, &mut again] {
        assert_eq!(event(client)[0], format!("{run}-2"));
    }
    drop(metrics);
    for mut client in [client, again] {
        assert_eq!(event(&mut client), ["event: end", "data: {}"]);
        assert_eq!(client.read_line(&mut String::new()).unwrap(), 0, "the connection is closed");
    }
}

#[test]
fn clients_that_read_nothing_keep_nobody_waiting() {
    let (config, address) = served();
    let metrics = Metrics::start(&config, 0).unwrap();
    let meter = metrics.meter(0);
    let clients: Vec<_> = (0..events::MOST_CLIENTS).map(|_| follow(address, "")).collect();
    assert!(ask(address, "GET /events HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    // More than all buffers of the connections take.
    let verdict = EpochRecord::default();
    (1..=20_000).for_each(|epoch| meter.epoch(&EpochRecord { epoch, ..verdict.clone() }));
    assert!(
        ask(address, "GET /metrics HTTP/1.1\r\n\r\n").contains("gnarl_epoch{rank=\"0\"} 20000")
    );
    drop((silent, clients));
}

#[test]
fn the_live_page_asks_nobody_else() {
    let page = include_str!("live.html").replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("://") && !page.contains(" src="), "{page}");
    let (config, address) = served();
    let _metrics = Metrics::start(&config, 0).unwrap();
    let answer = ask(address, "GET / HTTP/1.1\r\n\r\n");
    assert!(
        answer.contains("default-src 'none'") && answer.contains("<!DOCTYPE html>"),
        "{answer}"
    );
}

#[test]
fn silent_clients_stop_neither_others_nor_the_end() {
    let (config, address) = served();
    let metrics = Metrics::start(&config, 0).unwrap();
    let _silent = TcpStream::connect(address).unwrap();
    assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").contains("gnarl_build_info"));
    let _silent = TcpStream::connect(address).unwrap();
    drop(metrics);
    TcpListener::bind(address).expect("the address is free again");
}

#[test]
fn a_taken_address_is_named() {
    let (config, address) = served();
    let _first = Metrics::start(&config, 0).unwrap();
    let error = Metrics::start(&config, 0).err().expect("taken");
    assert_eq!(error.kind(), Kind::Usage);
    let text = error.to_string();
    let said = format!("output.metrics_listen: cannot listen on {address}: ");
    assert!(text.starts_with(&said) && text.contains("hint: "), "{text}");
}

/// Every text under one of `keys`, however deep.
fn texts<'a>(value: &'a serde_json::Value, keys: &[&str]) -> Vec<&'a str> {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match value.as_str() {
                Some(text) if keys.contains(&key.as_str()) => vec![text],
                _ => texts(value, keys),
            })
            .collect(),
        serde_json::Value::Array(values) => values.iter().flat_map(|v| texts(v, keys)).collect(),
        _ => vec![],
    }
}

/// The metrics in a query: words before a selector, and any with our prefix.
fn queried(query: &str) -> BTreeSet<&str> {
    let ours = ["gnarl_", "process_"];
    let mut rest = query;
    let mut found = BTreeSet::new();
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        if ours.iter().any(|prefix| word.starts_with(prefix)) || after.starts_with('{') {
            found.insert(word);
        }
        rest = after;
    }
    found
}

#[test]
fn the_dashboard_asks_for_what_is_served() {
    let text = include_str!("../../../../../etc/grafana/gnarl.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    let page = filled(&unserved());
    let served = names(&page);
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.iter().all(|panel| !texts(panel, &["expr"]).is_empty()), "empty panels");
    for query in texts(&dashboard, &["expr", "definition"]) {
        let queried = queried(query);
        assert!(!queried.is_empty() && queried.is_subset(&served), "{query}: {queried:?}");
    }
    assert!(dashboard["uid"].is_string());
    let sources = texts(&dashboard, &["uid"]).into_iter().filter(|uid| uid.starts_with('$'));
    assert!(sources.count() > panels.len(), "panels take their data from the variable");
}

#[test]
fn the_documentation_has_every_metric() {
    let text = include_str!("../../../../../docs/cluster.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.collect::<BTreeSet<_>>(), names(&filled(&unserved())));
}
