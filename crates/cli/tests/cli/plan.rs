//! `gnarl plan`

use crate::common::{Bench, community, fail, gnarl, path, succeed};

#[test]
fn predictions_stand_beside_what_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let words = ["plan", path(&graph), "--parts", "2,4", "--algorithms", "random,spring"];
    let result = succeed(&[&words[..], &["--check"]].concat());
    let predictions = result["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 4);
    for p in predictions {
        // The sample is the whole graph here, so that its cut is the cut.
        let (predicted, measured) = (&p["edge_cut"], &p["measured"]["edge_cut"]);
        let ratio = predicted.as_f64().unwrap() / measured.as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.1, "{p}");
        assert!(p["epoch_bytes"].as_f64().unwrap() > 0.0 && p["fits"] == true, "{p}");
    }
    let small = succeed(&[&words[..], &["--memory", "1k", "--sample", "500"]].concat());
    assert_eq!(small["sample_nodes"], 500);
    assert!(small["predictions"].as_array().unwrap().iter().all(|p| p["fits"] == false));
}

#[test]
fn plans_are_tables_and_refuse_what_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let output = gnarl().args(["plan", path(&graph)]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in ["2000 nodes", "replication", "metis", "bytes/epoch"] {
        assert!(text.contains(name), "no '{name}' in:\n{text}");
    }
    assert!(fail(&["plan", path(&graph), "--algorithms", "mettis"], 2).contains("'metis'"));
    assert!(fail(&["plan", path(&graph), "--parts", "5000"], 2).contains("5000 parts"));
}

/// `gnarl plan run.toml` compares strategies, and `auto` trains by the one that it says.
#[test]
fn strategies_are_compared_for_a_run_file() {
    let bench = Bench::new("");
    let file = path(&bench.file);
    let args = ["plan", file, "--workers", "1,2", "--set", "model.name=gcn"];
    let result = succeed(&args);
    let all = result["predictions"].as_array().unwrap();
    assert_eq!(all.len(), 6, "gradient and tensor in both forms, on 1 and on 2: {result}");
    for p in all {
        assert!(p["seconds"].as_f64().unwrap() > 0.0, "{p}");
        let sent = p["work"]["sent_bytes"].as_f64().unwrap();
        assert_eq!(sent > 0.0, p["workers"] == 2, "{p}");
    }
    let refused = result["refused"].as_array().unwrap();
    assert!(refused.iter().all(|r| r["strategy"] == "average"), "{result}");
    let output = gnarl().args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict = result["verdict"].as_str().unwrap();
    for shown in ["2000 nodes", "tensor decoupled*", "another model", "cannot: ", verdict] {
        assert!(text.contains(shown), "no '{shown}' in:\n{text}");
    }
    let auto = ["train.strategy=auto", "train.workers=2", "model.name=gcn", "train.epochs=2"];
    let slow = ["plan.edge=1.0", "plan.link=1e12"];
    let sets = [&auto[..], &slow].concat();
    bench.train(&sets);
    let config = std::fs::read_to_string(bench.run.join("config.toml")).unwrap();
    assert!(config.contains("strategy = \"tensor\""), "{config}");
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let plan = succeed(&[&["plan", file][..], &sets].concat());
    assert_eq!(plan["fastest"]["strategy"], "tensor");
    let measured = succeed(&["plan", file, "--measure"]);
    for rate in ["flops", "gather", "stream"] {
        assert!(measured["rates"][rate].as_f64().unwrap() > 1e6, "{measured}");
    }
}

/// Batch workers are priced for runs on parts in memory, from predictions or from what a run has measured.
#[test]
fn batch_workers_are_priced() {
    let bench = Bench::new("[train]\nepochs = 3\npipeline = \"off\"\n");
    let sets = ["train.strategy=disaggregated", "partition.parts=6", "disaggregated.resident=2"];
    bench.train(&sets);
    let prices = ["plan.compute_price=24.48", "plan.batch_price=2.76"];
    let words: Vec<&str> = sets.iter().chain(&prices).flat_map(|set| ["--set", set]).collect();
    let args = [&["plan", path(&bench.file)][..], &words].concat();
    let predicted = succeed(&args);
    let measured = succeed(&[&args[..], &["--from", path(&bench.run)]].concat());
    for plan in [&predicted, &measured] {
        let plan = &plan["batch_workers"];
        let cheapest = plan["cheapest"].as_u64().unwrap() as usize;
        let choices = plan["choices"].as_array().unwrap();
        let cost = |choice: &serde_json::Value| choice["cost"].as_f64().unwrap();
        assert!(choices.iter().all(|choice| cost(choice) >= cost(&choices[cheapest])), "{plan}");
        for choice in choices {
            let workers = choice["batch_workers"].as_f64().unwrap();
            let hours = choice["seconds"].as_f64().unwrap() / 3600.0;
            let expected = hours * (24.48 + 2.76 * workers);
            assert!((cost(choice) / expected - 1.0).abs() < 1e-9, "{choice}");
        }
    }
    assert_ne!(predicted["batch_workers"]["sides"], measured["batch_workers"]["sides"]);
    let output = gnarl().args(&args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for shown in ["batch workers", "cost", "cost least", "disaggregated on 1 worker"] {
        assert!(text.contains(shown), "no '{shown}' in:\n{text}");
    }
    let from = ["--from", path(&bench.run)];
    let text = fail(&[&["plan", path(&bench.file)], &from[..]].concat(), 2);
    assert!(text.contains("runs of strategy 'disaggregated'"), "{text}");
    bench.train(&[&sets[..], &["train.pipeline=epoch"]].concat());
    let text = fail(&[&args[..], &from].concat(), 2);
    assert!(text.contains("train.pipeline=off"), "{text}");
}

#[test]
fn options_of_the_other_plan_are_refused() {
    let bench = Bench::new("");
    let (file, graph) = (path(&bench.file), path(&bench.graph));
    assert!(fail(&["plan", graph, "--workers", "2"], 2).contains("are for run files"));
    assert!(fail(&["plan", file, "--check"], 2).contains("--check requires a dataset directory"));
    assert!(fail(&["plan", file, "--workers", "0"], 2).contains("number of workers '0'"));
    let sets = ["plan", file, "--set", "plan.link=0"];
    assert!(fail(&sets, 2).contains("plan.link '0'"));
    let links = ["plan", file, "--set", "task.kind=link-prediction", "--set", "model.name=none"];
    assert!(fail(&links, 2).contains("only tasks of nodes are predicted"));
}
