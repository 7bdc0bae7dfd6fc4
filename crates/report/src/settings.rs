//! Settings of runs as texts by their keys.

use std::collections::{BTreeMap, BTreeSet};

use gnarl_common::Result;
use gnarl_config::RunConfig;
use toml::{Table, Value};

/// Keys that name a run's place, which differs between any two.
const PLACES: [&str; 1] = ["output.dir"];

/// The settings of a run: the value of each key, such as `train.lr`.
pub(crate) type Settings = BTreeMap<String, String>;

/// All settings of a configuration.
///
/// # Errors
/// If a value has no form in TOML.
pub(crate) fn of(config: &RunConfig) -> Result<Settings> {
    let mut out = Settings::new();
    flatten("", &config.to_table()?, &mut out);
    Ok(out)
}

fn flatten(path: &str, table: &Table, out: &mut Settings) {
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Table(table) => flatten(&path, table, out),
            Value::String(text) => _ = out.insert(path, text.clone()),
            Value::Float(number) => _ = out.insert(path, float(*number)),
            value => _ = out.insert(path, value.to_string()),
        }
    }
}

/// A number of 32 bits in its own digits: `0.01`, not `0.009999999776482582`.
fn float(number: f64) -> String {
    let short = number as f32;
    if f64::from(short) == number { short.to_string() } else { number.to_string() }
}

/// Keys with their values in each of some runs, if they are not the same in all of them; an empty value where a run has
/// none.
pub(crate) fn differing(runs: &[Settings]) -> Vec<(String, Vec<String>)> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    let values = |key: &str| -> Vec<String> {
        runs.iter().map(|run| run.get(key).cloned().unwrap_or_default()).collect()
    };
    keys.into_iter()
        .filter(|key| !PLACES.contains(&key.as_str()))
        .map(|key| (key.clone(), values(key)))
        .filter(|(_, values)| values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

/// Settings that differ from the defaults: key, value, and the default, which is empty where there is none.
///
/// # Errors
/// If a value has no form in TOML.
pub(crate) fn changed(config: &RunConfig) -> Result<Vec<(String, [String; 2])>> {
    let both = [of(config)?, of(&RunConfig::default())?];
    let pair = |(key, values): (String, Vec<String>)| {
        let [value, default] = values.try_into().ok()?;
        Some((key, [value, default]))
    };
    Ok(differing(&both).into_iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_have_their_values() {
        let one = RunConfig::default();
        let mut two = one.clone();
        two.train.lr = 0.02;
        two.train.metric = Some("macro-f1".into());
        two.output.dir = "elsewhere".into();
        let found = differing(&[of(&one).unwrap(), of(&two).unwrap()]);
        let default = one.train.lr.to_string();
        let expected = [("train.lr", [&default, "0.02"]), ("train.metric", ["", "macro-f1"])];
        let expected =
            expected.map(|(key, values)| (key.to_string(), values.map(String::from).to_vec()));
        assert_eq!(found, expected);
        assert_eq!(changed(&two).unwrap()[0], ("train.lr".into(), ["0.02".into(), default]));
        assert!(changed(&one).unwrap().is_empty());
    }
}
