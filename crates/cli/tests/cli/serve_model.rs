//! `gnarl serve-model`: predictions over HTTP.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::{Bench, fail, gnarl, path, run_file, succeed};

const RUN: &str = "[train]\nepochs = 4\n";

/// A server of a model, ended with the test.
struct Serving {
    child: Child,
    /// Address and port.
    address: String,
    encrypted: bool,
}

impl Serving {
    fn start(run: &Path, args: &[&str]) -> Self {
        let listen = ["serve-model", path(run), "--listen", "127.0.0.1:0"];
        let mut command = gnarl();
        command.args(listen).args(args).stderr(Stdio::piped()).stdout(Stdio::piped());
        if !args.contains(&"--deadline-ms") {
            // A busy machine may take longer than the default.
            command.args(["--deadline-ms", "60000"]);
        }
        let mut child = command.spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut seen = String::new();
        let uri = loop {
            let Some(Ok(line)) = lines.next() else { panic!("no address: {seen}") };
            if let Some((_, uri)) = line.split_once(" at http") {
                break uri.to_string();
            }
            seen.push_str(&line);
        };
        // A full pipe would stop the server.
        std::thread::spawn(move || lines.for_each(drop));
        let (scheme, address) = uri.split_once("://").expect("a URI");
        Self { child, address: address.into(), encrypted: scheme == "s" }
    }

    /// Status, headers and body of the answer to a request.
    fn request(&self, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let length = body.len();
        let text = format!(
            "{head}\r\nHost: here\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.into())
    }

    fn get(&self, place: &str) -> (u16, String) {
        let (status, _, body) = self.request(&format!("GET {place} HTTP/1.1"), "");
        (status, body)
    }

    fn post(&self, place: &str, body: &Value) -> (u16, Value) {
        let head = format!("POST {place} HTTP/1.1");
        let (status, _, body) = self.request(&head, &body.to_string());
        (status, serde_json::from_str(&body).expect("a JSON body"))
    }

    /// Rows of an answer that must be one.
    fn rows(&self, place: &str, body: &Value) -> Vec<Value> {
        let (status, answer) = self.post(place, body);
        assert_eq!(status, 200, "{answer}");
        answer["rows"].as_array().unwrap().clone()
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Waits for the end of a terminated server; its last line.
    fn end(mut self) -> Value {
        assert!(self.child.wait().unwrap().success());
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Rows of the CSV file that an inference writes, by their first `key` columns: the others.
fn inferred(run: &Path, args: &[&str], key: usize) -> HashMap<String, Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.csv");
    succeed(&[&["infer", path(run), "--out", path(&out)], args].concat());
    let text = std::fs::read_to_string(&out).unwrap();
    let row = |line: &str| {
        let cells: Vec<String> = line.split(',').map(String::from).collect();
        (cells[..key].join(" "), cells[key..].to_vec())
    };
    text.lines().skip(1).map(row).collect()
}

/// The values of an answered row beside its ids, lists as their elements.
fn values(row: &Value, keys: &[&str]) -> Vec<f64> {
    let columns = row.as_object().unwrap().iter().filter(|(name, _)| !keys.contains(&&***name));
    let numbers = |value: &Value| match value {
        Value::Array(all) => all.iter().map(|one| one.as_f64().unwrap()).collect(),
        one => vec![one.as_f64().unwrap()],
    };
    columns.flat_map(|(_, value)| numbers(value)).collect()
}

fn close(found: &[f64], expected: &[String]) -> bool {
    let expected: Vec<f64> = expected.iter().map(|cell| cell.parse().unwrap()).collect();
    let near = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-6 * other.abs().max(1.0);
    found.len() == expected.len() && found.iter().zip(&expected).all(near)
}

#[test]
fn answers_are_those_of_infer_whatever_they_are_batched_with() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let what = ["class", "probabilities", "logits", "embedding"];
    let all = inferred(&bench.run, &["--what", "classes,probabilities,logits,embeddings"], 1);
    let serving = Serving::start(&bench.run, &["--batch-ms", "20", "--deadline-ms", "60000"]);
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (serving, all) = (&serving, &all);
            scope.spawn(move || {
                for round in 0..5 {
                    // Of several sizes, in no order, some of them in requests of other threads too.
                    let ids: Vec<usize> = (0..=thread * 3)
                        .map(|i| (i * 677 + round * 31 + thread % 2) % 2000)
                        .collect();
                    let rows = serving.rows("/nodes", &json!({ "ids": ids, "what": what }));
                    assert_eq!(rows.len(), ids.len());
                    for (row, id) in rows.iter().zip(&ids) {
                        assert_eq!(row["id"], *id);
                        assert!(close(&values(row, &["id"]), &all[&id.to_string()]), "{row}");
                    }
                }
            });
        }
    });
    // By default the prediction; ids come back as they were given, in their order, repeated ones too.
    let rows = serving.rows("/nodes", &json!({ "ids": [7, "3", 7] }));
    let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, [&json!(7), &json!("3"), &json!(7)]);
    let names: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "class", "probability"]);
    assert_eq!(serving.rows("/nodes", &json!({ "ids": [] })).len(), 0);
    let (status, page) = serving.get("/metrics");
    assert_eq!(status, 200);
    let line = "gnarl_online_requests_total{endpoint=\"nodes\",status=\"200\"} 42";
    assert!(page.lines().any(|found| found == line), "{page}");
    assert!(page.contains("gnarl_online_seconds_bucket") && page.ends_with("# EOF\n"), "{page}");
    let (status, health) = serving.get("/health");
    let health: Value = serde_json::from_str(&health).unwrap();
    assert_eq!((status, &health["status"]), (200, &json!("ok")));
    assert_eq!(health["node_types"][0]["nodes"], 2000);
    assert_eq!(health["node_types"][0]["outputs"], json!(what));
}

#[test]
fn wrong_requests_are_told_why() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let serving = Serving::start(&bench.run, &["--max-ids", "3"]);
    for (place, body, status, text) in [
        ("/nodes", json!({ "ids": [5, 2000] }), 404, "unknown node id 2000"),
        ("/nodes", json!({ "ids": ["five"] }), 404, "unknown node id 'five'"),
        ("/nodes", json!({ "ids": [-1] }), 404, "unknown node id -1"),
        ("/nodes", json!({ "ids": [1.5] }), 400, "an id is an integer or a text"),
        ("/nodes", json!({ "ids": [1, 2, 3, 4] }), 400, "4 ids are more than 3"),
        ("/nodes", json!({ "ids": [1], "what": ["value"] }), 400, "no output 'value'"),
        ("/nodes", json!({ "ids": [1], "node_type": "film" }), 400, "unknown node_type 'film'"),
        ("/nodes", json!({ "id": [1] }), 400, "unknown field `id`"),
        ("/edges", json!({ "edges": [[1, 2]] }), 400, "the run predicts nodes"),
        ("/other", json!({}), 404, "no /other"),
    ] {
        let (found, answer) = serving.post(place, &body);
        let error = answer["error"].as_str().unwrap();
        assert!(found == status && error.contains(text), "{body}: {found} {answer}");
    }
    let (status, _, body) = serving.request("POST /nodes HTTP/1.1", "{\"ids\": [1,");
    assert!(status == 400 && body.contains("invalid body"), "{status} {body}");
    let (status, head, _) = serving.request("GET /nodes HTTP/1.1", "");
    assert!(status == 405 && head.contains("allow: "), "{head}");
    let long = format!("{{\"ids\": [\"{}\"]}}", "x".repeat(1 << 17));
    assert_eq!(serving.request("POST /nodes HTTP/1.1", &long).0, 413);
    assert_eq!(serving.rows("/nodes", &json!({ "ids": [1] })).len(), 1);
    let text = fail(&["serve-model", path(&bench.run), "--listen", "0.0.0.0:0"], 2);
    assert!(text.contains("requires a token and a certificate"), "{text}");
}

#[test]
fn ids_and_classes_have_the_names_of_the_input() {
    // Ids that ascend and others, integers and texts: each kind is looked up in another way.
    let kinds: [fn(usize) -> Value; 4] = [
        |v| json!(format!("node-{v}")),
        |v| json!(format!("node-{v:02}")),
        |v| json!(v * 3 + 5),
        |v| json!((v * 7 + 3) % 60 + 100),
    ];
    for (number, id) in kinds.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let text = |v: usize| id(v).to_string().replace('"', "");
        let mut edges = String::from("from,to\n");
        let mut nodes = String::from("name,x,kind,part\n");
        for v in 0..60 {
            edges += &format!("{},{}\n", text(v), text((v + 2) % 60));
            let (kind, part) = (["even", "odd"][v % 2], ["train", "valid", "test"][v / 2 % 3]);
            nodes += &format!("{},{}.5,{kind},{part}\n", text(v), v % 2);
        }
        let files = [("edges.csv", edges), ("nodes.csv", nodes)].map(|(name, text)| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name)
        });
        let graph = dir.path().join("graph");
        let words = "--src from --dst to --id name --features x --label kind --split part";
        let mut args =
            vec!["import", "csv", "--edges", path(&files[0]), "--nodes", path(&files[1])];
        args.extend(words.split(' '));
        succeed(&[&args[..], &["--symmetrize", "--out", path(&graph)]].concat());
        let run = dir.path().join("run");
        let rest =
            format!("[train]\nepochs = 30\nlr = 0.05\n[output]\ndir = '{}'\n", run.display());
        succeed(&["train", path(&run_file(dir.path(), &graph, &rest))]);
        let serving = Serving::start(&run, &[]);
        let ids: Vec<Value> = (0..60).rev().map(id).collect();
        let rows = serving.rows("/nodes", &json!({ "ids": ids }));
        for (v, row) in (0..60).rev().zip(&rows) {
            let expected = (id(v), json!(["even", "odd"][v % 2]));
            assert_eq!((&row["id"], &row["class"]), (&expected.0, &expected.1), "ids {number}");
        }
        for unknown in [json!("node-60"), json!(4), json!(9999)] {
            let (status, answer) = serving.post("/nodes", &json!({ "ids": [ids[0], unknown] }));
            let error = answer["error"].as_str().unwrap();
            assert!(status == 404 && error.contains("unknown node id"), "ids {number}: {answer}");
        }
    }
}

#[test]
fn tokens_are_required_of_all_requests() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let token = bench.dir.path().join("token");
    std::fs::write(&token, "0123abcd\n").unwrap();
    let serving = Serving::start(&bench.run, &["--token-file", path(&token)]);
    for place in ["/health", "/metrics", "/nowhere"] {
        assert_eq!(serving.get(place).0, 401);
    }
    let with = |token: &str| format!("POST /nodes HTTP/1.1\r\nAuthorization: Bearer {token}");
    let body = "{\"ids\": [1]}";
    let (status, head, text) = serving.request(&with("0123abce"), body);
    assert!(status == 401 && head.contains("www-authenticate: bearer"), "{head}");
    assert!(text.contains("the token is wrong"), "{text}");
    assert_eq!(serving.request(&with("0123abcd"), body).0, 200);
}

#[test]
fn overload_is_refused_at_once_and_all_answers_are_right() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let all = inferred(&bench.run, &["--what", "logits"], 1);
    let args = ["--queue", "1", "--batch-ms", "0", "--deadline-ms", "60000"];
    let serving = Serving::start(&bench.run, &args);
    let (answered, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..16usize {
            let (serving, all) = (&serving, &all);
            let (answered, refused) = (&answered, &refused);
            scope.spawn(move || {
                for round in 0..400 {
                    let enough = |count: &AtomicUsize| count.load(Ordering::Relaxed) > 20;
                    if enough(answered) && enough(refused) {
                        break;
                    }
                    let ids: Vec<usize> =
                        (0..200).map(|i| (i * 7 + thread * 100 + round) % 2000).collect();
                    let body = json!({ "ids": ids, "what": ["logits"] }).to_string();
                    let (status, head, text) = serving.request("POST /nodes HTTP/1.1", &body);
                    if status == 503 {
                        assert!(head.contains("retry-after: "), "{head}");
                        refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    assert_eq!(status, 200, "{text}");
                    answered.fetch_add(1, Ordering::Relaxed);
                    let answer: Value = serde_json::from_str(&text).unwrap();
                    for (row, id) in answer["rows"].as_array().unwrap().iter().zip(&ids) {
                        assert!(close(&values(row, &["id"]), &all[&id.to_string()]), "{row}");
                    }
                }
            });
        }
    });
    let (answered, refused) = (answered.into_inner(), refused.into_inner());
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
    let (_, page) = serving.get("/metrics");
    let line = format!("gnarl_online_refused_total{{reason=\"queue\"}} {refused}");
    assert!(page.lines().any(|found| found == line), "{page}");
}

#[test]
fn late_requests_are_not_computed() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    // Requests wait for others for longer than they may.
    let serving = Serving::start(&bench.run, &["--batch-ms", "600000", "--deadline-ms", "50"]);
    let (status, answer) = serving.post("/nodes", &json!({ "ids": [1] }));
    assert_eq!((status, &answer["error"]), (504, &json!("no answer within 50 ms")));
    serving.terminate();
    let summary = serving.end();
    assert_eq!((&summary["ids"], &summary["batches"]), (&json!(0), &json!(0)));
}

#[test]
fn a_signal_ends_the_server_when_accepted_requests_are_answered() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let args = ["--batch-ms", "600000", "--deadline-ms", "600000"];
    let serving = Serving::start(&bench.run, &args);
    // A request that waits for others, of which none comes: the end makes it a batch.
    let mut waiting = TcpStream::connect(&serving.address).unwrap();
    let body = "{\"ids\": [3, 1]}";
    let length = body.len();
    let head = format!("POST /nodes HTTP/1.1\r\nHost: here\r\nContent-Length: {length}");
    waiting.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    while !serving.get("/metrics").1.lines().any(|line| line == "gnarl_online_waiting 1") {
        std::thread::yield_now();
    }
    serving.terminate();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let address = serving.address.clone();
    let summary = serving.end();
    assert_eq!((&summary["ids"], &summary["batches"]), (&json!(2), &json!(1)));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn edges_of_a_link_run_have_the_scores_of_infer() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for entity in 0..30 {
        for (relation, step) in [("likes", 1), ("knows", 7)] {
            lines += &format!("e{entity}\t{relation}\te{}\n", (entity + step) % 30);
        }
    }
    let train = dir.path().join("train.tsv");
    std::fs::write(&train, &lines).unwrap();
    let graph = dir.path().join("graph");
    let test = dir.path().join("test.tsv");
    std::fs::write(&test, "e3\tlikes\te9\n").unwrap();
    let import = ["import", "triples", "--train", path(&train), "--test", path(&test)];
    succeed(&[&import[..], &["--out", path(&graph)]].concat());
    let run = dir.path().join("run");
    let rest = format!(
        "[task]\nkind = 'link-prediction'\n[model]\nname = 'rgcn'\nlayers = 1\nhidden = 8\n[embedding]\ndim = 8\n\
         [decoder]\nname = 'distmult'\n[negatives]\ncount = 4\n[sample]\nfanouts = [4]\nbatch_size = 32\n\
         [train]\nepochs = 2\n[output]\ndir = '{}'\n",
        run.display()
    );
    succeed(&["train", path(&run_file(dir.path(), &graph, &rest))]);
    let scores = inferred(&run, &["--edges", path(&train)], 3);
    let serving = Serving::start(&run, &["--batch-ms", "20", "--deadline-ms", "60000"]);
    let edges: Vec<Vec<&str>> =
        lines.lines().rev().map(|line| line.split('\t').collect()).collect();
    std::thread::scope(|scope| {
        for edges in edges.chunks(7) {
            let (serving, scores) = (&serving, &scores);
            scope.spawn(move || {
                let rows = serving.rows("/edges", &json!({ "edges": edges }));
                assert_eq!(rows.len(), edges.len());
                for (row, edge) in rows.iter().zip(edges) {
                    assert_eq!(json!([row["head"], row["relation"], row["tail"]]), json!(edge));
                    let found = values(row, &["head", "relation", "tail"]);
                    assert!(close(&found, &scores[&edge.join(" ")]), "{row}");
                }
            });
        }
    });
    let embeddings = inferred(&run, &["--what", "embeddings"], 1);
    let rows = serving.rows("/nodes", &json!({ "ids": ["e7", "e29"] }));
    assert!(close(&values(&rows[1], &["id"]), &embeddings["e29"]), "{rows:?}");
    for (edge, status, text) in [
        (json!(["e1", "e2"]), 400, "2 relations"),
        (json!(["e1", "hates", "e2"]), 404, "unknown relation 'hates'"),
        (json!(["e1", "likes", "e30"]), 404, "'e30'"),
        (json!(["e1"]), 400, "[head, relation, tail]"),
    ] {
        let (found, answer) = serving.post("/edges", &json!({ "edges": [edge] }));
        assert!(found == status && answer["error"].as_str().unwrap().contains(text), "{answer}");
    }
}

#[test]
fn sampled_neighbors_are_the_same_whatever_nodes_are_batched_with() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let exact = inferred(&bench.run, &["--what", "logits"], 1);
    let logits = |serving: &Serving, ids: &[usize]| -> Vec<Vec<f64>> {
        let rows = serving.rows("/nodes", &json!({ "ids": ids, "what": ["logits"] }));
        rows.iter().map(|row| values(row, &["id"])).collect()
    };
    let ids: Vec<usize> = (0..300).map(|i| i * 13 % 2000).collect();
    let full = Serving::start(&bench.run, &["--fanouts", "-1,-1"]);
    for (row, id) in logits(&full, &ids).iter().zip(&ids) {
        let expected = exact[&id.to_string()].iter().map(|cell| cell.parse::<f64>().unwrap());
        assert!(row.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-4), "{id}");
    }
    let sampled = Serving::start(&bench.run, &["--fanouts", "3,2"]);
    let together = logits(&sampled, &ids);
    for (row, id) in together.iter().zip(&ids).step_by(29) {
        let alone = &logits(&sampled, &[*id])[0];
        assert!(row.iter().zip(alone).all(|(one, other)| (one - other).abs() < 1e-6), "{id}");
    }
    let differs = |(row, id): (&Vec<f64>, &usize)| !close(row, &exact[&id.to_string()]);
    assert!(together.iter().zip(&ids).any(differs));
    let (status, answer) = sampled.post("/nodes", &json!({ "ids": [1], "what": ["embedding"] }));
    assert!(status == 400 && answer["error"].as_str().unwrap().contains("no output 'embedding'"));
    let text = fail(&["serve-model", path(&bench.run), "--fanouts", "3"], 2);
    assert!(text.contains("expected 2 entries"), "{text}");
}

#[test]
fn latencies_are_measured_at_a_rate() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let token = bench.dir.path().join("token");
    std::fs::write(&token, "0123abcd\n").unwrap();
    let token = ["--token-file", path(&token)];
    let serving = Serving::start(&bench.run, &[&token[..], &["--deadline-ms", "60000"]].concat());
    let url = format!("http://{}/", serving.address);
    let args = ["bench", "online", "--url", &url, "--rate", "200", "--seconds", "0.1"];
    let found = succeed(&[&args[..], &["--ids", "5"], &token].concat());
    assert_eq!((&found["requests"], &found["answered"]), (&json!(20), &json!(20)));
    assert!(found["p50_ms"].as_f64().unwrap() <= found["p99_ms"].as_f64().unwrap(), "{found}");
    serving.terminate();
    assert_eq!(serving.end()["ids"], 100);
    assert!(fail(&args, 1).contains(url.trim_start_matches("http://").trim_end_matches('/')));
}

#[test]
fn connections_are_encrypted_by_a_certificate() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let tls = gnarl_serve::Tls::self_signed(vec!["127.0.0.1".into()]).unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| bench.dir.path().join(name));
    std::fs::write(&files[0], &tls.certificate).unwrap();
    std::fs::write(&files[1], &tls.key).unwrap();
    let args = ["--tls-cert", path(&files[0]), "--tls-key", path(&files[1])];
    let serving = Serving::start(&bench.run, &args);
    assert!(serving.encrypted);
    let curl = Command::new("curl")
        .args(["--silent", "--cacert", path(&files[0]), "--data", "{\"ids\": [4]}"])
        .arg(format!("https://{}/nodes", serving.address))
        .output();
    let Ok(curl) = curl else {
        eprintln!("skipped: there is no curl");
        return;
    };
    let answer: Value = serde_json::from_slice(&curl.stdout).unwrap();
    assert_eq!(answer["rows"][0]["id"], 4);
    let args = ["--tls-cert", path(&files[1]), "--tls-key", path(&files[0])];
    let text = fail(&[&["serve-model", path(&bench.run)], &args[..]].concat(), 2);
    assert!(text.contains("invalid certificate or key"), "{text}");
}
