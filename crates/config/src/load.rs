//! Reading run files.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use toml::{Table, Value};

use super::known::known;
use super::paths::expand_home;
use super::{RunConfig, words};

/// Reads the run file at `path` and applies `overrides`, each `key.path=value`.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] for an unknown key (naming the nearest known one), a value of the
/// wrong type, or an invalid combination.
pub fn load(path: &Path, overrides: &[String]) -> Result<RunConfig> {
    let text = std::fs::read_to_string(path).at(path)?;
    let place = path.display();
    let mut table: Table = text.parse().map_err(|e: toml::de::Error| {
        Error::usage(format!("{place}: {}", e.to_string().trim_end()))
    })?;
    for setting in overrides {
        apply(&mut table, setting)?;
    }
    words::refuse_unknown(&table, &known()).map_err(|e| e.context(place.to_string()))?;
    let mut config: RunConfig = Value::Table(table.clone())
        .try_into()
        .map_err(|e| words::of(&e, &table).context(place.to_string()))?;
    expand_home(&mut config).map_err(|e| e.context(place.to_string()))?;
    config.check().map_err(|e| e.context(place.to_string()))?;
    Ok(config)
}

/// Sets one `key.path=value`; the value is TOML, or a plain string.
fn apply(table: &mut Table, setting: &str) -> Result<()> {
    let Some((path, value)) = setting.split_once('=') else {
        return Err(Error::usage(format!("--set {setting}: no '='"))
            .hint("write it as --set train.lr=0.01"));
    };
    let value = format!("v = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| Value::String(value.into()));
    let mut keys: Vec<&str> = path.trim().split('.').collect();
    let last = keys.pop().unwrap_or_default();
    let mut at = table;
    for key in keys {
        let next = at.entry(key).or_insert_with(|| Value::Table(Table::new()));
        at = next.as_table_mut().ok_or_else(|| {
            Error::usage(format!("--set {setting}: {key} is a value, not a section"))
        })?;
    }
    at.insert(last.into(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parts, Strategy};

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.toml");
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn overrides_win_and_keep_their_types() {
        let (_dir, path) = file("dataset.path = 'd'\n[train]\nlr = 0.1\n");
        let sets = [
            "train.lr=0.5",
            "model.name=gcn",
            "sample.fanouts=[5, -1]",
            "train.strategy=average",
            "partition.parts=auto",
        ];
        let config = load(&path, &sets.map(String::from)).unwrap();
        assert_eq!((config.train.lr, config.model.name.as_str()), (0.5, "gcn"));
        assert_eq!(config.sample.fanouts, [5, -1]);
        assert_eq!(
            (config.train.strategy, config.partition.parts),
            (Strategy::Average, Parts::Auto)
        );
    }

    #[test]
    fn a_cut_is_told_what_the_command_line_can_tell() {
        use gnarl_partition::{Chunk, Constraint};

        let (_dir, path) = file(
            "dataset.path = 'd'\n[partition]\nparts = '2x4'\nbalance = 1.1\ntau_vol = 500\n\
             chunk = '1%'\npasses = 1\nfreeze = true\nconstraints = ['nodes', 'train']\n",
        );
        let cut = load(&path, &[]).unwrap().partition;
        assert_eq!(cut.parts, Parts::Levels { machines: 2, workers: 4 });
        assert_eq!((cut.balance, cut.tau_vol, cut.passes, cut.freeze), (1.1, Some(500), 1, true));
        assert_eq!(cut.chunk, Chunk::Fraction(0.01));
        assert_eq!(cut.constraints, Some(vec![Constraint::Nodes, Constraint::Train]));
        let set = |setting: &str| load(&path, &[setting.into()]);
        assert_eq!(set("partition.chunk=5000").unwrap().partition.chunk, Chunk::Edges(5000));
        let again = toml::to_string(&cut).unwrap();
        assert_eq!(toml::from_str::<crate::PartitionSection>(&again).unwrap(), cut);
        let text = set("partition.freez=true").unwrap_err().to_string();
        assert!(
            text.contains("'partition.freez'") && text.contains("'partition.freeze'"),
            "{text}"
        );
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let (_dir, path) = file("dataset.path = 'd'\n[train]\nepoch = 3\n");
        let text = load(&path, &[]).unwrap_err().to_string();
        assert!(text.contains("'train.epoch'") && text.contains("'train.epochs'"), "{text}");
        let (_dir, path) = file("dataset.path = 'd'\n");
        let text = load(&path, &["modle.hidden=3".into()]).unwrap_err().to_string();
        assert!(text.contains("'modle'") && text.contains("'model'"), "{text}");
    }

    #[test]
    fn optional_keys_are_known() {
        let (_dir, path) = file(
            "[dataset]\npath = 'd'\nsplit = { train = 0.7, valid = 0.15, test = 0.15, seed = 3 }\n\
             import = { format = 'npy', options = { edges = 'e.npy' } }\n\
             [train]\nmetric = 'macro-f1'\n[model]\ninput_dropout = 0.1\nactivation = 'relu'\n",
        );
        load(&path, &[]).unwrap();
    }

    #[test]
    fn parts_elsewhere_need_a_cut_made_before() {
        use crate::Servers;

        let lines = "[partition]\npath = 'p'\nservers = ['http://a:1', 'http://b:1']\n\
                     token_file = 't'\ncertificate = 'c'\n[cache]\nmemory = '1MiB'\n";
        let (_dir, path) = file(lines);
        let config = load(&path, &[]).unwrap();
        let both = ["http://a:1", "http://b:1"].map(String::from);
        assert_eq!(config.partition.servers, Some(Servers::At(both.into())));
        assert_eq!(config.cache.memory.as_u64(), 1 << 20);
        let config = load(&path, &["partition.servers=ranks".into()]).unwrap();
        assert_eq!(config.partition.servers, Some(Servers::Ranks));
        for (set, text) in [
            ("partition.servers=rank", "or a list of addresses"),
            ("train.evaluate_on=parts", "leave out partition.servers"),
        ] {
            let error = load(&path, &[set.into()]).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(format!("{error:?}").contains(text), "{set}: {error:?}");
        }
        let (_dir, path) = file("[partition]\nservers = 'ranks'\n");
        let error = load(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("requires partition.path"), "{error}");
    }

    #[test]
    fn wrong_values_are_usage_errors() {
        for text in [
            "dataset.path = 'd'\ntrain.workers = 0",
            "dataset.path = 'd'\ntrain.lr = -1.0",
            "dataset.path = 'd'\npartition.parts = 0",
            "dataset.path = 'd'\npartition.parts = '2x0'",
            "dataset.path = 'd'\npartition.parts = '2x'",
            "dataset.path = 'd'\npartition.chunk = '120%'",
            "dataset.path = 'd'\npartition.constraints = ['nodse']",
            "dataset.path = 'd'\nmodel.layers = 3",
            "dataset.path = 'd'\ntrain.strategy = 'gradients'",
            "dataset.path = 'd'\noutput.metrics_listen = '127.0.0.1:0'",
            "dataset.path = 'd'\noutput.metrics_listen = 'here'",
            "dataset.path = 'd'\noutput.dir = 's3://b/run'\noutput.tensorboard = true",
            "train.lr = 0.1",
            "dataset.path = 'd'\noptimizer.name = 'adamm'",
            "dataset.path = 'd'\ndecoder.name = 'distmul'",
            "dataset.path = 'd'\nloss.name = 'hinge'",
            "dataset.path = 'd'\nnegatives.kind = 'join'",
            "dataset.path = 'd'\nnegatives.kind = 'file'",
            "dataset.path = 'd'\nnegatives.count = 0",
            "dataset.path = 'd'\ntask.kind = 'links'",
            "dataset.path = 'd'\nembedding.dim = 0",
            "dataset.path = 'd'\ndataset.split = { train = 0.7, valid = 0.5, test = 0.1 }",
        ] {
            let (_dir, path) = file(text);
            let error = load(&path, &[]).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}: {error}");
        }
    }
}
