//! Files that become shorter while they are mapped.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::common::{Bench, gnarl};

#[test]
fn r5_a_file_that_becomes_shorter_ends_training_by_its_name() {
    let bench = Bench::new("[train]\nepochs = 100000\n");
    let mut child = gnarl()
        .args(bench.args(&[]))
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut seen = String::new();
    while !seen.contains("epoch 2") {
        assert!(stderr.read_line(&mut seen).unwrap() > 0, "it ended before: {seen}");
    }
    let features = bench.graph.join("_N.features.npy");
    OpenOptions::new().write(true).open(&features).unwrap().set_len(0).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1), "{rest}");
    assert!(rest.contains("_N.features.npy: the file became shorter"), "{rest}");
}
