//! `gnarl compare`.

use crate::common::{Bench, fail, gnarl, path};
use serde_json::Value;

#[test]
fn runs_are_compared_by_settings_and_scores() {
    let bench = Bench::new("[train]\nepochs = 2\n");
    let train = |name: &str, set: &str| {
        let dir = bench.dir.path().join(name);
        bench.train(&[&format!("output.dir={}", path(&dir)), set]);
        dir
    };
    let runs = [("one", "train.lr=0.01"), ("two", "train.lr=0.02"), ("three", "train.epochs=3")];
    let runs = runs.map(|(name, set)| train(name, set));
    // As a run that lasts has it.
    std::fs::remove_file(runs[2].join("summary.json")).unwrap();
    let origin = std::fs::read_to_string(runs[1].join("run.json")).unwrap();
    let origin: Value = serde_json::from_str(&origin).unwrap();
    let words: Vec<&str> =
        origin["command"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert!(words[1] == "train" && words.contains(&"train.lr=0.02"), "{words:?}");
    // A damaged record of the graph is left out.
    std::fs::write(runs[0].join("graph.json"), "{").unwrap();
    let page = bench.dir.path().join("compared.html");
    let mut command = gnarl();
    command.arg("compare").args(&runs).arg("--html").arg(&page);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("graph.json"), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["settings"]["train.epochs"], serde_json::json!(["2", "2", "3"]));
    assert_eq!(found["settings"]["train.lr"][1], "0.02");
    assert_eq!(found["settings"].as_object().unwrap().len(), 2, "{found}");
    let run = &found["runs"][2];
    assert_eq!((&run["finished"], &run["epochs"]), (&Value::from(false), &Value::from(3)));
    assert!(run["valid"]["accuracy"].is_number(), "{found}");
    let line = text.lines().find(|line| line.starts_with("epochs")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["epochs", "2", "2", "3", "of", "3"]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("3 runs") && page.contains("polyline class=\"run2\""));
}

#[test]
fn folders_that_are_no_runs_are_named() {
    let bench = Bench::new("[train]\nepochs = 1\n");
    let other = bench.dir.path().join("graph");
    let text = fail(&["compare", path(&other), path(&other)], 2);
    assert!(
        text.contains(&format!("{} is not a run", path(&other))) && text.contains("hint: "),
        "{text}"
    );
    fail(&["compare", path(&other)], 2);
}
