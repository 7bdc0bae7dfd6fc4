//! Files that become shorter while they are mapped.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use gnarl_serve::{Client, ClientConfig};

use crate::common::{Bench, community, gnarl, path, succeed};

#[test]
fn r5_a_file_that_becomes_shorter_ends_a_server_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    succeed(&["partition", path(&graph), "--parts", "1", "--out", path(&parts)]);
    let mut child = gnarl()
        .args(["serve", path(&parts), "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut seen = String::new();
    while !seen.contains(" at http") {
        assert!(stderr.read_line(&mut seen).unwrap() > 0, "it ended before: {seen}");
    }
    let uri = format!("http{}", seen.rsplit_once(" at http").unwrap().1.trim());
    let config = ClientConfig { deadline: Duration::from_secs(3), ..ClientConfig::new(uri) };
    let part = Client::connect(&config).unwrap().part(0);
    part.features(&[1, 2, 3]).unwrap();
    let features = parts.join("part-0/_N.features.npy");
    OpenOptions::new().write(true).open(&features).unwrap().set_len(0).unwrap();
    part.features(&[1, 2, 3]).unwrap_err();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1), "{rest}");
    assert!(rest.contains("_N.features.npy: the file became shorter"), "{rest}");
}

#[test]
fn r5_a_file_that_loses_part_of_a_page_ends_a_run_by_its_name() {
    let bench = Bench::new("[train]\nepochs = 100000\neval_every = 1\n");
    let mut child = gnarl()
        .args(bench.args(&["sample.fanouts=[4,3]"]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let metrics = bench.run.join("metrics.jsonl");
    let start = Instant::now();
    while std::fs::read_to_string(&metrics).map_or(0, |lines| lines.lines().count()) < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "the run does not get on");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The rest of the page is zeros, and no signal tells of it.
    let offsets = bench.graph.join("_N._E._N.csc.indptr.npy");
    OpenOptions::new().write(true).open(&offsets).unwrap().set_len(4097).unwrap();
    let output = child_output(&mut child);
    assert!(!output.contains("panicked"), "{output}");
    assert!(output.contains("_N._E._N.csc.indptr.npy"), "{output}");
    assert_eq!(child.wait().unwrap().code(), Some(1), "{output}");
}

fn child_output(child: &mut std::process::Child) -> String {
    let mut text = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut text).unwrap();
    text
}
