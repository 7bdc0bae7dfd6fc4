//! Files that become shorter while they are mapped.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use gnarl_serve::{Client, ClientConfig};

use crate::common::{community, gnarl, path, succeed};

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
