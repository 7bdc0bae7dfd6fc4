//! The numbers of a run do not depend on who prepares its batches.

use serde_json::Value;

use super::{Started, Stored, assert_same_numbers, workers};
use crate::common::{gnarl, path, results, succeed};

#[test]
fn batches_of_any_number_of_workers_are_those_of_the_run_itself() {
    let stored = Stored::new();
    for ranks in ["train.workers=1", "train.workers=2"] {
        let expected = results(&stored.alone(&[ranks]));
        for count in [1, 2, 4] {
            let run = stored.start(count, &[ranks]);
            let workers = workers(&stored, &run.uri, count);
            let (found, err) = run.succeeds();
            assert_eq!(results(&found), expected, "{ranks}, {count} batch workers: {err}");
            let metrics = stored.bench.dir.path().join("run/metrics.jsonl");
            let lines = std::fs::read_to_string(metrics).unwrap();
            let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
            assert_eq!(last["batch_workers"], count);
            assert!(last["stages"]["receive"].as_f64() > Some(0.0), "{last}");
            let done = workers.into_iter().map(|worker| worker.succeeds().0);
            let done: Vec<Value> = done.collect();
            let of = |key: &str| -> Vec<u64> {
                done.iter().map(|worker| worker[key].as_u64().unwrap()).collect()
            };
            // 4 epochs of 10 batches at least.
            assert!(of("batches").iter().sum::<u64>() >= 40, "{done:?}");
            assert!(of("read_bytes").iter().sum::<u64>() > 0, "{done:?}");
        }
    }
}

#[test]
fn all_parts_in_memory_of_batch_workers_train_as_the_whole_graph() {
    let stored = Stored::new();
    for (method, model) in [("exact", "gat"), ("labor", "gcn"), ("full", "sage")] {
        let (method, model) = (format!("sample.method={method}"), format!("model.name={model}"));
        let sets = [method.as_str(), &model, "disaggregated.resident=6", "disaggregated.slots=1"];
        let whole = [&sets[..2], &["train.strategy=gradient"]].concat();
        let expected = results(&stored.alone(&whole));
        let run = stored.start(1, &sets);
        let _worker = Started::new(&mut stored.worker(&run.uri, &sets), "prepares batches for ");
        let (found, err) = run.succeeds();
        assert_eq!(results(&found), expected, "{method}, {model}: {err}");
    }
}

/// Edges are trained by pairs of parts, and negatives drawn among the nodes in memory.
#[test]
fn edges_of_any_number_of_workers_are_those_of_the_run_itself() {
    let stored = Stored::new();
    let task = ["task.kind=link-prediction", "embedding.dim=8", "sample.batch_size=128"];
    let parts = stored.bench.dir.path().join("parts of edges");
    let mut cut =
        vec!["partition", path(&stored.bench.graph), "--parts", "6", "--layout", "storage"];
    cut.extend(["--task", path(&stored.bench.file), "--out", path(&parts)]);
    task.iter().for_each(|set| cut.extend(["--set", set]));
    succeed(&cut);
    let stored = Stored { place: format!("partition.path={}", parts.display()), ..stored };
    assert_same_numbers(&stored, &task);
}

/// Ranks of a process ask for each feature once a step, and for none that is cached.
#[test]
fn features_that_are_shared_or_cached_change_no_number() {
    let stored = Stored::new();
    let mut sent = Vec::new();
    for (ranks, cache, policy) in [
        (1, "0B", "clockpro"),
        (1, "32KiB", "lru"),
        (1, "1MiB", "fifo"),
        (3, "0B", "clockpro"),
        (3, "32KiB", "clockpro"),
    ] {
        let ranks = format!("train.workers={ranks}");
        let expected = results(&stored.alone(&[&ranks]));
        let memory = format!("cache.memory={cache}");
        let policy = format!("cache.policy={policy}");
        let mut sets = vec![ranks.as_str(), "train.preparation_threads=2"];
        if cache != "0B" {
            sets.extend([memory.as_str(), policy.as_str()]);
        }
        let run = stored.start(2, &sets);
        let workers = workers(&stored, &run.uri, 2);
        let (found, err) = run.succeeds();
        assert_eq!(results(&found), expected, "{sets:?}: {err}");
        assert!(!err.contains("warning"), "{sets:?}: {err}");
        let lines = std::fs::read_to_string(stored.bench.run.join("metrics.jsonl")).unwrap();
        let epochs = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let rates: Vec<_> = epochs.map(|epoch| epoch["cache_hit_rate"].as_f64()).collect();
        let are_told = sets.len() > 2 || ranks != "train.workers=1";
        assert!(rates.iter().all(|rate| rate.is_some() == are_told), "{sets:?}: {lines}");
        let best = rates.iter().flatten().copied().reduce(f64::max);
        assert!(best.is_none_or(|rate| rate > 0.1), "{sets:?}: {lines}");
        let bytes = workers.into_iter().map(|worker| worker.succeeds().0["sent_bytes"].as_u64());
        sent.push(bytes.map(Option::unwrap).sum::<u64>());
    }
    assert!(sent[2] < sent[1] && sent[1] < sent[0], "the larger the cache the less: {sent:?}");
    assert!(sent[4] < sent[3], "{sent:?}");
}

/// Compute workers have no part, and batch workers find the coordinator where a third process is.
#[test]
fn compute_workers_need_no_part() {
    let stored = Stored::new();
    let expected = results(&stored.alone(&[]));
    let elsewhere = stored.bench.dir.path().join("elsewhere");
    std::fs::rename(&stored.parts, &elsewhere).unwrap();
    std::fs::create_dir(&stored.parts).unwrap();
    for entry in std::fs::read_dir(&elsewhere).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            std::fs::copy(&from, stored.parts.join(from.file_name().unwrap())).unwrap();
        }
    }
    let file = path(&stored.bench.file);
    let mut coordinator = gnarl();
    coordinator.args(["work", file, "--role", "coordinator", "--set", &stored.place]);
    let coordinator = Started::new(&mut coordinator, "coordinating at ");
    let place = format!("partition.path={}", elsewhere.display());
    let mut worker = gnarl();
    worker.args(["work", file, "--role", "batch", "--join", &coordinator.uri, "--set", &place]);
    let worker = Started::new(&mut worker, "prepares batches for ");
    let join = format!("disaggregated.join={}", coordinator.uri);
    // Batch workers outlive runs of such a coordinator.
    for _ in 0..2 {
        let run = stored.start(1, &[&join]);
        let (found, err) = run.succeeds();
        assert_eq!(results(&found), expected, "{err}");
    }
    let id = coordinator.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    coordinator.succeeds();
    worker.succeeds();
}
