//! Serving parts to other processes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::common::{community, fail, gnarl, path, succeed};
use serde_json::Value;
use tempfile::TempDir;

/// What a Flight client of another language does: lists, reads, gathers, samples, and errs.
const CLIENT: &str = include_str!("serve_client.py");

fn parts(dir: &TempDir, layout: &[&str]) -> std::path::PathBuf {
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--parts", "2", "--out", path(&parts)];
    succeed(&[&cut[..], layout].concat());
    parts
}

/// A server, ended with the test.
pub struct Serving(Child);

impl Serving {
    /// Starts `gnarl serve`; also where it is.
    pub fn start(args: &[&str]) -> (Self, String) {
        let mut child =
            gnarl().arg("serve").args(args).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let stderr = child.as_mut().expect("the binary starts").stderr.take().expect("piped");
        let serving = Self(child.expect("the binary starts"));
        let mut seen = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if let Some((_, uri)) = line.split_once(" at http") {
                return (serving, format!("http{uri}"));
            }
            seen.push_str(&line);
        }
        panic!("no address: {seen}");
    }

    /// Ends it as a job manager does; its last line.
    fn end(mut self) -> Value {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
        let mut out = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_server_says_where_it_is_and_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let parts = parts(&dir, &[]);
    let (serving, uri) = Serving::start(&[path(&parts), "--part", "1", "--listen", "127.0.0.1:0"]);
    assert!(uri.starts_with("http://127.0.0.1:"), "{uri}");
    let summary = serving.end();
    assert_eq!(summary["parts"][0]["part"], 1);
    assert_eq!(summary["parts"][0]["requests"], 0);
}

#[test]
fn what_cannot_be_served_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let parts = parts(&dir, &[]);
    let text = fail(&["serve", path(&parts), "--part", "2"], 2);
    assert!(text.contains("there is no part 2, only 2"), "{text}");
    let text = fail(&["serve", path(&parts), "--listen", "0.0.0.0:0"], 2);
    assert!(text.contains("requires a token and a certificate"), "{text}");
    let token = dir.path().join("token");
    std::fs::write(&token, "two words\n").unwrap();
    let text = fail(&["serve", path(&parts), "--token-file", path(&token)], 2);
    assert!(text.contains("invalid token"), "{text}");
    let text = fail(&["serve", path(&parts), "--token-file", "/no/such/file"], 1);
    assert!(text.contains("/no/such/file"), "{text}");
    let text = fail(&["serve", path(dir.path())], 1);
    assert!(text.contains("partition.json"), "{text}");
}

/// Needs a Python with `pyarrow`, named by `GNARL_PYTHON`.
#[test]
fn pyarrow_is_a_client() {
    let Ok(python) = std::env::var("GNARL_PYTHON") else {
        eprintln!("skipped: GNARL_PYTHON does not name a Python with pyarrow");
        return;
    };
    let token = "0123abcd";
    for layout in [&[][..], &["--layout", "vertex-cut", "--algorithm", "adadne"]] {
        let dir = tempfile::tempdir().unwrap();
        let parts = parts(&dir, layout);
        let file = dir.path().join("token");
        std::fs::write(&file, format!("{token}\n")).unwrap();
        let args = [path(&parts), "--listen", "127.0.0.1:0", "--token-file", path(&file)];
        let (serving, uri) = Serving::start(&args);
        let uri = uri.replace("http://", "grpc://");
        let graph = dir.path().join("graph");
        let args = ["-c", CLIENT, &uri, token, path(&graph), path(&parts)];
        let output = Command::new(&python).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        let summary = serving.end();
        let requests = |part: usize| summary["parts"][part]["requests"].as_u64().unwrap();
        assert!(requests(0) > 0 && requests(1) > 0, "{summary}");
    }
}
