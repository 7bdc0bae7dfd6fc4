//! Agreement of all ranks on configuration and data.

use gnarl_common::{Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_partition::PartitionedDataset;
use serde::{Deserialize, Serialize};

/// The state of a rank to compare.
#[derive(Serialize, Deserialize)]
struct Stand {
    /// Host name.
    host: String,
    version: String,
    /// Fingerprint of the dataset's manifest, checksums of all files included.
    dataset: String,
    config: String,
}

/// Compares the state of all ranks, and returns the host of each. `fingerprint` identifies the
/// dataset.
///
/// # Errors
/// [`Kind::Rank`] naming the first rank that differs from rank 0, and the difference.
pub(crate) fn reach(
    comm: &dyn Communicator,
    config: &RunConfig,
    fingerprint: String,
) -> Result<Vec<String>> {
    let mine = Stand {
        host: host(),
        version: env!("CARGO_PKG_VERSION").into(),
        dataset: fingerprint,
        config: settings(config),
    };
    let bytes = serde_json::to_vec(&mine).unwrap_or_default();
    let all = comm.all_gather("comparing ranks", &bytes)?;
    let all: Vec<Stand> = all
        .iter()
        .map(|bytes| serde_json::from_slice(bytes))
        .collect::<Result<_, _>>()
        .map_err(|e| Error::new(Kind::Rank, format!("invalid handshake of a rank: {e}")))?;
    for (number, other) in all.iter().enumerate() {
        differing(&all[0], other).map_or(Ok(()), |what| {
            let text = format!("rank {number} on {} has another {what} than rank 0", other.host);
            Err(Error::new(Kind::Rank, text).hint("all ranks require the same files and settings"))
        })?;
    }
    Ok(all.into_iter().map(|other| other.host).collect())
}

/// Compares the partitions of all ranks, which may have copies of one at different paths.
///
/// # Errors
/// [`Kind::Rank`] with the first rank of another partition; those of the other ranks.
pub(crate) fn same_parts(
    comm: &dyn Communicator,
    made: &PartitionedDataset,
    hosts: &[String],
) -> Result<()> {
    let own = serde_json::to_vec(made.manifest())
        .map_err(|e| Error::invalid(format!("{}: {e}", made.dir().display())))?;
    let all = comm.all_gather("partitions of the ranks", &own)?;
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(rank) => Err(Error::new(
            Kind::Rank,
            format!("rank {rank} on {} has another partition than rank 0", hosts[rank]),
        )
        .hint("copy one partition to all hosts: partition.path must hold the same parts")),
    }
}

/// The name of this host: the environment variable `GNARL_HOST`, for hosts of equal names
/// or several names on one, else its own.
pub(crate) fn host() -> String {
    let name = std::env::var("GNARL_HOST").ok().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| gethostname::gethostname().to_string_lossy().into_owned())
}

/// The difference between two ranks.
fn differing(a: &Stand, b: &Stand) -> Option<String> {
    if a.version != b.version {
        return Some(format!("version of gnarl ({}, not {})", b.version, a.version));
    }
    if a.config != b.config {
        let lines = || a.config.lines().zip(b.config.lines());
        let (theirs, own) = lines().find(|(a, b)| a != b).unwrap_or_default();
        return Some(format!("configuration ('{own}', not '{theirs}')"));
    }
    (a.dataset != b.dataset).then(|| "dataset".into())
}

/// Settings that must not differ: all but locations and speed.
fn settings(config: &RunConfig) -> String {
    let mut config = config.clone();
    config.dataset.path = Default::default();
    config.dataset.read_ahead = Default::default();
    config.dataset.cache_memory = None;
    config.sample.batches = None;
    config.partition.path = config.partition.path.map(|_| Default::default());
    config.partition.token_file = None;
    config.partition.certificate = None;
    config.disaggregated = config.disaggregated.of_batches();
    config.train.threads = 0;
    config.train.prefetch = 1;
    config.train.preparation_threads = 0;
    config.train.pipeline = Default::default();
    config.output.metrics_listen = None;
    config.output.tensorboard = false;
    config.output.profile = false;
    config.to_toml().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_engine::local;
    use gnarl_graph::generate::{CommunityOptions, community};
    use gnarl_partition::{PartitionConfig, partition_dataset};

    use super::*;

    fn stand(seed: u64) -> Stand {
        let mut config = RunConfig::default();
        config.train.seed = seed;
        let [host, version, dataset] = ["h", "1", "d"].map(String::from);
        Stand { host, version, dataset, config: settings(&config) }
    }

    #[test]
    fn other_parts_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let options = CommunityOptions { nodes: 200, ..CommunityOptions::default() };
        let graph = community(&options, &dir.path().join("graph")).unwrap().dataset;
        for seed in [0, 1] {
            let config =
                PartitionConfig { seed, algorithm: "random".into(), ..PartitionConfig::default() };
            partition_dataset(&graph, &config, &dir.path().join(seed.to_string())).unwrap();
        }
        let hosts = ["a".to_string(), "b".to_string()];
        let compare = |seeds: [u64; 2]| {
            local::run(2, Duration::from_secs(20), |comm| {
                let made =
                    PartitionedDataset::open(dir.path().join(seeds[comm.rank()].to_string()))?;
                same_parts(comm, &made, &hosts)
            })
        };
        compare([1, 1]).unwrap();
        let error = compare([0, 1]).unwrap_err().to_string();
        assert!(error.contains("rank 1 on b has another partition than rank 0"), "{error}");
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(differing(&stand(1), &stand(1)), None);
        let what = differing(&stand(1), &stand(2)).unwrap();
        assert_eq!(what, "configuration ('seed = 2', not 'seed = 1')");
        let other = Stand { dataset: "other".into(), ..stand(1) };
        assert_eq!(differing(&stand(1), &other).unwrap(), "dataset");
    }
}
