//! `gnarl infer`: predictions and embeddings by the ids of the input.

use std::collections::HashMap;
use std::path::Path;

use gnarl_graph::{Dataset, Labels};
use serde_json::json;

use crate::common::{Bench, fail, path, run_file, succeed};

const RUN: &str = "[train]\nepochs = 6\n";

/// The header and the rows of a CSV file.
fn table(file: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(file).unwrap();
    let cells = |line: &str| line.split(',').map(String::from).collect::<Vec<_>>();
    let mut lines = text.lines().map(cells);
    (lines.next().unwrap(), lines.collect())
}

fn classes(graph: &Path) -> Vec<i32> {
    match Dataset::open(graph).unwrap().labels("_N").unwrap() {
        Some(Labels::Single { classes, .. }) => classes.to_vec(),
        _ => panic!("no classes"),
    }
}

#[test]
fn classes_of_a_split_have_the_accuracy_of_the_run() {
    let bench = Bench::new(RUN);
    let trained = bench.train(&[]);
    let out = bench.dir.path().join("test.csv");
    let run = path(&bench.run);
    let found = succeed(&["infer", run, "--out", path(&out), "--split", "test"]);
    let (header, rows) = table(&out);
    assert_eq!(header, ["id", "class", "probability"]);
    assert_eq!(found["nodes"], rows.len());
    let labels = classes(&bench.graph);
    let right = |row: &&Vec<String>| {
        labels[row[0].parse::<usize>().unwrap()] == row[1].parse::<i32>().unwrap()
    };
    let accuracy = rows.iter().filter(right).count() as f64 / rows.len() as f64;
    let expected = trained["test"]["accuracy"].as_f64().unwrap();
    assert!((accuracy - expected).abs() < 1e-6, "{accuracy}, and the run says {expected}");
    assert!(rows.iter().all(|row| (0.25..=1.0).contains(&row[2].parse::<f64>().unwrap())));
}

#[test]
fn every_output_of_every_node_is_written_in_any_memory() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let run = path(&bench.run);
    let what = "embeddings,logits,classes,probabilities";
    let files = ["roomy.csv", "tight.csv"].map(|name| bench.dir.path().join(name));
    let roomy = succeed(&["infer", run, "--out", path(&files[0]), "--what", what]);
    let tight =
        succeed(&["infer", run, "--out", path(&files[1]), "--what", what, "--memory", "256KiB"]);
    let (header, rows) = table(&files[0]);
    assert_eq!(rows.len(), 2000);
    assert_eq!(header.len(), 1 + 32 + 4 + 2 + 4, "{header:?}");
    assert_eq!((&*header[1], &*header[33], &*header[37]), ("embedding_0", "logits_0", "class"));
    assert_eq!(std::fs::read(&files[0]).unwrap(), std::fs::read(&files[1]).unwrap());
    let ranges = |found: &serde_json::Value| {
        let layers = found["layers"].as_array().unwrap().iter();
        layers.map(|layer| layer["ranges"].as_u64().unwrap()).max().unwrap()
    };
    assert!(ranges(&tight) > 4 * ranges(&roomy), "{roomy} {tight}");
    for row in rows.iter().step_by(97) {
        let numbers = |range: std::ops::Range<usize>| -> Vec<f64> {
            row[range].iter().map(|cell| cell.parse().unwrap()).collect()
        };
        let logits = numbers(33..37);
        let probabilities = numbers(39..43);
        let class: usize = row[37].parse().unwrap();
        assert!(logits.iter().all(|logit| *logit <= logits[class]), "{row:?}");
        assert_eq!(row[38], row[39 + class]);
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn orders_caches_and_ranks_change_nothing() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let run = path(&bench.run);
    let parts = bench.dir.path().join("parts");
    let graph = path(&bench.graph);
    succeed(&["partition", graph, "--parts", "4", "--hops", "0", "--out", path(&parts)]);
    let infer = |name: &str, args: &[&str]| {
        let out = bench.dir.path().join(name);
        let what = ["--what", "embeddings,classes"];
        let all = ["infer", run, "--out", path(&out)];
        let found = succeed(&[&all, &what[..], args].concat());
        (found, std::fs::read(out).unwrap())
    };
    let (plain, expected) = infer("plain.parquet", &[]);
    let layers = |found: &serde_json::Value, key: &str| -> u64 {
        found["layers"].as_array().unwrap().iter().map(|layer| layer[key].as_u64().unwrap()).sum()
    };
    let parts = path(&parts);
    let by_part = ["--order", "pds", "--partition", parts];
    let cached = ["--cache", "fifo:10%", "--chunk-rows", "64"];
    let courses = [
        vec!["--order", "ds"],
        vec!["--order", "ps", "--partition", parts],
        cached.to_vec(),
        vec!["--ranks", "3"],
        vec!["--sweep", "always", "--memory", "1MiB"],
        [&by_part[..], &cached].concat(),
        [&by_part[..], &cached, &["--ranks", "2", "--memory", "1MiB"]].concat(),
    ];
    for (number, course) in courses.iter().enumerate() {
        let (found, bytes) = infer(&format!("{number}.parquet"), course);
        assert!(bytes == expected, "{course:?} changes the file");
        let chunks = layers(&found, "chunk_reads");
        assert_eq!(chunks > 0, course.contains(&"--cache"), "{course:?}: {found}");
        assert_eq!(layers(&found, "nodes"), layers(&plain, "nodes"), "{course:?}");
        assert_eq!(
            layers(&found, "sweeps") > 1,
            course.contains(&"--sweep"),
            "{course:?}: {found}"
        );
        let fetched = layers(&found, "fetched_bytes");
        assert_eq!(fetched > 0, course.contains(&"--ranks"), "{course:?}: {found}");
    }
    let out = bench.dir.path().join("none.parquet");
    let fails = |args: &[&str]| fail(&[&["infer", run, "--out", path(&out)], args].concat(), 2);
    let text = fails(&["--order", "pds"]);
    assert!(text.contains("--partition DIR"), "{text}");
    let other = bench.dir.path().join("other");
    let cut = bench.dir.path().join("cut");
    succeed(&["generate", "community", "--nodes", "2000", "--seed", "9", "--out", path(&other)]);
    succeed(&["partition", path(&other), "--parts", "2", "--out", path(&cut)]);
    let text = fails(&["--order", "pds", "--partition", path(&cut)]);
    assert!(text.contains("is no partition of"), "{text}");
    let text = fails(&["--order", "pdq"]);
    assert!(text.contains("pdq") && text.contains("pds"), "{text}");
    let text = fails(&["--cache", "fifo"]);
    assert!(text.contains("its memory is missing"), "{text}");
    let text = fails(&["--fanouts", "3,3", "--ranks", "2"]);
    assert!(text.contains("--ranks"), "{text}");
    assert!(!out.exists());
}

#[test]
fn rows_of_layers_are_kept_until_the_end() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let run = path(&bench.run);
    let layers = bench.dir.path().join("layers");
    let out = bench.dir.path().join("out.parquet");
    let all = ["infer", run, "--out", path(&out), "--what", "embeddings,logits", "--force"];
    succeed(&all);
    let expected = std::fs::read(&out).unwrap();
    for ranks in ["1", "3"] {
        let page = bench.dir.path().join("report.html");
        let kept = ["--layers", path(&layers), "--ranks", ranks, "--report", path(&page)];
        let found = succeed(&[&all[..], &kept].concat());
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("embeddings 1") && page.contains("Hubs"), "{page}");
        assert_eq!(page.contains("from other ranks"), ranks == "3", "{page}");
        assert!(found["layers"][0]["file_bytes"].as_u64() > Some(0), "{found}");
        assert!(std::fs::read(&out).unwrap() == expected, "{ranks} ranks");
        assert!(!layers.exists(), "nothing is left");
    }
    let record = "{\"inference\":\"of yesterday\",\"at\":0,\"layers\":{}}";
    std::fs::create_dir_all(layers.join("last")).unwrap();
    std::fs::write(layers.join("last/rank-0.json"), record).unwrap();
    let text = fail(&[&all[..], &["--layers", path(&layers)]].concat(), 2);
    assert!(text.contains("of yesterday") && text.contains("another folder"), "{text}");
    assert!(std::fs::read(&out).unwrap() == expected);
}

#[test]
fn neighbors_are_sampled_on_request() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let run = path(&bench.run);
    let infer = |name: &str, args: &[&str]| {
        let out = bench.dir.path().join(name);
        succeed(&[&["infer", run, "--what", "logits", "--out", path(&out)], args].concat());
        let values = |row: &Vec<String>| -> Vec<f32> {
            row.iter().map(|cell| cell.parse().unwrap()).collect()
        };
        table(&out).1.iter().map(values).collect::<Vec<_>>()
    };
    let exact = infer("exact.csv", &[]);
    let all = infer("all.csv", &["--fanouts", "-1,-1"]);
    for (one, other) in exact.iter().flatten().zip(all.iter().flatten()) {
        assert!((one - other).abs() <= 1e-5 * (1.0 + one.abs()), "{one} {other}");
    }
    let few = infer("few.csv", &["--fanouts", "2,2"]);
    assert_ne!(few, exact);
    // Draws of a node do not depend on the others that are asked for.
    let ids = bench.dir.path().join("ids.txt");
    std::fs::write(&ids, "7\n1999\n").unwrap();
    let some = infer("some.csv", &["--fanouts", "2,2", "--ids", path(&ids)]);
    assert_eq!(some.len(), 2);
    for (row, node) in some.iter().zip([7, 1999]) {
        for (one, other) in row.iter().zip(&few[node]) {
            assert!((one - other).abs() <= 1e-5 * (1.0 + one.abs()), "{one} {other}");
        }
    }
    let out = bench.dir.path().join("out.csv");
    let refused = |args: &[&str]| fail(&[&["infer", run, "--out", path(&out)], args].concat(), 2);
    let text = refused(&["--fanouts", "5"]);
    assert!(text.contains("expected 2 entries (model.layers), found 1"), "{text}");
    let text = refused(&["--fanouts", "5,0"]);
    assert!(text.contains("0 neighbors"), "{text}");
    let text = refused(&["--fanouts", "5,5", "--what", "embeddings"]);
    assert!(text.contains("over all neighbors only"), "{text}");
}

#[test]
fn ids_and_class_names_are_those_of_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let mut edges = String::from("from,to\n");
    let mut nodes = String::from("name,x,kind,part\n");
    for v in 0..60 {
        edges += &format!("node-{v},node-{}\n", (v + 2) % 60);
        let kind = ["even", "odd"][v % 2];
        let part = ["train", "valid", "test"][v / 2 % 3];
        nodes += &format!("node-{v},{}.5,{kind},{part}\n", v % 2);
    }
    let files = [("edges.csv", edges), ("nodes.csv", nodes)].map(|(name, text)| {
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    });
    let graph = dir.path().join("graph");
    let words = "--src from --dst to --id name --features x --label kind --split part";
    let mut args = vec!["import", "csv", "--edges", path(&files[0]), "--nodes", path(&files[1])];
    args.extend(words.split(' '));
    succeed(&[&args[..], &["--symmetrize", "--out", path(&graph)]].concat());
    let run = dir.path().join("run");
    let rest = format!("[train]\nepochs = 30\nlr = 0.05\n[output]\ndir = '{}'\n", run.display());
    succeed(&["train", path(&run_file(dir.path(), &graph, &rest))]);
    let (out, ids) = (dir.path().join("out.csv"), dir.path().join("ids.txt"));
    succeed(&["infer", path(&run), "--out", path(&out)]);
    let (_, rows) = table(&out);
    let by_id: HashMap<&str, &str> = rows.iter().map(|row| (&*row[0], &*row[1])).collect();
    assert_eq!(by_id.len(), 60);
    for v in 0..60 {
        assert_eq!(by_id[&*format!("node-{v}")], ["even", "odd"][v % 2], "node {v}");
    }
    // Another graph, whose nodes have neither labels nor splits.
    let bare = dir.path().join("bare");
    let mut args = vec!["import", "csv", "--edges", path(&files[0]), "--nodes", path(&files[1])];
    args.extend("--src from --dst to --id name --features x --symmetrize --out".split(' '));
    args.push(path(&bare));
    succeed(&args);
    let there = dir.path().join("there.csv");
    let on_bare = ["infer", path(&run), "--dataset", path(&bare), "--force", "--out", path(&there)];
    succeed(&on_bare);
    assert_eq!(table(&there).1, rows);
    let text = fail(&["eval", path(&run), "--dataset", path(&bare)], 1);
    assert!(text.contains("no labels"), "{text}");
    let text = fail(&[&on_bare[..], &["--split", "test"]].concat(), 2);
    assert!(text.contains("no node is selected"), "{text}");
    let away = dir.path().join("away");
    std::fs::rename(&graph, &away).unwrap();
    let text = fail(&on_bare, 1);
    assert!(text.contains("the run was trained on"), "{text}");
    std::fs::rename(&away, &graph).unwrap();
    std::fs::write(&ids, "node-7\nnode-12\n").unwrap();
    let some = ["infer", path(&run), "--ids", path(&ids), "--force", "--out", path(&out)];
    assert_eq!(succeed(&some)["nodes"], 2);
    let (_, rows) = table(&out);
    assert_eq!(rows.len(), 2);
    std::fs::write(&ids, "node-7\nnode-99\n").unwrap();
    let text = fail(&some, 1);
    assert!(text.contains("ids.txt: line 2: unknown node id 'node-99'"), "{text}");
    assert_eq!(table(&out).1.len(), 2, "a failed command leaves the file");
}

#[test]
fn impossible_requests_are_refused() {
    let bench = Bench::new(RUN);
    let run = path(&bench.run);
    let out = bench.dir.path().join("out.parquet");
    let infer = |args: &[&str], code| {
        let all = [&["infer", run, "--out", path(&out)], args].concat();
        fail(&all, code)
    };
    assert!(infer(&[], 1).contains("no run"));
    bench.train(&[]);
    let text = infer(&["--what", "values"], 2);
    assert!(text.contains("--what values: the run predicts classes"), "{text}");
    assert!(infer(&["--what", "everything"], 2).contains("everything"));
    let text = infer(&["--split", "held-out"], 2);
    assert!(
        text.contains("unknown split 'held-out'") && text.contains("train, valid, test"),
        "{text}"
    );
    let text = infer(&["--node-type", "film"], 2);
    assert!(text.contains("no outputs for 'film'"), "{text}");
    let other = bench.dir.path().join("out.txt");
    let text = fail(&["infer", run, "--out", path(&other)], 2);
    assert!(text.contains("parquet"), "{text}");
    assert!(!out.exists() && !other.exists());
    succeed(&["infer", run, "--out", path(&out)]);
    let text = infer(&[], 2);
    assert!(text.contains("--force"), "{text}");
    let again = ["infer", run, "--out", path(&out), "--force", "--what", "classes,logits,classes"];
    assert_eq!(succeed(&again)["columns"], json!(["id", "class", "probability", "logits"]));
    let text = fail(
        &["infer", run, "--out", path(&bench.dir.path().join("a.npy")), "--what", "classes"],
        2,
    );
    assert!(text.contains("one column of numbers") && text.contains(".parquet"), "{text}");
}

#[test]
fn models_of_links_give_embeddings_of_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let graph = dir.path().join("graph");
    let typed = ["generate", "typed", "--nodes", "400", "--edges", "2000", "--out", path(&graph)];
    succeed(&typed);
    let dataset = Dataset::open(&graph).unwrap();
    let triple = dataset.manifest().edge_types[0].triple.clone();
    let run = dir.path().join("run");
    let rest = format!(
        "[task]\nkind = 'link-prediction'\nedge_type = '{triple}'\n[model]\nname = 'rgcn'\nhidden = 8\n\
         [embedding]\ndim = 6\n[sample]\nfanouts = [4, 4]\nbatch_size = 64\n[train]\nepochs = 1\n\
         [output]\ndir = '{}'\n",
        run.display()
    );
    succeed(&["train", path(&run_file(dir.path(), &graph, &rest))]);
    let out = dir.path().join("out.csv");
    let infer = ["infer", path(&run), "--out", path(&out)];
    let text = fail(&[&infer[..], &["--node-type", &triple.src, "--what", "classes"]].concat(), 2);
    assert!(text.contains("--what classes: the run predicts edges"), "{text}");
    if triple.src != triple.dst {
        let text = fail(&infer, 2);
        assert!(text.contains("several node types") && text.contains("--node-type"), "{text}");
    }
    succeed(&[&infer[..], &["--node-type", &triple.src]].concat());
    let (header, rows) = table(&out);
    assert_eq!(header.len(), 1 + 6, "{header:?}");
    let count = dataset.manifest().node_type(&triple.src).unwrap().count;
    assert_eq!(rows.len() as u64, count);
}

#[test]
fn decoupled_models_have_logits_and_no_hidden_embeddings() {
    let bench = Bench::new(RUN);
    bench.train(&["model.name=gcn", "model.decoupled=true"]);
    let out = bench.dir.path().join("out.npy");
    let infer = ["infer", path(&bench.run), "--out", path(&out), "--what"];
    let text = fail(&[&infer[..], &["embeddings"]].concat(), 2);
    assert!(text.contains("a decoupled gcn has no hidden embeddings"), "{text}");
    assert!(!out.exists() && !out.with_file_name("out.ids.npy").exists());
    succeed(&[&infer[..], &["logits"]].concat());
    assert!(out.exists() && out.with_file_name("out.ids.npy").exists());
}
