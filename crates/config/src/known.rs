//! The keys of run files.

use toml::{Table, Value};

use super::RunConfig;

/// Every key a run file may have, as a table with placeholder values.
pub(super) fn known() -> Table {
    let mut table = RunConfig::default().to_table().unwrap_or_default();
    let mut add = |section: &str, key: &str, value: Value| {
        if let Some(Value::Table(section)) = table.get_mut(section) {
            section.insert(key.into(), value);
        }
    };
    let keys = |names: &[&str]| {
        Value::Table(names.iter().map(|n| (n.to_string(), Value::Boolean(true))).collect())
    };
    add("dataset", "import", keys(&["format", "options"]));
    add("dataset", "cache_memory", Value::Boolean(true));
    add("dataset", "split", keys(&["train", "valid", "test", "seed"]));
    for key in ["hops", "path", "tau_vol", "constraints", "servers", "token_file", "certificate"] {
        add("partition", key, Value::Boolean(true));
    }
    for key in ["deal", "join", "token_file", "certificate", "key"] {
        add("disaggregated", key, Value::Boolean(true));
    }
    add("sample", "batches", Value::Boolean(true));
    for key in ["heads", "tails"] {
        add("negatives", key, Value::Boolean(true));
    }
    for key in ["lr", "bound"] {
        add("embedding", key, Value::Boolean(true));
    }
    for key in ["name", "outer_lr", "outer_momentum"] {
        add("average", key, Value::Boolean(true));
    }
    for key in ["memory", "fanouts"] {
        add("evaluate", key, Value::Boolean(true));
    }
    for key in ["memory", "spill"] {
        add("tensor", key, Value::Boolean(true));
    }
    for key in ["name", "node_type", "edge_type", "split_by"] {
        add("task", key, Value::Boolean(true));
    }
    for section in ["decoder", "loss"] {
        add(section, "name", Value::Boolean(true));
    }
    for key in ["edge_fanouts", "meta_path", "name", "time"] {
        add("sample", key, Value::Boolean(true));
    }
    add("train", "metric", Value::Boolean(true));
    add("output", "metrics_listen", Value::Boolean(true));
    add("model", "input_dropout", Value::Boolean(true));
    add("model", "propagations", Value::Boolean(true));
    add("model", "activation", Value::Boolean(true));
    table
}
