//! Unused keys of a run: one table of what each key applies to.

mod applied;
mod rules;

use std::collections::BTreeMap;

use toml::Value;

use super::RunConfig;
use applied::Rule;
use rules::RULES;

pub use applied::Applied;

impl Applied<'_> {
    /// One line per rule that the run breaks: the keys with values other than their defaults that
    /// have no effect, and what they apply to.
    pub fn unused(&self) -> Vec<String> {
        let (set, defaults) = (keys(self.run), keys(&RunConfig::default()));
        let mut found: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (key, value) in &set {
            if defaults.get(key) == Some(value) {
                continue;
            }
            let broken = |(_, rule): &(usize, &Rule)| rule.names(key) && !(rule.applies)(self);
            if let Some((number, _)) = RULES.iter().enumerate().find(broken) {
                found.entry(number).or_default().push(key);
            }
        }
        let line = |(number, keys): (usize, Vec<&str>)| {
            let verb = if keys.len() == 1 { "applies" } else { "apply" };
            format!("{} {verb} to {}", keys.join(", "), RULES[number].to)
                + &format!(", and {} no effect here", if keys.len() == 1 { "has" } else { "have" })
        };
        found.into_iter().map(line).collect()
    }
}

/// Every key of a run with its value; tables with keys of their own are values.
fn keys(config: &RunConfig) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    flatten("", config.to_table().unwrap_or_default(), &mut out);
    out
}

fn flatten(prefix: &str, table: toml::Table, out: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        let key = format!("{prefix}{key}");
        match value {
            Value::Table(inner)
                if !["dataset.import.options", "sample.edge_fanouts", "model.activation"]
                    .contains(&key.as_str()) =>
            {
                flatten(&format!("{key}."), inner, out);
            }
            value => _ = out.insert(key, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that apply to every run.
    const ALWAYS: [&str; 25] = [
        "dataset.path",
        "dataset.normalize",
        "dataset.import.format",
        "dataset.import.options",
        "task.kind",
        "model.name",
        "model.decoupled",
        "sample.source",
        "train.strategy",
        "train.engine",
        "train.workers",
        "train.threads",
        "train.epochs",
        "train.lr",
        "train.seed",
        "train.metric",
        "train.clip_norm",
        "train.pipeline",
        "train.checkpoint_seconds",
        "train.deadline_seconds",
        "optimizer.name",
        "schedule.kind",
        "schedule.warmup",
        "evaluate.memory",
        "evaluate.splits",
    ];

    /// Sections that apply to every run, or to other commands.
    const ALWAYS_SECTIONS: [&str; 2] = ["plan.", "output."];

    /// Lines about a run of node classification in a homogeneous graph.
    fn lines(text: &str) -> Vec<String> {
        let run: RunConfig = toml::from_str(text).unwrap();
        Applied { run: &run, heterogeneous: false, tables: false }.unused()
    }

    #[test]
    fn every_documented_key_has_a_rule_or_applies_always() {
        let document = include_str!("../../../../docs/configuration.md");
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
        let keys: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        assert!(keys.len() > 100, "{}", keys.len());
        for key in &keys {
            let always = ALWAYS.contains(key)
                || ALWAYS_SECTIONS.iter().any(|section| key.starts_with(section));
            let ruled = RULES.iter().any(|rule| rule.names(key));
            assert!(always != ruled, "{key}: {}", if always { "both" } else { "neither" });
        }
        for name in ALWAYS.iter().chain(RULES.iter().flat_map(|rule| rule.keys)) {
            let known = keys.iter().any(|key| key.starts_with(name.trim_end_matches('*')));
            assert!(known, "{name} is not documented");
        }
    }

    #[test]
    fn examples_set_no_key_in_vain() {
        let mut folders = vec![std::path::PathBuf::from("../../examples")];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name.ends_with(".toml") && name != "Cargo.toml" {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let run: RunConfig = toml::from_str(&text).unwrap();
                    let heterogeneous = run.task.node_type.is_some();
                    let tables =
                        heterogeneous || ["none", "rgcn"].contains(&run.model.name.as_str());
                    let found = Applied { run: &run, heterogeneous, tables }.unused();
                    assert!(found.is_empty(), "{}: {found:?}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn keys_in_vain_are_told_with_what_they_apply_to() {
        let cases = [
            ("decoder.name = 'dot'\ndecoder.n3 = 0.1", "decoder.n3, decoder.name apply to link"),
            ("negatives.count = 5", "negatives.count applies to link prediction"),
            ("loss.margin = 3.0", "loss.margin applies to link prediction and regression"),
            ("embedding.dim = 7", "model.hidden wide"),
            ("embedding.lr = 0.1", "runs that learn embeddings"),
            ("model.heads = 8", "the models gat, gatv2, rgat and hgt"),
            ("model.teleport = 0.1", "model.decoupled"),
            ("sample.clusters = 7", "'cluster-gcn'"),
            (
                "train.strategy = 'tensor'\nsample.fanouts = [5, 5]",
                "strategy 'tensor' takes the whole",
            ),
            ("train.strategy = 'tensor'\nsample.batch_size = 5", "batches of seeds"),
            ("tensor.chunks = 4", "strategy 'tensor'"),
            ("cache.policy = 'lru'", "partition.servers"),
            ("partition.parts = 2\npartition.tau_vol = 5", "the partitioner spring"),
            ("partition.algorithm = 'metis'", "partition.parts above 1"),
            ("train.strategy = 'tensor'\ndataset.read_ahead = 'always'", "batches of nodes"),
            (
                "dataset.read_ahead = 'never'\ndataset.cache_memory = '1GiB'",
                "dataset.cache_memory applies to batches that read ahead",
            ),
            ("train.sync_every = 5", "strategy 'average'"),
            ("average.outer = 'slowmo'", "strategy 'average' on several parts"),
            (
                "train.strategy = 'average'\npartition.parts = 4\naverage.outer_lr = 0.5",
                "'slowmo', 'nesterov' and 'custom'",
            ),
            (
                "train.strategy = 'average'\npartition.parts = 4\nsample.batch_size = 0\n\
                 average.batch = 'local'",
                "sample.batch_size above 0",
            ),
            ("train.patience = 5\ntrain.eval_every = 0", "train.eval_every is 0"),
            ("train.score_training = true\nevaluate.splits = []", "evaluate.splits is empty"),
            ("optimizer.momentum = 0.9", "to sgd"),
            ("optimizer.name = 'sgd'\noptimizer.beta1 = 0.5", "to adam"),
            ("schedule.gamma = 0.1", "schedule.kind = 'step'"),
            ("task.valid = 0.1", "link prediction"),
            ("model.in_dim = 5", "follow from the dataset"),
        ];
        for (text, told) in cases {
            let found = lines(text);
            assert!(found.len() == 1 && found[0].contains(told), "{text}: {found:?}");
        }
    }

    #[test]
    fn defaults_and_keys_that_apply_are_not_told() {
        for text in [
            "",
            "decoder.degree = 1\nnegatives.count = 256",
            "model.name = 'gat'\nmodel.heads = 8\nmodel.attention_dropout = 0.6",
            "task.kind = 'link-prediction'\nnegatives.count = 5\ndecoder.name = 'dot'\nembedding.dim = 9",
            "train.strategy = 'average'\ntrain.sync_every = 3\npartition.parts = 4",
            "train.strategy = 'average'\npartition.parts = 4\naverage.outer = 'slowmo'\naverage.outer_momentum = 0.2",
            "schedule.kind = 'cosine'\nschedule.floor = 0.1\noptimizer.name = 'adamw'",
            "sample.method = 'saint-walk'\nsample.walk_length = 3\nsample.budget = 9\nsample.accumulate = 2",
        ] {
            assert_eq!(lines(text), Vec::<String>::new(), "{text}");
        }
    }
}
