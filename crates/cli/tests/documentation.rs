//! What the documents tell people to type exists: every command, and every option of it.

use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: [&str; 11] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/coming-from-pyg-and-dgl.md",
    "docs/importing.md",
    "docs/partitioning.md",
    "docs/plan.md",
    "docs/tensor.md",
    "examples/README.md",
    "examples/planetoid/README.md",
    "examples/tensor/README.md",
    "examples/typed/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Lines of a document that call gnarl, as the words after its name.
fn calls(text: &str) -> Vec<Vec<String>> {
    let call = |line: &str| {
        let line = line.trim().trim_start_matches("$ ");
        let rest = line.strip_prefix("gnarl ");
        let words = rest.or_else(|| line.strip_prefix("cargo run --release -- "))?;
        Some(words.split_whitespace().map(String::from).collect())
    };
    text.lines().filter_map(call).collect()
}

/// The help of a command; its name is the words before the first option or file.
fn help(words: &[String]) -> String {
    let two = ["import", "generate", "bench"].contains(&words[0].as_str());
    let name = &words[..if two { 2 } else { 1 }];
    let command = Command::new(env!("CARGO_BIN_EXE_gnarl")).args(name).arg("--help").output();
    let output = command.unwrap();
    assert!(output.status.success(), "gnarl {} is no command", name.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_and_options_exist() {
    let mut seen = 0;
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(document)).expect(document);
        for words in calls(&text) {
            let help = help(&words);
            for option in words.iter().filter(|w| w.starts_with("--")) {
                assert!(help.contains(option), "{document}: {} has no {option}", words.join(" "));
            }
            seen += 1;
        }
    }
    assert!(seen >= 8, "only {seen} commands found");
}

#[test]
fn linked_files_exist() {
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/coming-from-pyg-and-dgl.md",
        "docs/tensors.md",
        "docs/importing.md",
        "docs/partitioning.md",
    ] {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path).expect(document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = path.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(link.contains("://") || target.exists(), "{document} links to {link}");
        }
    }
}
