//! Mistakes in run files and in what is asked of runs.

use std::path::Path;

use crate::common::{Bench, community, fail, gnarl, path, run_file};

const RUN: &str = "[train]\nepochs = 2\n";

/// Runs a command that must succeed; its stderr.
pub(super) fn log(args: &[&str]) -> String {
    let output = gnarl().args(args).output().expect("the binary starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "gnarl {args:?} failed:\n{text}");
    text
}

#[test]
fn unknown_keys_and_names_meet_the_ones_that_were_meant() {
    let bench = Bench::new(RUN);
    for (set, told) in [
        ("train.lrate=0.1", "did you mean 'train.lr'?"),
        ("lr=0.1", "did you mean 'train.lr'?"),
        ("hidden=64", "did you mean 'model.hidden'?"),
        ("batch_size=64", "did you mean 'sample.batch_size'?"),
        ("train.dropout=0.1", "did you mean 'model.dropout'?"),
        ("model.num_layers=3", "did you mean 'model.layers'?"),
        ("model.name=graphsage", "did you mean 'sage'?"),
        ("model.name=GCN", "did you mean 'gcn'?"),
        ("train.metric=auc", "did you mean 'roc-auc'?"),
        ("train.strategy=averaging", "did you mean 'average'?"),
        ("sample.method=neigbour", "did you mean 'neighbor'?"),
        ("optimizer.name=adm", "did you mean 'adam'?"),
        ("task.kind=links", "did you mean 'link-prediction'?"),
    ] {
        let text = fail(&bench.args(&[set]), 2);
        assert!(text.contains(told), "{set}: {text}");
    }
    let text = fail(&bench.args(&["partition.parts=2", "partition.algorithm=mettis"]), 2);
    assert!(text.contains("did you mean 'metis'?"), "{text}");
    let text = fail(&bench.args(&["task.kind=link-prediction", "decoder.name=distmul"]), 2);
    assert!(text.contains("did you mean 'distmult'?"), "{text}");
}

#[test]
fn values_of_another_kind_are_told_in_words_of_people() {
    let bench = Bench::new(RUN);
    for (set, told) in [
        ("model.hidden=abc", "model.hidden = \"abc\": expected a whole number"),
        ("train.epochs=-1", "train.epochs = -1: expected a whole number, 0 or more"),
        ("train.epochs=2.5", "train.epochs = 2.5: expected a whole number"),
        ("train.lr=fast", "train.lr = \"fast\": expected a number"),
        ("sample.fanouts=5", "sample.fanouts = 5: expected a list"),
        ("model.self_loops=yes", "expected true or false"),
        ("model=sage", "model is a section"),
    ] {
        let text = fail(&bench.args(&[set]), 2);
        assert!(text.contains(told), "{set}: {text}");
        for word in ["usize", "f32", "variant", "struct", "i64"] {
            assert!(!text.contains(word), "{set}: {text}");
        }
    }
    let text = fail(&bench.args(&["model.layers=3"]), 2);
    assert!(text.contains("sample.fanouts: expected 3 entries (model.layers), found 2"), "{text}");
}

#[test]
fn options_that_are_keys_are_told_how_to_be_set() {
    let bench = Bench::new(RUN);
    let file = path(&bench.file);
    for (words, told) in [
        (&["train", file, "--epochs", "5"][..], "did you mean --set train.epochs=5?"),
        (&["train", file, "--lr=0.1"], "did you mean --set train.lr=0.1?"),
        (&["train", "--config", file], "gnarl train run.toml"),
    ] {
        let text = fail(words, 2);
        assert!(text.contains(told) && !text.contains("-- --"), "{words:?}: {text}");
    }
}

#[test]
fn missing_run_files_and_folders_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none.toml");
    assert!(fail(&["train", path(&missing)], 1).contains("none.toml"));
    assert!(fail(&["train", path(dir.path())], 1).contains(path(dir.path())));
    let run = dir.path().join("nothing");
    assert!(fail(&["eval", path(&run)], 1).contains("nothing"));
}

#[test]
fn keys_that_do_not_apply_are_warned_about() {
    let bench = Bench::new(RUN);
    for (sets, told) in [
        (&["decoder.name=dot"][..], "decoder.name applies to link prediction and labels of edges"),
        (&["negatives.count=5"], "negatives.count applies to link prediction"),
        (&["loss.margin=2.0"], "loss.margin applies to link prediction"),
        (&["embedding.lr=0.1"], "embedding.lr applies to runs that learn embeddings"),
        (&["model.heads=8"], "model.heads applies to the models gat, gatv2, rgat and hgt"),
        (&["tensor.chunks=2"], "tensor.chunks applies to strategy 'tensor'"),
        (&["cache.policy=lru"], "cache.policy applies to runs with partition.servers"),
        (&["optimizer.momentum=0.9"], "optimizer.momentum applies to sgd"),
        (&["schedule.gamma=0.1"], "schedule.gamma applies to schedule.kind = 'step'"),
        (&["train.strategy=tensor"], "sample.batch_size applies to batches of seeds"),
        (
            &["train.strategy=average", "train.workers=4", "partition.parts=2"],
            "trains 2 parts on 4 workers: 2 of them have nothing to do",
        ),
        (
            &["dataset.split={train=0.4, valid=0.2, test=0.4}"],
            "dataset.split draws 40/20/40 % to train, validate and test on; the dataset's own splits",
        ),
    ] {
        let text = log(&bench.args(sets));
        assert!(text.contains("WARN") && text.contains(told), "{sets:?}: {text}");
    }
    let text = log(&bench.args(&[]));
    assert!(!text.contains("WARN"), "nothing to warn about: {text}");
}

/// Writes text to a file of a folder.
fn write(dir: &Path, name: &str, text: &str) -> String {
    let file = dir.join(name);
    std::fs::write(&file, text).unwrap();
    path(&file).to_string()
}

#[test]
fn columns_that_nobody_reads_are_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    let mut edges = String::from("src,dst,weight,time\n");
    let mut nodes = String::from("id,x,label,split\n");
    for v in 0..40 {
        edges += &format!("{v},{},{},{v}\n", (v + 1) % 40, v + 1);
        nodes += &format!("{v},{v}.5,{},{}\n", v % 2, ["train", "valid", "test"][v % 3]);
    }
    let edges = write(dir.path(), "edges.csv", &edges);
    let nodes = write(dir.path(), "nodes.csv", &nodes);
    let graph = dir.path().join("graph");
    log(&[
        "import",
        "csv",
        "--edges",
        &edges,
        "--weight",
        "weight",
        "--time",
        "time",
        "--nodes",
        &nodes,
        "--id",
        "id",
        "--features",
        "x",
        "--label",
        "label",
        "--split",
        "split",
        "--out",
        path(&graph),
    ]);
    let file = run_file(dir.path(), &graph, RUN);
    let train_by = |model: &str, sampler: &str| {
        let out = format!("output.dir={}", path(&dir.path().join(format!("{model}-{sampler}"))));
        let (model, sampler) = (format!("model.name={model}"), format!("sample.method={sampler}"));
        log(&["train", path(&file), "--set", &model, "--set", &sampler, "--set", &out])
    };
    let train = |model: &str| train_by(model, "neighbor");
    let text = train("gat");
    assert!(text.contains("the column 'weight' of edges _N:_E:_N is unused: gcn"), "{text}");
    assert!(text.contains("the column 'time' of edges"), "{text}");
    assert!(text.contains("edges are directed") && text.contains("--symmetrize"), "{text}");
    let text = train("gcn");
    assert!(!text.contains("'weight'"), "gcn reads weights: {text}");
    let text = train_by("gcn", "weighted");
    assert!(text.contains("heavy edges count twice"), "{text}");
    let text = train_by("gat", "weighted");
    assert!(!text.contains("heavy edges") && !text.contains("'weight'"), "{text}");
}

#[test]
fn a_run_says_what_it_is_and_its_lines_have_their_time() {
    let bench = Bench::new("[train]\nepochs = 4\neval_every = 0\n");
    let text = log(&bench.args(&["train.seed=7"]));
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    for part in [
        env!("CARGO_PKG_VERSION"),
        "1 worker (gradient)",
        "seed 7",
        "2,000 nodes",
        "16 features",
        "4 outputs",
        "to train, validate and test on",
        "sage with ",
    ] {
        assert!(first.contains(part), "'{part}' in: {first}");
    }
    for line in text.lines() {
        let (time, _) = line.split_once(' ').unwrap_or_default();
        assert!(time.len() == 20 && time.ends_with('Z') && time.contains('T'), "{line}");
    }
    assert!(text.contains("epoch 1 of 4: loss ") && text.contains(" left"), "{text}");
    assert_eq!(text.matches("bound by ").count(), 1, "advice comes once: {text}");
    assert!(!text.contains("eval_every"), "0 is the least already: {text}");
}

#[test]
fn a_run_that_goes_on_says_from_where() {
    let bench = Bench::new("[train]\nepochs = 3\ncheckpoint_seconds = 0\n");
    bench.train(&[]);
    std::fs::remove_file(bench.run.join("summary.json")).unwrap();
    let text = log(&[&bench.args(&[])[..], &["--resume"]].concat());
    assert!(text.contains("resuming after epoch 3 of 3"), "{text}");
    let text = fail(&[&bench.args(&["train.lr=0.5"])[..], &["--resume"]].concat(), 2);
    assert!(text.contains("train.lr differs") && text.contains("config.toml"), "{text}");
}

#[test]
fn divergence_is_an_error_with_a_cure() {
    let bench = Bench::new(RUN);
    for strategy in ["gradient", "average", "tensor"] {
        let strategy = format!("train.strategy={strategy}");
        let sets = ["train.lr=1e20", "train.epochs=30", "train.workers=2", &strategy];
        let text = fail(&[&bench.args(&sets)[..], &["--restart"]].concat(), 1);
        assert!(
            text.contains(" in epoch ") && text.contains("lower train.lr (now 1e20)"),
            "{text}"
        );
        assert!(!text.contains("null"), "{text}");
    }
}

#[test]
fn an_unfinished_run_can_be_judged() {
    let bench = Bench::new("[train]\nepochs = 3\n");
    let summary = bench.train(&[]);
    std::fs::remove_file(bench.run.join("summary.json")).unwrap();
    let output = gnarl().args(["eval", path(&bench.run)]).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(err.contains("the run is not finished") && err.contains("epoch "), "{err}");
    let judged: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&judged["finished"], &judged["test"]), (&false.into(), &summary["test"]));
    std::fs::remove_file(bench.run.join("model.safetensors")).unwrap();
    let text = fail(&["eval", path(&bench.run)], 1);
    assert!(text.contains("no weights yet") && text.contains("train.eval_every"), "{text}");
}

#[test]
fn datasets_without_features_or_labels_say_what_to_import() {
    let dir = tempfile::tempdir().unwrap();
    let edges = write(dir.path(), "edges.csv", "src,dst\n0,1\n1,2\n");
    let graph = dir.path().join("bare");
    log(&["import", "csv", "--edges", &edges, "--out", path(&graph)]);
    let file = run_file(dir.path(), &graph, RUN);
    let text = fail(&["train", path(&file)], 1);
    assert!(text.contains("--labels") || text.contains("--features"), "{text}");
    let whole = community(dir.path());
    let file = run_file(dir.path(), &whole, "[task]\nnode_type = 'paper'\n");
    let text = fail(&["train", path(&file)], 2);
    assert!(text.contains("task.node_type") && text.contains("_N"), "{text}");
}
