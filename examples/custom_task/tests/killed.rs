//! The example as a process that is killed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn example(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-custom-task"));
    command.arg(folder).arg("12").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn losses(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("run/summary.json")).expect("the run ended");
    let start = text.find("\"losses\"").expect("losses");
    let end = start + text[start..].find(']').expect("a list");
    text[start..end].into()
}

#[test]
fn a_killed_run_goes_on_to_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (alone, killed) = (dir.path().join("alone"), dir.path().join("killed"));
    assert!(example(&alone).status().unwrap().success());

    let mut child = example(&killed).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !killed.join("run/checkpoint.safetensors").exists() {
        assert!(Instant::now() < deadline, "no checkpoint within two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!killed.join("run/summary.json").exists(), "it ended before it was killed");
    assert!(example(&killed).status().unwrap().success());
    assert_eq!(losses(&killed), losses(&alone));
    assert!(killed.join("run/report.html").exists());
}
