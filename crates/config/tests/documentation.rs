//! `docs/configuration.md` lists every key of a run file, with its default, and no other.

use std::collections::BTreeMap;

use gnarl_config::RunConfig;
use gnarl_config::{ImportSection, Listen, RandomSplit, Servers, load};
use toml::Value;

const DOCUMENT: &str = include_str!("../../../docs/configuration.md");
/// Tables that users fill with keys of their own.
const FREE: [&str; 2] = ["dataset.import.options", "sample.edge_fanouts"];
/// What stands for "nothing" in the column of defaults.
const NONE: &str = "–";

/// Key and default of each row of the document's tables.
fn documented() -> BTreeMap<String, String> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let key = cells.next()?.trim_end_matches('`').to_string();
        Some((key, cells.next()?.trim_matches('`').to_string()))
    };
    DOCUMENT.lines().filter_map(row).collect()
}

/// Every key of a table, with its value.
fn flatten(prefix: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Table(table) if !FREE.contains(&prefix) => {
            for (key, value) in table {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&key, value, out);
            }
        }
        value => _ = out.insert(prefix.into(), value.clone()),
    }
}

fn keys(config: &RunConfig) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    flatten("", &Value::try_from(config).unwrap(), &mut out);
    out
}

/// A run file in which every key has a value.
fn full() -> RunConfig {
    let mut full = RunConfig::default();
    full.dataset.import = Some(ImportSection::default());
    full.dataset.split = Some(RandomSplit { train: 0.5, valid: 0.2, test: 0.3, seed: 0 });
    full.partition.hops = Some(2);
    full.partition.path = Some("parts".into());
    full.partition.servers = Some(Servers::Ranks);
    full.partition.token_file = Some("token".into());
    full.partition.certificate = Some("cert.pem".into());
    full.partition.tau_vol = Some(500);
    full.partition.constraints = Some(vec![]);
    full.disaggregated.deal = Some(gnarl_config::Deal::Pairs);
    full.disaggregated.join = Some("http://10.0.0.1:7071".into());
    full.disaggregated.token_file = Some("token".into());
    full.disaggregated.certificate = Some("cert.pem".into());
    full.disaggregated.key = Some("key.pem".into());
    full.task.name = Some("ranking".into());
    full.task.node_type = Some("movie".into());
    full.task.edge_type = Some("a:b:c".into());
    full.task.split_by = Some(gnarl_config::SplitBy::Time);
    full.decoder.name = "mlp".into();
    full.loss.name = "mse".into();
    full.sample.name = Some("own".into());
    full.sample.edge_fanouts.insert("a:b:c".into(), vec![5, 5]);
    full.sample.meta_path = vec!["a:b:c".into()];
    full.sample.batches = Some("batches".into());
    full.sample.time = Some(gnarl_config::TimeRule::Last);
    full.negatives.heads = Some("heads.npy".into());
    full.negatives.tails = Some("tails.npy".into());
    full.embedding.lr = Some(0.1);
    full.embedding.bound = Some(0.1);
    full.average.name = Some("own".into());
    full.average.outer_lr = Some(0.7);
    full.average.outer_momentum = Some(0.9);
    full.evaluate.fanouts = vec![10, 10];
    full.evaluate.memory = Some(bytesize::ByteSize::gib(2));
    full.dataset.cache_memory = Some(bytesize::ByteSize::gib(2));
    full.tensor.memory = Some(bytesize::ByteSize::gib(8));
    full.tensor.spill = Some("scratch".into());
    full.train.metric = Some("accuracy".into());
    full.output.tensorboard = true;
    full.output.profile = true;
    full.output.metrics_listen = Listen::try_from(Value::Integer(9400)).ok();
    full.model.input_dropout = Some(0.1);
    full.model.propagations = Some(10);
    full.model.activation = Some(gnarl_nn::Activation::Relu);
    full
}

#[test]
fn every_documented_key_may_be_set() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.toml");
    std::fs::write(&file, "").unwrap();
    for (key, value) in keys(&full()) {
        // Its value may not fit the other defaults; its name has to be known.
        let refused = load(&file, &[format!("{key}={value}")]).err().map(|e| e.to_string());
        let text = refused.unwrap_or_default();
        assert!(!text.contains("unknown key"), "{key}: {text}");
    }
}

#[test]
fn every_key_is_documented_with_its_default() {
    let documented = documented();
    let defaults = keys(&RunConfig::default());
    let known: Vec<String> = keys(&full()).into_keys().collect();
    assert_eq!(documented.keys().cloned().collect::<Vec<_>>(), known);

    for (key, written) in &documented {
        match defaults.get(key) {
            Some(default) => {
                let written: toml::Table = format!("v = {written}").parse().expect(key);
                assert!(same(&written["v"], default), "{key}: {} is not {default}", written["v"]);
            }
            None => assert!(written == NONE || key == "dataset.split.seed", "{key}: {written}"),
        }
    }
}

/// Equal, to the precision of f32.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => *a as f32 == *b as f32,
        _ => a == b,
    }
}
