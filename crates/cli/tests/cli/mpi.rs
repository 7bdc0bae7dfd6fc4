//! Training under `mpirun`.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

#[cfg(feature = "serve")]
use crate::common::results;
use crate::common::{Bench, gnarl, path, succeed};
use crate::metrics::{Running, free, listen, value};
#[cfg(feature = "serve")]
use crate::work::{Started, Stored};
use serde_json::Value;

const RUN: &str = "[partition]\nparts = 4\n[train]\nepochs = 4\ndeadline_seconds = 30\n";

/// A launcher of that many ranks.
pub fn launcher(ranks: usize) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--oversubscribe", "-n", &ranks.to_string()]);
    // Containers often have no other user.
    mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    mpirun
}

/// `gnarl` with the arguments, as that many ranks.
fn mpirun(ranks: usize, args: &[&str]) -> Command {
    let mut mpirun = launcher(ranks);
    mpirun.arg(gnarl().get_program()).args(args);
    mpirun
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one line of JSON that all ranks together print.
pub fn result(output: &Output) -> Value {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert_eq!(out.lines().count(), 1, "one rank has a result: {out}");
    serde_json::from_str(&out).expect("JSON")
}

/// Ranks in processes of their own ask the same batch workers.
#[cfg(feature = "serve")]
#[test]
fn batch_workers_serve_processes() {
    let stored = Stored::new();
    for ranks in [2, 3] {
        let expected = results(&stored.alone(&[&format!("train.workers={ranks}")]));
        let sets = [&stored.place, "disaggregated.batch_workers=2"];
        let args = [&stored.bench.args(&sets)[..], &["--restart", "--engine", "mpi"]].concat();
        let run = Started::new(&mut mpirun(ranks, &args), "--join ");
        let start = |_| Started::new(&mut stored.worker(&run.uri, &[]), "prepares batches for ");
        let workers: Vec<Started> = (0..2).map(start).collect();
        let (found, err) = run.succeeds();
        assert_eq!(results(&found), expected, "{ranks} ranks: {err}");
        workers.into_iter().for_each(|worker| drop(worker.succeeds()));
    }
}

/// No rank fetches parts that it reads by ranges.
#[cfg(all(feature = "serve", feature = "cloud"))]
#[test]
fn processes_read_parts_of_a_store() {
    let stored = Stored::new();
    let expected = results(&stored.alone(&["train.workers=2"]));
    let place = stored.place.replacen('=', "=file://", 1);
    let args = [&stored.bench.args(&[&place])[..], &["--restart", "--engine", "mpi"]].concat();
    let cache = stored.bench.dir.path().join("cache");
    let found = result(&mpirun(2, &args).env("GNARL_CACHE", &cache).output().unwrap());
    assert_eq!(results(&found), expected);
    let cached = crate::common::files(&cache);
    assert!(cached.contains(&"partition.json".to_string()), "{cached:?}");
    assert!(!cached.iter().any(|name| name.ends_with("features.npy")), "{cached:?}");
}

#[test]
fn processes_give_the_losses_of_threads() {
    let bench = Bench::new(RUN);
    let naive = &["train.strategy=tensor", "partition.parts=1"][..];
    let decoupled = [naive, &["model.name=gat", "model.decoupled=true"]].concat();
    let chunks = [naive, &["model.name=gcn", "tensor.chunks=5"]].concat();
    let links =
        [naive, &["task.kind=link-prediction", "embedding.dim=8", "negatives.count=16"]].concat();
    let strategies = [
        (&["train.strategy=gradient"][..], &[2, 4][..]),
        (&["train.strategy=average"], &[2, 3]),
        (&["train.strategy=disaggregated", "disaggregated.resident=2"], &[2, 3]),
        (naive, &[2, 3]),
        (&decoupled, &[2, 3]),
        (&chunks, &[2, 3]),
        (&links, &[2, 3]),
        // Columns, since drawing an edge takes a second.
        (&["train.strategy=auto", "partition.parts=1", "plan.edge=1.0"], &[2]),
    ];
    for (strategy, sizes) in strategies {
        let args = bench.args(strategy);
        for &ranks in sizes {
            let workers = format!("train.workers={ranks}");
            let threads = succeed(&[&args[..], &["--set", &workers]].concat());
            let args = [&args[..], &["--engine", "mpi", "--restart"]].concat();
            let processes = result(&mpirun(ranks, &args).output().unwrap());
            for key in ["losses", "test", "workers"] {
                assert_eq!(threads[key], processes[key], "{strategy:?}, {ranks} ranks");
            }
        }
    }
}

#[test]
fn processes_learn_the_rows_of_threads() {
    let bench = Bench::new(RUN);
    let sets = [
        "task.kind=link-prediction",
        "model.name=none",
        "decoder.name=complex",
        "embedding.dim=8",
        "negatives.kind=local",
        "negatives.count=16",
    ];
    let args = bench.args(&sets);
    let model = || std::fs::read(bench.run.join("model.safetensors")).unwrap();
    for ranks in [1, 4] {
        let workers = format!("train.workers={ranks}");
        let threads = succeed(&[&args[..], &["--restart", "--set", &workers]].concat());
        let rows = model();
        let args = [&args[..], &["--engine", "mpi", "--restart"]].concat();
        let processes = result(&mpirun(ranks, &args).output().unwrap());
        for key in ["losses", "test", "workers"] {
            assert_eq!(threads[key], processes[key], "{ranks} ranks");
        }
        assert!(rows == model(), "{ranks} ranks: the rows differ");
    }
}

#[test]
fn a_killed_rank_ends_the_run_which_then_goes_on_to_the_same_numbers() {
    let bench = Bench::new(RUN);
    let mut args = bench.args(&["train.epochs=300", "train.checkpoint_seconds=0"]);
    args.extend(["--engine", "mpi"]);
    let mut run = mpirun(2, &args).spawn().unwrap();
    let start = Instant::now();
    let wait = |what: &str| {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    };
    let lines = |name: &str| {
        std::fs::read_to_string(bench.run.join(name)).map_or(0, |text| text.lines().count())
    };
    while lines("metrics.jsonl") < 3 {
        wait("the run does not start");
    }
    assert!(run.try_wait().unwrap().is_none(), "too fast to be interrupted");
    let victim =
        Command::new("pkill").args(["-9", "-n", "-f", path(bench.dir.path())]).status().unwrap();
    assert!(victim.success());
    let status = loop {
        match run.try_wait().unwrap() {
            Some(status) => break status,
            None => wait("the run goes on without a rank"),
        }
    };
    assert!(!status.success());
    let resumed = result(&mpirun(2, &[&args[..], &["--resume"]].concat()).output().unwrap());
    let whole = result(&mpirun(2, &[&args[..], &["--restart"]].concat()).output().unwrap());
    assert_eq!(resumed["losses"], whole["losses"]);
}

/// The command of ranks of which each pair stands for a machine, as a shell runs it.
#[cfg(feature = "serve")]
fn in_pairs(args: &[&str]) -> String {
    let gnarl = gnarl().get_program().display().to_string();
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    format!("GNARL_HOST=m$((OMPI_COMM_WORLD_RANK / 2)) exec {gnarl} {}", words.join(" "))
}

/// `gnarl` with the arguments on two machines with a rank each, one of which has a fault.
#[cfg(all(feature = "serve", feature = "faults"))]
pub fn machines(args: &[String], fault: Option<(usize, &str)>) -> Command {
    let words: Vec<String> = args.iter().map(|word| format!(" '{word}'")).collect();
    let fault = fault.map(|(rank, what)| {
        format!("[ $OMPI_COMM_WORLD_RANK != {rank} ] || export FAILPOINTS='{what}'; ")
    });
    let (fault, gnarl) = (fault.unwrap_or_default(), gnarl().get_program().display().to_string());
    let command =
        format!("{fault}GNARL_HOST=m$OMPI_COMM_WORLD_RANK exec '{gnarl}'{}", words.concat());
    let mut mpirun = launcher(2);
    mpirun.args(["sh", "-c", &command]);
    mpirun
}

#[test]
fn the_profile_of_processes_has_all_ranks() {
    let bench = Bench::new(RUN);
    let args = [&bench.args(&[])[..], &["--engine", "mpi", "--profile"]].concat();
    let output = mpirun(2, &args).output().unwrap();
    result(&output);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(bench.run.join(name)).unwrap()).unwrap()
    };
    let events = read("trace.json")["traceEvents"].as_array().unwrap().clone();
    let totals = read("profile.json")["spans"].as_array().unwrap().clone();
    for rank in 0..2 {
        for name in ["sample", "matrix product", "gradients"] {
            let is_span = |event: &&Value| event["pid"] == rank && event["name"] == name;
            assert!(events.iter().any(|event| is_span(&event)), "{rank}: {name}");
            let is_total = |total: &&Value| total["rank"] == rank && total["name"] == name;
            let total = totals.iter().find(is_total).unwrap();
            assert_eq!(total["count"], events.iter().filter(is_span).count());
        }
    }
    let report = std::fs::read_to_string(bench.run.join("report.html")).unwrap();
    assert!(
        report.contains(">Profile</h2>") && report.contains("matrix product (weight gradient)")
    );
    assert!(text(&output.stderr).contains("ui.perfetto.dev"));
}

#[test]
fn processes_infer_what_one_does() {
    let bench = Bench::new(RUN);
    succeed(&bench.args(&[]));
    let infer = |name: &str| {
        let out = bench.dir.path().join(name);
        let what = "--what=embeddings,logits";
        ["infer", path(&bench.run), "--out", path(&out), what].map(String::from).to_vec()
    };
    succeed(&infer("one.parquet").iter().map(String::as_str).collect::<Vec<_>>());
    for ranks in [2, 3] {
        let name = format!("{ranks}.parquet");
        let args = [infer(&name), vec!["--engine".into(), "mpi".into()]].concat();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let found = result(&mpirun(ranks, &args).output().unwrap());
        assert_eq!(found["nodes"], 2000);
        let [one, other] = ["one.parquet", &name].map(|name| bench.dir.path().join(name));
        assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap(), "{ranks} ranks");
    }
}

/// Ranks on several hosts evaluate together, on one host the first of them does.
#[cfg(feature = "serve")]
#[test]
fn machines_evaluate_as_one_does() {
    let bench = Bench::new(RUN);
    let nodes = ["train.strategy=gradient", "evaluate.memory=1MiB"];
    let links = ["task.kind=link-prediction", "negatives.count=16", "train.epochs=2"];
    for sets in [&nodes[..], &links] {
        let args = [&bench.args(sets)[..], &["--engine", "mpi", "--restart"]].concat();
        for ranks in [3, 4] {
            let one = result(&mpirun(ranks, &args).output().unwrap());
            let run = launcher(ranks).args(["sh", "-c", &in_pairs(&args)]).output().unwrap();
            let found = result(&run);
            assert_eq!((&one["test"], &one["valid"]), (&found["test"], &found["valid"]));
        }
    }
}

#[cfg(feature = "serve")]
#[test]
fn machines_serve_their_parts_to_each_other() {
    let bench = Bench::new(RUN);
    let parts = bench.dir.path().join("parts");
    let graph = bench.dir.path().join("graph");
    let cut = ["partition", path(&graph), "--algorithm", "spring", "--parts", "6", "--out"];
    succeed(&[&cut[..], &[path(&parts)]].concat());
    let whole = succeed(&bench.args(&["sample.method=exact"]));
    let parts_path = format!("partition.path={}", path(&parts));
    let sets = ["sample.method=exact", &parts_path, "partition.servers=ranks", "cache.memory=1MiB"];
    let args = [&bench.args(&sets)[..], &["--engine", "mpi", "--restart"]].concat();
    let hot = ["--set", "cache.policy=fixed", "--set", "cache.lists=1MiB"];
    for (ranks, cache) in [(2, &[][..]), (5, &[]), (4, &hot)] {
        let args = [&args[..], cache].concat();
        let run = launcher(ranks).args(["sh", "-c", &in_pairs(&args)]).output().unwrap();
        let divided = result(&run);
        assert_eq!(whole["test"], divided["test"], "{ranks} ranks");
        let losses = |of: &Value| -> Vec<f64> {
            of["losses"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect()
        };
        let apart = losses(&whole).into_iter().zip(losses(&divided)).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-5, "{ranks} ranks: {whole} {divided}");
    }
    std::fs::remove_dir_all(parts.join("part-5")).unwrap();
    let output = launcher(4).args(["sh", "-c", &in_pairs(&args)]).output().unwrap();
    let err = text(&output.stderr);
    assert!(!output.status.success() && err.contains("m1 is to have part 5"), "{err}");
}

#[cfg(feature = "serve")]
#[test]
fn machines_serve_typed_parts_to_each_other() {
    let bench = Bench::new("");
    let dir = bench.dir.path();
    let graph = dir.join("typed");
    let made = ["generate", "typed", "--nodes", "1600", "--edges", "16000", "--communities", "4"];
    succeed(&[&made[..], &["--features", "8", "--out", path(&graph)]].concat());
    let data = format!("dataset.path={}", path(&graph));
    let sets =
        ["task.node_type=paper", "model.name=rgcn", "model.hidden=16", "sample.method=exact"];
    let sizes = ["sample.fanouts=[4,3]", "sample.batch_size=100", "train.epochs=3"];
    let whole = succeed(&bench.args(&[&sets[..], &sizes, &[&data]].concat()));
    for (layout, algorithm) in [("edge-cut", "ldg"), ("vertex-cut", "adadne")] {
        let parts = dir.join(layout);
        let how = ["--layout", layout, "--algorithm", algorithm, "--parts", "4", "--out"];
        succeed(&[&["partition", path(&graph)], &how[..], &[path(&parts)]].concat());
        let place = format!("partition.path={}", path(&parts));
        let divided = [&place, "partition.servers=ranks", "cache.memory=1MiB"];
        let args = bench.args(&[&sets[..], &sizes, &divided].concat());
        let args = [&args[..], &["--engine", "mpi", "--restart"]].concat();
        let found = result(&launcher(4).args(["sh", "-c", &in_pairs(&args)]).output().unwrap());
        let losses = |of: &Value| -> Vec<f64> {
            of["losses"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect()
        };
        let apart = losses(&whole).into_iter().zip(losses(&found)).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-4, "{layout}: {whole} {found}");
        let score = |of: &Value| of["test"]["accuracy"].as_f64().unwrap();
        assert!((score(&whole) - score(&found)).abs() < 0.01, "{layout}: {whole} {found}");
    }
}

/// Trains on two machines with two ranks each, neither of which has a file of the other's parts, of four.
#[cfg(feature = "serve")]
fn on_two_machines(bench: &Bench, sets: &[&str], parts: &std::path::Path) -> Value {
    for machine in 0..2 {
        let own = format!("{} m{machine}", path(parts));
        assert!(Command::new("cp").args(["-r", path(parts), &own]).status().unwrap().success());
        for other in [2 - 2 * machine, 3 - 2 * machine] {
            std::fs::remove_dir_all(format!("{own}/part-{other}")).unwrap();
        }
    }
    let divided = ["dataset.path=", "partition.servers=ranks", "cache.memory=1MiB"];
    let args = bench.args(&[sets, &divided].concat());
    let args = [&args[..], &["--engine", "mpi", "--restart"]].concat();
    let place = format!("{} m$((OMPI_COMM_WORLD_RANK / 2))", path(parts));
    let script = format!("{} --set \"partition.path={place}\"", in_pairs(&args));
    result(&launcher(4).args(["sh", "-c", &script]).output().unwrap())
}

/// Parts that train alone need neither the dataset nor the parts of another machine.
#[cfg(feature = "serve")]
#[test]
fn machines_average_parts_of_their_own() {
    let bench = Bench::new("");
    let parts = bench.dir.path().join("parts");
    let how = ["--algorithm", "ldg", "--parts", "4", "--hops", "2", "--out"];
    succeed(&[&["partition", path(&bench.graph)], &how[..], &[path(&parts)]].concat());
    let sets = ["train.strategy=average", "train.epochs=4", "train.sync_every=2"];
    let place = format!("partition.path={}", path(&parts));
    let whole = succeed(&bench.args(&[&sets[..], &[&place]].concat()));
    let found = on_two_machines(&bench, &sets, &parts);
    assert_eq!(whole["losses"], found["losses"]);
    let score = |of: &Value| of["test"]["accuracy"].as_f64().unwrap();
    assert!((score(&whole) - score(&found)).abs() < 0.003, "{whole} {found}");
}

/// Tasks of edges on two machines, neither of which has a file of the other's parts.
#[cfg(feature = "serve")]
#[test]
fn machines_predict_edges_from_parts_of_their_own() {
    let bench = Bench::new("");
    let dir = bench.dir.path();
    let typed = dir.join("typed");
    let made = ["generate", "typed", "--nodes", "1600", "--edges", "16000", "--communities", "4"];
    succeed(&[&made[..], &["--features", "8", "--out", path(&typed)]].concat());
    let data = format!("dataset.path={}", path(&typed));
    let links = ["task.kind=link-prediction", "embedding.dim=16", "negatives.count=16"];
    let sizes = ["sample.method=exact", "sample.fanouts=[4,3]", "sample.batch_size=300"];
    let sizes = [&links[..], &sizes, &["train.epochs=3", "negatives.filtered=true"]].concat();
    let of_types = [data.as_str(), "task.edge_type=paper:r0:author", "model.name=rgcn"];
    for (graph, model) in [(&bench.graph, &["model.name=gcn"][..]), (&typed, &of_types)] {
        let sets = [&sizes[..], model].concat();
        let whole = succeed(&[&bench.args(&sets)[..], &["--restart"]].concat());
        for (layout, algorithm) in [("edge-cut", "ldg"), ("vertex-cut", "adadne")] {
            let name = format!("{layout} {}", model.len());
            let parts = dir.join(&name);
            let how = ["--layout", layout, "--algorithm", algorithm, "--parts", "4", "--out"];
            let task = ["--task", path(&bench.file)];
            let task_sets = sets.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
            let cut = [&["partition", path(graph)], &how[..], &[path(&parts)], &task, &task_sets];
            succeed(&cut.concat());
            let found = on_two_machines(&bench, &sets, &parts);
            let losses = |of: &Value| -> Vec<f64> {
                of["losses"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect()
            };
            let apart = losses(&whole).into_iter().zip(losses(&found)).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-4, "{name}: {whole} {found}");
            let score = |of: &Value| of["test"]["roc_auc"].as_f64().unwrap();
            assert!((score(&whole) - score(&found)).abs() < 0.003, "{name}: {whole} {found}");
        }
    }
}

#[test]
fn every_rank_serves_metrics_of_its_own() {
    let bench = Bench::new(RUN);
    let [first, second] = free();
    let listen = listen(first);
    let mut args = bench.args(&["train.epochs=300", &listen]);
    args.extend(["--engine", "mpi"]);
    let mut run = mpirun(2, &args);
    let mut run = Running(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let epoch = |rank: usize| format!("gnarl_epoch{{rank=\"{rank}\"}}");
    for (rank, address) in [first, second].into_iter().enumerate() {
        let page = run.page(address, |page| value(page, &epoch(rank)) >= Some(2.0));
        assert_eq!(value(&page, &epoch(1 - rank)), None, "{page}");
    }
    assert!(run.0.wait().unwrap().success());

    let _taken = TcpListener::bind(second).unwrap();
    let output = mpirun(2, &[&args[..], &["--restart"]].concat()).output().unwrap();
    let err = text(&output.stderr);
    let said = format!("output.metrics_listen: cannot listen on {second}");
    assert!(!output.status.success() && err.contains(&said), "{err}");
    assert!(bench.run.join("summary.json").exists(), "the old run is as it was");
}

#[test]
fn ranks_with_different_settings_are_told() {
    let bench = Bench::new(RUN);
    let script = format!(
        "exec {} {} --engine mpi --set train.seed=$OMPI_COMM_WORLD_RANK",
        gnarl().get_program().display(),
        bench.args(&[]).join(" ")
    );
    let output = launcher(2).args(["sh", "-c", &script]).output().unwrap();
    assert!(!output.status.success());
    let err = text(&output.stderr);
    assert!(err.contains("rank 1 on ") && err.contains("'seed = 1', not 'seed = 0'"), "{err}");
}

#[test]
fn processes_that_know_nothing_of_each_other_are_refused() {
    let bench = Bench::new(RUN);
    let output = mpirun(2, &bench.args(&[])).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    assert!(err.contains("one process; found 2") && err.contains("--engine mpi"), "{err}");
}
