//! Human-readable errors of run files.

use gnarl_common::did_you_mean::nearest;
use gnarl_common::{Error, Result};
use toml::{Table, Value};

use super::known::known;

/// Sections in the order of lookup for a key without one.
const SECTIONS: [&str; 5] = ["train", "model", "sample", "dataset", "partition"];

/// Names of keys in other libraries, and of those that users expect.
const ELSEWHERE: [(&str, &str); 11] = [
    ("model.kind", "model.name"),
    ("model.type", "model.name"),
    ("model.architecture", "model.name"),
    ("learning_rate", "train.lr"),
    ("num_epochs", "train.epochs"),
    ("num_workers", "train.workers"),
    ("num_layers", "model.layers"),
    ("hidden_dim", "model.hidden"),
    ("hidden_channels", "model.hidden"),
    ("num_neighbors", "sample.fanouts"),
    ("checkpoint_interval", "train.checkpoint_seconds"),
];

/// Rejects unknown keys.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] with the most similar key, in whichever section.
pub(super) fn refuse_unknown(table: &Table, known: &Table) -> Result<()> {
    refuse_in("", table, known)
}

fn refuse_in(prefix: &str, table: &Table, known: &Table) -> Result<()> {
    for (key, value) in table {
        let Some(expected) = known.get(key) else {
            return Err(unknown(prefix, key, known));
        };
        match (value, expected) {
            (Value::Table(inner), Value::Table(expected)) => {
                refuse_in(&format!("{prefix}{key}."), inner, expected)?;
            }
            (value, Value::Table(expected)) if prefix.is_empty() => {
                let error = Error::usage(format!("{key} = {value}: {key} is a section"));
                let inside = nearest("name", expected.keys().map(String::as_str));
                let inside = inside.or(expected.keys().next().map(String::as_str));
                return Err(
                    error.hint(format!("it has keys such as {key}.{}", inside.unwrap_or_default()))
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn unknown(prefix: &str, key: &str, section: &Table) -> Error {
    let error = Error::usage(format!("unknown key '{prefix}{key}'"));
    let here = || nearest(key, section.keys().map(String::as_str));
    let here = || here().map(|name| format!("{prefix}{name}"));
    let meant = elsewhere(&format!("{prefix}{key}"))
        .or_else(|| named_alike(key))
        .or_else(here)
        .or_else(|| {
            let all = paths();
            let last = nearest(key, all.iter().map(|path| last_of(path)))?;
            key_named(last)
        });
    match meant {
        Some(meant) => error.hint(format!("did you mean '{meant}'?")),
        None => error.hint("docs/configuration.md has all keys"),
    }
}

/// The key of a run file with the name `name` without its section: `train.lr` for `lr`.
pub fn key_named(name: &str) -> Option<String> {
    named_alike(&name.replace('-', "_"))
}

fn named_alike(name: &str) -> Option<String> {
    if let Some(key) = elsewhere(name) {
        return Some(key);
    }
    let mut all = paths();
    let order =
        |path: &String| SECTIONS.iter().position(|section| path.split('.').next() == Some(section));
    all.sort_by_key(|path| order(path).unwrap_or(SECTIONS.len()));
    all.into_iter().find(|path| last_of(path) == name)
}

/// The key of what other libraries name `name`.
fn elsewhere(name: &str) -> Option<String> {
    ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, key)| key.to_string())
}

fn last_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Every key with its section.
fn paths() -> Vec<String> {
    fn collect(prefix: &str, table: &Table, out: &mut Vec<String>) {
        for (key, value) in table {
            match value {
                Value::Table(inner) if !inner.is_empty() => {
                    collect(&format!("{prefix}{key}."), inner, out);
                }
                _ => out.push(format!("{prefix}{key}")),
            }
        }
    }
    let mut all = Vec::new();
    collect("", &known(), &mut all);
    all
}

/// The error of a value, without terms of the programming language.
pub(super) fn of(error: &toml::de::Error, table: &Table) -> Error {
    let text = error.to_string();
    let message = error.message().trim_end();
    let key = text.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    let Some(key) = key else { return Error::usage(message) };
    let value = lookup(table, key);
    let shown = value.map_or(String::new(), |value| format!(" = {value}"));
    if let Some((_, names)) = message.split_once("expected one of ")
        && message.starts_with("unknown variant")
    {
        let names: Vec<&str> = names.split(", ").map(|name| name.trim_matches('`')).collect();
        let found = value.and_then(Value::as_str).unwrap_or_default();
        return gnarl_common::did_you_mean::unknown(key, found, &names);
    }
    match message.split_once(", expected ") {
        Some((_, expected)) if message.starts_with("invalid ") => {
            Error::usage(format!("{key}{shown}: expected {}", kind_of(expected)))
        }
        _ => Error::usage(format!("{key}{shown}: {message}")),
    }
}

fn lookup<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        Some((section, rest)) => lookup(table.get(section)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// The human-readable name of a type.
fn kind_of(expected: &str) -> &str {
    match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, 0 or more",
        "i64" | "i32" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" => "text in quotes",
        "a sequence" => "a list, such as [25, 10]",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a section",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunConfig;

    fn refused(text: &str) -> String {
        let table: Table = text.parse().unwrap();
        if let Err(e) = refuse_unknown(&table, &known()) {
            return e.to_string();
        }
        let error = Value::Table(table.clone()).try_into::<RunConfig>().unwrap_err();
        of(&error, &table).to_string()
    }

    #[test]
    fn keys_are_looked_for_in_all_sections() {
        let cases = [
            ("lr = 0.1", "'train.lr'"),
            ("hidden = 5", "'model.hidden'"),
            ("train.lrate = 0.1", "'train.lr'"),
            ("train.hidden = 5", "'model.hidden'"),
            ("train.batch_size = 5", "'sample.batch_size'"),
            ("model.learning_rate = 0.1", "'train.lr'"),
            ("modle.name = 'gcn'", "'model'"),
            ("epoch = 5", "'train.epochs'"),
            ("partition.freez = true", "'partition.freeze'"),
            ("model.kind = 'gcn'", "'model.name'"),
        ];
        for (text, meant) in cases {
            let found = refused(text);
            assert!(found.contains(&format!("did you mean {meant}?")), "{text}: {found}");
        }
        assert!(refused("zzz = 5").contains("docs/configuration.md"));
    }

    #[test]
    fn wrong_types_are_told_in_words() {
        let cases = [
            ("model.hidden = 'abc'", "model.hidden = \"abc\": expected a whole number"),
            ("train.epochs = -1", "train.epochs = -1: expected a whole number, 0 or more"),
            ("train.lr = 'fast'", "train.lr = \"fast\": expected a number"),
            ("model.decoupled = 1", "model.decoupled = 1: expected true or false"),
            ("sample.fanouts = 5", "sample.fanouts = 5: expected a list"),
            ("model.name = 5", "model.name = 5: expected text in quotes"),
            ("train = 5", "train = 5: train is a section"),
            (
                "train.strategy = 'gradients'",
                "unknown train.strategy 'gradients'\nhint: did you mean 'gradient'?",
            ),
            ("sample.method = 'neigbour'", "did you mean 'neighbor'?"),
            ("task.kind = 'links'", "did you mean 'link-prediction'?"),
            ("cache.policy = 'lruu'", "did you mean 'lru'?"),
        ];
        for (text, told) in cases {
            let found = refused(text);
            assert!(found.contains(told), "{text}: {found}");
            for word in ["usize", "f32", "variant", "struct"] {
                assert!(!found.contains(word), "{text}: {found}");
            }
        }
    }

    #[test]
    fn words_of_the_command_line_are_keys() {
        assert_eq!(key_named("epochs").as_deref(), Some("train.epochs"));
        assert_eq!(key_named("batch-size").as_deref(), Some("sample.batch_size"));
        assert_eq!(key_named("config"), None);
    }
}
