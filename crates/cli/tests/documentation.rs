//! What the documents tell people to type exists: every command, and every option of it.

use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: [&str; 18] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/coming-from-pyg-and-dgl.md",
    "docs/edges.md",
    "docs/guide.md",
    "docs/importing.md",
    "docs/inference.md",
    "docs/link-prediction.md",
    "docs/partitioning.md",
    "docs/plan.md",
    "docs/python.md",
    "docs/runs.md",
    "docs/tensor.md",
    "docs/heterogeneous.md",
    "examples/README.md",
    "examples/planetoid/README.md",
    "examples/tensor/README.md",
    "examples/heterogeneous/README.md",
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

/// Markdown files of the repository that readers come to by links.
fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "benches/runs"].map(|folder| root().join(folder));
    let examples = std::fs::read_dir(root().join("examples")).unwrap().flatten();
    let folders = folders.into_iter().chain([root().join("examples")]);
    let folders = folders.chain(examples.map(|entry| entry.path()).filter(|path| path.is_dir()));
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect()
}

/// The anchor that a heading is linked by.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn linked_files_and_headings_exist() {
    let documents = documents();
    assert!(documents.len() > 30, "only {} documents found", documents.len());
    for path in documents {
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{} links to {link}", path.display());
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                let found = headings.map(anchor).any(|anchor| anchor == heading);
                assert!(found, "{}: no heading for {link}", path.display());
            }
        }
    }
}
