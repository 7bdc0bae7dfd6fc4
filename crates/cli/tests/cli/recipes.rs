//! Run files that import their dataset themselves.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{fail, path, succeed};

/// A graph of two files that differ in their edges.
fn tables(dir: &Path) {
    let nodes: String = (0..60)
        .map(|node| format!("{node},{},{},{}\n", node % 7, node % 3, SPLITS[node % 3]))
        .collect();
    std::fs::write(dir.join("nodes.csv"), format!("id,x,label,split\n{nodes}")).unwrap();
    for (name, step) in [("near.csv", 1), ("far.csv", 17)] {
        let edges: String =
            (0..60).map(|node| format!("{node},{}\n", (node + step) % 60)).collect();
        std::fs::write(dir.join(name), format!("src,dst\n{edges}")).unwrap();
    }
}

const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// A run file in `dir` that imports some edges to `dir/data/g`.
fn recipe(dir: &Path, edges: &str, more: &str) -> std::path::PathBuf {
    let file = dir.join(format!("{edges}.toml"));
    let text = format!(
        "[dataset]\npath = '{data}'\n\
         import = {{ format = 'csv', options = {{ edges = '{edges}', nodes = 'nodes.csv', features = 'x'{more} }} }}\n\
         [model]\nname = 'gcn'\nhidden = 4\n[train]\nepochs = 1\n[output]\ndir = '{run}'\n",
        data = dir.join("data/g").display(),
        run = dir.join("runs").join(edges).display(),
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn edges_of(dataset: &Path) -> u64 {
    succeed(&["inspect", path(dataset)])["edges"][0]["count"].as_u64().unwrap()
}

#[test]
fn run_files_of_one_place_get_what_each_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    tables(dir);
    let near = recipe(dir, "near.csv", "");
    let far = recipe(dir, "far.csv", ", symmetrize = true");
    for file in [&near, &far, &near, &far] {
        succeed(&["train", path(file), "--restart"]);
    }
    let found = |name: &str| edges_of(&dir.join("data").join(name));
    assert_eq!((found("g"), found("g-2")), (60, 120));
    assert!(!dir.join("data/g-3").exists(), "each is imported once");
    let config = std::fs::read_to_string(dir.join("runs/far.csv/config.toml")).unwrap();
    assert!(config.contains("data/g-2"), "{config}");

    // Files that are gone were imported all the same; files that changed were not.
    std::fs::remove_file(dir.join("far.csv")).unwrap();
    succeed(&["train", path(&far), "--restart"]);
    // A copy of the same content is the same file, however new.
    let near_file = dir.join("near.csv");
    let content = std::fs::read_to_string(&near_file).unwrap();
    let newer = |content: &str| {
        std::fs::write(&near_file, content).unwrap();
        let file = std::fs::File::options().append(true).open(&near_file).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    };
    newer(&content);
    succeed(&["train", path(&near), "--restart"]);
    for changed in [content.replacen("\n0,", "\n1,", 1), "src,dst\n0,1\n".into()] {
        assert_ne!(changed, content);
        newer(&changed);
        let err = fail(&["train", path(&near), "--restart"], 2);
        assert!(err.contains("near.csv: changed since") && err.contains("hint: "), "{err}");
    }
}

#[test]
fn a_dataset_made_by_hand_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    tables(dir);
    let near = recipe(dir, "near.csv", "");
    let out = dir.join("data/g");
    let (far, nodes) = (dir.join("far.csv"), dir.join("nodes.csv"));
    let args = ["import", "csv", "--edges", path(&far), "--nodes", path(&nodes), "--features", "x"];
    succeed(&[&args[..], &["--out", path(&out)]].concat());
    succeed(&["train", path(&near)]);
    assert!(!dir.join("data/g-2").exists());
}

/// Every run file under `examples`, deepest names first, so that those that share places with others do
/// not come in the order of the documentation.
fn examples() -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut folders = vec![root.canonicalize().unwrap()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") && !path.ends_with("Cargo.toml")
            {
                files.push(path);
            }
        }
    }
    files.sort_by(|a, b| b.cmp(a));
    // Sorting is stable: the one for a graph of one's own comes after those that bring theirs.
    files.sort_by_key(|file| file.ends_with("examples/sage.toml"));
    files
}

#[test]
fn every_recipe_runs_in_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    let data = std::env::var_os("GNARL_DATA");
    if data.is_none() {
        // Unlike `eprintln!`, this is seen though the test passes.
        let _ =
            writeln!(std::io::stderr(), "skipped in part: GNARL_DATA names no folder of graphs");
    }
    for file in examples() {
        let text = std::fs::read_to_string(&file).unwrap();
        if data.is_none() && text.contains("GNARL_DATA") {
            continue;
        }
        let mut sets = vec!["train.epochs=1", "train.patience=0"];
        // It names no graph of its own.
        if file.ends_with("examples/sage.toml") {
            sets.push("dataset.path=data/cora");
            sets.push("dataset.split={ train = 0.5, valid = 0.2, test = 0.3 }");
        }
        let sets = sets.iter().flat_map(|set| ["--set", *set]);
        let mut command = crate::common::gnarl();
        command.args(["train", path(&file)]).args(sets).current_dir(dir.path());
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{err}", file.display());
    }
}
