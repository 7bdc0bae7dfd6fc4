//! Commands of the documentation, run as they stand.
//!
//! In a block marked `console` a line that starts with `$ ` is a command, and the lines below it are its output, where
//! `…` stands for anything: within a line for some characters, alone on a line for any number of lines. Lines of stdout
//! and stderr may be shown in any order. Numbers are not compared, nor the times of log lines.
//!
//! In a block marked `sh` every line that starts with `gnarl ` is a command that must succeed, on small files of the
//! names it uses. Training is cut short in both.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Documents with console blocks. All blocks of one run in one folder, in their order.
const DOCUMENTS: [&str; 2] = ["docs/guide.md", "README.md"];

/// Documents whose `sh` blocks are about a graph of the reader's own.
const OWN_GRAPH: [&str; 7] = [
    "README.md",
    "docs/coming-from-pyg-and-dgl.md",
    "docs/importing.md",
    "docs/link-prediction.md",
    "docs/partitioning.md",
    "docs/plan.md",
    "docs/tensor.md",
];

/// Words of commands that need more than small files: formats that other tests import, and comparisons that take long.
const ELSEWHERE: [&str; 6] =
    ["npy --edges actor:", "parquet", "schema", "ogb", "graphbolt", "bench"];

/// Stands for anything in the output shown.
const ANYTHING: char = '…';

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command and the lines it is shown to print.
#[derive(Debug, Default)]
struct Step {
    command: String,
    shown: Vec<String>,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            steps.push(Step { command: command.into(), shown: Vec::new() });
        } else if inside && !line.trim().is_empty() {
            let step = steps.last_mut().expect("a console block starts with a command");
            step.shown.push(line.into());
        }
    }
    steps
}

/// A line with `#` for each number.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            out.push(c);
            continue;
        }
        out.push('#');
        // Points and commas belong to the number only if digits follow: "0.5;" ends at the semicolon.
        while let Some(&next) = chars.peek() {
            let inner = matches!(next, '.' | ',')
                && chars.clone().nth(1).is_some_and(|after| after.is_ascii_digit());
            if !next.is_ascii_digit() && !inner {
                break;
            }
            chars.next();
        }
    }
    out
}

/// True if a line that was printed is the one shown: its pieces between `…` come in their order.
fn is_shown(printed: &str, shown: &str) -> bool {
    let (printed, shown) = (without_numbers(printed), without_numbers(shown));
    let mut rest = printed.as_str();
    shown.trim().split(ANYTHING).all(|piece| match rest.find(piece.trim()) {
        Some(at) => {
            rest = &rest[at + piece.trim().len()..];
            true
        }
        None => false,
    })
}

/// The command with few epochs, unless it says how many.
fn shortened(command: &str) -> String {
    let command = command.replace("cargo run --release --", "gnarl");
    let trains = ["gnarl train ", "gnarl repeat "].iter().any(|name| command.starts_with(name));
    if trains && !command.contains("train.epochs") {
        return format!("{command} --set train.epochs=4");
    }
    command
}

/// Runs a command in a shell, with this build of gnarl; its output, and whether it succeeded.
fn run(command: &str, dir: &Path) -> (Vec<String>, bool) {
    let binary = Path::new(env!("CARGO_BIN_EXE_gnarl")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &shortened(command)])
        .current_dir(dir)
        .env("PATH", format!("{}:{path}", binary.display()))
        .output()
        .expect("a shell");
    let text = [output.stderr, output.stdout].map(|b| String::from_utf8_lossy(&b).into_owned());
    let lines = text.iter().flat_map(|text| text.lines()).map(String::from).collect();
    (lines, output.status.success())
}

#[cfg(unix)]
#[test]
fn console_blocks_print_what_they_show() {
    let root = root();
    let mut wrong = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(document)).expect(document);
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(root.join("examples"), dir.path().join("examples")).unwrap();
        let steps = steps(&text);
        assert!(!steps.is_empty(), "{document} has no console block");
        for step in steps {
            let (printed, succeeded) = run(&step.command, dir.path());
            let should_fail = step.shown.iter().any(|line| line.starts_with("error:"));
            if succeeded == should_fail {
                let all = printed.join("\n");
                panic!("{document}: $ {}\nsucceeded: {succeeded}\n{all}", step.command);
            }
            for line in step.shown.iter().filter(|line| line.trim() != "…") {
                if !printed.iter().any(|printed| is_shown(printed, line)) {
                    wrong.push(format!("{document}: $ {}\n  does not print: {line}", step.command));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Writes a `.npy` file of integers or floats.
fn npy(path: PathBuf, descr: &str, shape: &str, values: &[u8]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    std::fs::write(path, bytes).unwrap();
}

/// A graph of 200 nodes, and a run file, under the names that the documents use.
fn own_graph(dir: &Path) {
    const NODES: i64 = 200;
    let integers =
        |values: Vec<i64>| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let sources = (0..NODES).flat_map(|node| [node; 3]);
    let targets = (0..NODES).flat_map(|node| [1, 7, 31].map(|step| (node + step) % NODES));
    let edges = integers(sources.clone().chain(targets.clone()).collect());
    npy(dir.join("edges.npy"), "<i8", &format!("(2, {})", 3 * NODES), &edges);
    let features: Vec<u8> = (0..4 * NODES).flat_map(|i| ((i % 9) as f32).to_le_bytes()).collect();
    let labels = integers((0..NODES).map(|node| node % 3).collect());
    for (features_name, labels_name) in [("features.npy", "labels.npy"), ("x.npy", "y.npy")] {
        npy(dir.join(features_name), "<f4", &format!("({NODES}, 4)"), &features);
        npy(dir.join(labels_name), "<i8", &format!("({NODES},)"), &labels);
    }
    for (number, split) in ["train", "valid", "test"].into_iter().enumerate() {
        let ids: Vec<i64> = (0..NODES).filter(|node| node % 4 == number as i64).collect();
        let shape = format!("({},)", ids.len());
        for name in [format!("{split}.npy"), format!("{split}_idx.npy")] {
            npy(dir.join(name), "<i8", &shape, &integers(ids.clone()));
        }
        let line = |node: &i64| format!("e{node}\tr{}\te{}\n", node % 3, (node * 7 + 1) % NODES);
        let triples: String = ids.iter().map(line).collect();
        std::fs::write(dir.join(format!("{split}.txt")), triples).unwrap();
    }
    let lines: String = sources.zip(targets).map(|(from, to)| format!("n{from},n{to}\n")).collect();
    std::fs::write(dir.join("edges.csv"), format!("src,dst\n{lines}")).unwrap();
    let line = |node: i64| {
        let split = ["train", "valid", "test", ""][node as usize % 4];
        format!("n{node},{},{},topic-{},{split}\n", node % 9, node % 5, node % 3)
    };
    let lines: String = (0..NODES).map(line).collect();
    std::fs::write(dir.join("nodes.csv"), format!("id,x0,x1,topic,split\n{lines}")).unwrap();
    let run = "[dataset]\npath = 'data/mine'\n[model]\nname = 'gcn'\nhidden = 8\n";
    std::fs::write(dir.join("run.toml"), run).unwrap();
}

/// Commands of `sh` blocks; one that ends in a backslash goes on in the next line.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    let text = text.replace("\\\n", " ");
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && line.starts_with("gnarl ") {
            commands.push(line.to_string());
        }
    }
    commands
}

#[cfg(unix)]
#[test]
fn commands_about_a_graph_of_ones_own_succeed() {
    let root = root();
    for document in OWN_GRAPH {
        let text = std::fs::read_to_string(root.join(document)).expect(document);
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::os::unix::fs::symlink(root.join("examples"), dir.join("examples")).unwrap();
        own_graph(dir);
        let words = "gnarl import csv --edges edges.csv --nodes nodes.csv --features 'x*' --label topic \
                     --out data/mine";
        let (printed, succeeded) = run(words, dir);
        assert!(succeeded, "{}", printed.join("\n"));
        let commands = commands(&text);
        assert!(!commands.is_empty(), "{document} has no command");
        for command in commands {
            if ELSEWHERE.iter().any(|words| command.contains(words)) {
                continue;
            }
            // Blocks that are alternatives of each other import to one folder.
            if command.starts_with("gnarl import")
                && let Some(out) = command.split(" --out ").nth(1)
                && dir.join(out.trim()).exists()
            {
                std::fs::remove_dir_all(dir.join(out.trim())).unwrap();
            }
            let (printed, succeeded) = run(&command, dir);
            assert!(succeeded, "{document}: {command}\n{}", printed.join("\n"));
        }
    }
}

#[test]
fn shown_lines_are_compared_without_numbers_and_by_pieces() {
    let printed = "2026-11-23T04:55:26Z  INFO test accuracy 0.8663 after epoch 59; 1,245 edges; see runs/cora";
    assert!(is_shown(printed, "INFO test accuracy 0.9 after epoch 7; …; see runs/cora"));
    assert!(is_shown(printed, "INFO test accuracy …"));
    assert!(!is_shown(printed, "INFO test score 0.8663 …"));
    assert!(!is_shown(printed, "see runs/cora; … INFO test"));
    assert_eq!(without_numbers("x0 … x11: 1,024.5 of 3."), "x# … x#: # of #.");
}
