//! The disk is full when a checkpoint is due.

use std::process::{Command, Stdio};

use super::{Divided, numbers};
use crate::common::{gnarl, path, succeed};

/// Of these models one checkpoint fits in the folder, but not a second beside it. Prints how the run
/// ended and what it left, and then the result of the one that goes on with more space.
const SCRIPT: &str = "
    mount -t tmpfs -o size=288k tmpfs \"$RUN\" || exit 77
    \"$@\" --restart
    echo $? $(ls \"$RUN\")
    mount -o remount,size=8m \"$RUN\"
    \"$@\" --resume
";

#[test]
fn a_full_disk_leaves_the_checkpoint_before_and_is_told() {
    let divided = Divided::new("epochs = 6");
    let args = divided.args(&divided.parts, "ranks", &["model.hidden=256"]);
    let run = &divided.bench.run;
    std::fs::create_dir(run).unwrap();
    let own = ["--user", "--map-root-user", "--mount"];
    let allowed = Command::new("unshare").args(own).arg("true").stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mounts of one's own are allowed here");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(own).args(["sh", "-c", SCRIPT, "sh"]).arg(gnarl().get_program());
    let output = command.args(&args).env("RUN", run).output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: no file system of one's own can be mounted here");
        return;
    }
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let lines: Vec<&str> = out.lines().collect();
    assert!(output.status.success() && lines.len() == 2, "{out}{err}");
    let left = "1 checkpoint.safetensors config.toml metrics.jsonl model.safetensors run.json";
    assert_eq!(lines[0], left, "{err}");
    let checkpoint = format!("writing the checkpoint: {}", path(&run.join("checkpoint")));
    assert!(err.contains(&checkpoint) && err.contains("No space left"), "{err}");
    assert!(err.contains("hint: ") && err.contains("--resume"), "{err}");

    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let undisturbed = succeed(&[&args[..], &["--restart"]].concat());
    assert_eq!(numbers(&serde_json::from_str(lines[1]).unwrap()), numbers(&undisturbed));
}
