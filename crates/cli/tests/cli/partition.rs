//! `gnarl partition`

use crate::common::{Bench, community, fail, gnarl, path, run_file, succeed};

#[test]
fn a_dry_run_writes_nothing_and_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--parts", "4"];
    let dry = succeed(&[&cut[..], &["--dry-run"]].concat());
    assert!(!parts.exists());
    let written = succeed(&[&cut[..], &["--out", path(&parts)]].concat());
    for key in ["edge_cut", "replication_factor", "part_sizes", "halo_sizes", "cut_degrees"] {
        assert!(!dry[key].is_null(), "no {key}");
        assert_eq!(dry[key], written[key], "{key}");
    }
    let page = std::fs::read_to_string(parts.join("report.html")).unwrap();
    assert!(page.contains("graph <span>in 4 parts") && page.contains("Nodes with edges between"));
    fail(&cut, 2);
    fail(&[&cut[..], &["--dry-run", "--out", path(&parts)]].concat(), 2);
}

#[test]
fn machines_come_before_workers() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--algorithm", "range", "--out", path(&parts), "--parts"];
    let report = succeed(&[&cut[..], &["2x4"]].concat());
    assert_eq!(report["part_sizes"].to_string(), "[250,250,250,250,250,250,250,250]");
    let manifest = std::fs::read_to_string(parts.join("partition.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["parameters"]["levels"].to_string(), "[2,4]");
    assert!(fail(&[&cut[..], &["2x"]].concat(), 2).contains("2x4"));
}

#[test]
fn vertex_cuts_are_written_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--algorithm", "hdrf", "--parts", "3"];
    let cut = [&cut[..], &["--layout", "vertex-cut"]].concat();
    let dry = succeed(&[&cut[..], &["--dry-run"]].concat());
    let written = succeed(&[&cut[..], &["--buckets", "--out", path(&parts)]].concat());
    for key in ["part_sizes", "halo_sizes", "edge_cut", "edge_balance"] {
        assert_eq!(dry[key], written[key], "{key}");
    }
    assert_eq!(dry["vertex_cut"]["part_edges"], written["vertex_cut"]["part_edges"]);
    let inspected = succeed(&["inspect", path(&parts), "--verify"]);
    let part_edges = written["vertex_cut"]["part_edges"].as_array().unwrap();
    let mut edges = 0;
    for (part, expected) in inspected["parts"].as_array().unwrap().iter().zip(part_edges) {
        assert_eq!(&part["topology"]["edges"], expected);
        assert!(part["topology"]["bytes_per_edge"].as_f64().unwrap() > 8.0);
        edges += expected.as_u64().unwrap();
    }
    assert_eq!(inspected["buckets"]["edges"].as_u64(), Some(edges));
    assert_eq!(inspected["partition"]["layout"], "vertex-cut");
    let one = succeed(&["inspect", path(&parts.join("part-1"))]);
    assert_eq!(one["topology"], inspected["parts"][1]["topology"]);
}

#[test]
fn impossible_vertex_cuts_are_usage_errors() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let refuse = |options: &[&str]| {
        let cut = ["partition", path(&graph), "--out", path(&parts)];
        fail(&[&cut[..], options].concat(), 2)
    };
    let layout = ["--layout", "vertex-cut", "--parts"];
    let text = refuse(&[&layout[..], &["2"]].concat());
    assert!(text.contains("'knot' is a vertex partitioner"), "{text}");
    assert!(
        text.contains("hash-1d") && text.contains("2ps-l") && text.contains("adadne"),
        "{text}"
    );
    let text = refuse(&[&layout[..], &["2x2", "--algorithm", "dbh"]].concat());
    assert!(text.contains("two levels"), "{text}");
    let text = refuse(&[&layout[..], &["2", "--algorithm", "dbh", "--hops", "2"]].concat());
    assert!(text.contains("--hops"), "{text}");
    let text = refuse(&["--layout", "vertexcut", "--parts", "2"]);
    assert!(text.contains("edge-cut, vertex-cut"), "{text}");
    refuse(&["--dry-run", "--buckets", "--parts", "2"]);
    assert!(!parts.exists());
}

#[test]
fn truncated_topology_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--algorithm", "dbh", "--parts", "2", "--buckets"];
    succeed(&[&cut[..], &["--layout", "vertex-cut", "--out", path(&parts)]].concat());
    let shorten = |file: &str| {
        let file = std::fs::File::options().write(true).open(parts.join(file)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 4).unwrap();
    };
    shorten("buckets/0.dst.npy");
    let text = fail(&["inspect", path(&parts)], 1);
    assert!(text.contains("0.dst.npy: truncated"), "{text}");
    shorten("part-1/topology/in.src.npy");
    let text = fail(&["inspect", path(&parts)], 1);
    assert!(text.contains("part-1/topology/in.src.npy: truncated"), "{text}");
}

/// The import of a run file is that of the dataset, which is not needed where the run has parts.
#[cfg(feature = "serve")]
#[test]
fn a_run_on_parts_imports_nothing() {
    let bench = Bench::new("[train]\nepochs = 2\n");
    let parts = bench.dir.path().join("parts");
    succeed(&["partition", path(&bench.graph), "--parts", "2", "--out", path(&parts)]);
    let whole = bench.train(&[]);
    let text = std::fs::read_to_string(&bench.file).unwrap();
    let import = "[dataset.import]\nformat = 'npy'\n[dataset.import.options]\nedges = '${NOT_SET}/edges.npy'\n";
    std::fs::write(&bench.file, text + import).unwrap();
    std::fs::remove_dir_all(&bench.graph).unwrap();
    let parts = format!("partition.path={}", path(&parts));
    let found = bench.train(&[&parts, "partition.servers=ranks"]);
    let losses = |of: &serde_json::Value| of["losses"][1].as_f64().unwrap();
    assert!((losses(&whole) - losses(&found)).abs() < 1e-5, "{whole} {found}");
}

/// Parts are made for the task of a run file, and only for one that predicts edges.
#[test]
fn parts_for_a_task_are_of_edges_and_whole() {
    let bench = Bench::new("[train]\nepochs = 2\n");
    let parts = bench.dir.path().join("parts");
    let cut = ["partition", path(&bench.graph), "--parts", "2", "--out", path(&parts)];
    let task = ["--task", path(&bench.file)];
    let error = fail(&[&cut[..], &task].concat(), 2);
    assert!(error.contains("tasks of nodes train on the parts of their dataset"), "{error}");
    assert!(!parts.exists(), "nothing is written");

    let links = ["--set", "task.kind=link-prediction"];
    succeed(&[&cut[..], &task, &links].concat());
    let checked = succeed(&["inspect", path(&parts), "--verify"]);
    assert_eq!(checked["verified"], true);
    let file = parts.join("part-1/targets/train.tail.npy");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = fail(&["inspect", path(&parts), "--verify"], 1);
    assert!(error.contains("target edges of part 1: "), "{error}");
    assert!(error.contains("train.tail.npy: checksum"), "{error}");

    // A node task on the dataset refuses them, too.
    let place = format!("partition.path={}", path(&parts));
    let error = fail(&bench.args(&["train.strategy=average", &place]), 2);
    assert!(error.contains("made to predict edges of type"), "{error}");
}

#[test]
fn parts_without_lists_have_every_node_once_and_train_in_turns() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--parts", "5", "--layout", "storage"];
    let dry = succeed(&[&cut[..], &["--dry-run"]].concat());
    let written = succeed(&[&cut[..], &["--out", path(&parts)]].concat());
    for key in ["part_sizes", "halo_sizes", "edge_cut", "edge_balance"] {
        assert_eq!(dry[key], written[key], "{key}");
    }
    assert_eq!(written["replication_factor"], 1.0);
    let inspected = succeed(&["inspect", path(&parts), "--verify"]);
    let sum = |key: &str| -> u64 {
        let parts = inspected["partition"]["part_counts"].as_array().unwrap();
        parts.iter().map(|part| part[key][0].as_u64().unwrap()).sum()
    };
    let whole = succeed(&["inspect", path(&graph)]);
    assert_eq!(sum("core"), whole["nodes"][0]["count"].as_u64().unwrap());
    assert_eq!(sum("edges"), inspected["buckets"]["edges"].as_u64().unwrap());
    assert_eq!(sum("halo"), 0);
    let text = fail(&[&cut[..], &["--hops", "2", "--dry-run"]].concat(), 2);
    assert!(text.contains("no halo nodes"), "{text}");

    let file = run_file(dir.path(), &graph, "[train]\nepochs = 2\nstrategy = 'disaggregated'\n");
    let run = format!("output.dir='{}'", dir.path().join("run").display());
    let place = format!("partition.path='{}'", parts.display());
    let train = ["train", path(&file), "--set", &run, "--set", &place];
    let output = gnarl().args(train).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&text);
    assert_eq!((&summary["epochs"], &summary["parts"]), (&2.into(), &5.into()));
    assert!(text.contains("2 of 5 parts in memory at a time"), "{text}");
    let metrics = std::fs::read_to_string(dir.path().join("run/metrics.jsonl")).unwrap();
    assert!(metrics.contains("\"read_bytes\":"), "{metrics}");
    succeed(&["eval", path(&dir.path().join("run"))]);
}
