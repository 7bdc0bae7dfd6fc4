//! The disk is full when a checkpoint is due.

use std::process::{Command, Stdio};

use super::{Divided, numbers};
use crate::common::{gnarl, path, succeed};

/// Of these models one checkpoint fits in the folder, but not a second beside it. Prints how the run
/// ended and what it left, and then the result of the one that goes on with more space.
const SCRIPT: &str = "
    mount -t tmpfs -o size=${SIZE} tmpfs \"$RUN\" || exit 77
    \"$@\" --restart
    echo $? $(ls \"$RUN\")
    mount -o remount,size=64m \"$RUN\"
    \"$@\" --resume
";

#[test]
fn a_full_disk_leaves_the_checkpoint_before_and_is_told() {
    told_of_a_full_disk(&Divided::new("epochs = 6"), "model.hidden=256");
}

#[test]
fn a_full_disk_under_a_run_on_typed_parts_is_told() {
    told_of_a_full_disk(&Divided::typed("epochs = 6"), "model.hidden=64");
}

#[test]
fn a_full_disk_under_a_run_that_predicts_edges_is_told() {
    let divided = Divided::links("epochs = 6", &["--algorithm", "spring"]);
    told_of_a_full_disk(&divided, "model.hidden=256");
}

/// `width` makes weights large beside all else in the folder.
fn told_of_a_full_disk(divided: &Divided, width: &str) {
    let args = divided.args(&divided.parts, "ranks", &[width]);
    let run = &divided.bench.run;
    let with = |how: &str| [&args[..], &[how.to_string()]].concat();
    let words = with("--restart");
    let undisturbed = succeed(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let bytes = |file: &str| std::fs::metadata(run.join(file)).unwrap().len();
    let (checkpoint, model) = (bytes("checkpoint.safetensors"), bytes("model.safetensors"));
    let size = checkpoint * 3 / 2 + model + (32 << 10);
    std::fs::remove_dir_all(run).unwrap();
    std::fs::create_dir(run).unwrap();
    let own = ["--user", "--map-root-user", "--mount"];
    let allowed = Command::new("unshare").args(own).arg("true").stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mounts of one's own are allowed here");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(own).args(["sh", "-c", SCRIPT, "sh"]).arg(gnarl().get_program());
    let output =
        command.args(&args).env("RUN", run).env("SIZE", size.to_string()).output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: no file system of one's own can be mounted here");
        return;
    }
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let lines: Vec<&str> = out.lines().collect();
    assert!(output.status.success() && lines.len() == 2, "{out}{err}");
    let left = "1 checkpoint.safetensors config.toml graph.json metrics.jsonl model.safetensors report.html run.json";
    assert_eq!(lines[0], left, "{err}");
    let checkpoint = format!("writing the checkpoint: {}", path(&run.join("checkpoint")));
    assert!(err.contains(&checkpoint) && err.contains("No space left"), "{err}");
    assert!(err.contains("hint: ") && err.contains("--resume"), "{err}");
    assert_eq!(numbers(&serde_json::from_str(lines[1]).unwrap()), numbers(&undisturbed));
}
