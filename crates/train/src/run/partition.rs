//! The partition of a run: an existing one, or made by the run.

use std::path::Path;
use std::time::Instant;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::{Parts, RunConfig, Strategy, data_folder, parts_in_turns};
use gnarl_graph::Dataset;
use gnarl_partition::{
    PartLayout, PartitionConfig, PartitionManifest, PartitionedDataset, Workers, fingerprint,
    partition_dataset, partition_dataset_with,
};

use crate::registry::Registry;
use crate::run::folder::{PARTITION, RunFolder};
use crate::task::divide::{check_of_dataset, check_of_task};
use crate::task::partition_for_task;
use crate::telemetry::pulse::every_minute;
use gnarl_common::memory::available;

/// Partitions the graph, or opens an existing partition. The ranks of this host, so many, share
/// its memory.
pub(crate) fn cut(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    folder: &RunFolder,
    local_ranks: usize,
) -> Result<Option<PartitionedDataset>> {
    if let Some(path) = &config.partition.path {
        return given((config, registry), dataset, path).map(Some);
    }
    let parts = match config.partition.parts {
        Parts::Count(1) => return Ok(None),
        Parts::Count(n) => gnarl_partition::Parts::Count(n),
        Parts::Levels { machines, workers } => gnarl_partition::Parts::Levels { machines, workers },
        Parts::Auto => gnarl_partition::Parts::Auto(Workers {
            count: config.train.workers,
            memory: available().map_or(0, |memory| memory.limit) / local_ranks.max(1) as u64,
            reserved: None,
        }),
    };
    let layout = match config.train.strategy {
        Strategy::Disaggregated => PartLayout::Storage,
        _ => PartLayout::EdgeCut,
    };
    let wanted = PartitionConfig {
        algorithm: config.partition.algorithm.clone(),
        parts,
        hops: match layout {
            PartLayout::Storage => PartitionConfig::default().hops,
            _ => u32::try_from(config.halo_hops()).unwrap_or(u32::MAX),
        },
        layout,
        seed: config.partition.seed,
        balance: config.partition.balance,
        tau_vol: config.partition.tau_vol,
        chunk: config.partition.chunk,
        passes: config.partition.passes,
        freeze: config.partition.freeze,
        constraints: config.partition.constraints.clone(),
        ..PartitionConfig::default()
    };
    for place in folder.partitions(config) {
        if let Ok(existing) = PartitionedDataset::open(&place)
            && same_cut(existing.manifest(), dataset, &wanted)
            && check_graph((config, registry), dataset, &existing).is_ok()
        {
            tracing::info!("using the partition in {}", place.display());
            return Ok(Some(existing));
        }
    }
    let out = folder.dir().join(PARTITION);
    if out.exists() {
        std::fs::remove_dir_all(&out).at(&out)?;
    }
    let start = Instant::now();
    let what = || format!("partitioning by {}", wanted.algorithm);
    let (cut, report) = every_minute(what, || {
        match registry.partitioner(&wanted.algorithm) {
        None if of_messages(config) => {
            partition_for_task((config, registry), dataset, &wanted, &out)
        }
        Some(_) if of_messages(config) => Err(Error::usage(format!(
            "partition.algorithm = '{}': a program's own partitioner makes parts of datasets, and tasks of edges train on \
             parts of their message graph",
            wanted.algorithm
        ))
        .hint("name a partitioner of gnarl")),
        Some(own) => partition_dataset_with(dataset, own, &wanted, &out),
        None => partition_dataset(dataset, &wanted, &out),
    }
    })?;
    let halo = match (layout, wanted.hops) {
        (PartLayout::Storage, _) => "without halo nodes".to_string(),
        (_, 1) => "with halo nodes of 1 hop".to_string(),
        (_, hops) => format!("with halo nodes of {hops} hops"),
    };
    tracing::info!(
        "partitioned into {} parts by {}: edge cut {:.1} %, replication {:.2} {halo}, {:.1} s",
        report.parts,
        report.algorithm,
        100.0 * report.edge_cut,
        report.replication_factor,
        start.elapsed().as_secs_f64()
    );
    Ok(Some(cut))
}

/// Opens the parts at `path`, a path or an address in an object store.
///
/// # Errors
/// If they are missing, or cannot be fetched.
pub(super) fn open_parts(config: &RunConfig, path: &Path) -> Result<PartitionedDataset> {
    match config.train.strategy {
        Strategy::Disaggregated => {
            let (folder, place) = parts_in_turns(path)?;
            PartitionedDataset::open_in(folder, place)
        }
        _ => PartitionedDataset::open(data_folder(path)?),
    }
}

/// Opens the parts at `path` for a run.
///
/// # Errors
/// If they are missing, of another dataset, or of another graph than that of the run's batches.
pub(super) fn given(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    path: &Path,
) -> Result<PartitionedDataset> {
    let made = open_parts(config, path)?;
    if made.manifest().source.fingerprint != fingerprint(dataset.manifest()) {
        let message = format!(
            "partition.path: {} was made of another dataset than {}",
            path.display(),
            dataset.dir().display()
        );
        return Err(
            Error::usage(message).hint("partition the dataset of this run, by gnarl partition")
        );
    }
    check_graph((config, registry), dataset, &made)?;
    Ok(made)
}

/// Returns whether a run has parts of the message graph of its task, and not of its dataset.
fn of_messages(config: &RunConfig) -> bool {
    config.train.strategy == Strategy::Disaggregated && !config.task.kind.is_of_nodes()
}

/// Rejects parts of another graph than that of the batches of a run.
fn check_graph(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    made: &PartitionedDataset,
) -> Result<()> {
    match of_messages(config) {
        true => check_of_task((config, registry), dataset, made),
        false if config.task.kind.is_of_nodes() => check_of_dataset(made),
        false => Ok(()),
    }
}

/// Returns whether a partition matches `wanted`. Automatic numbers of parts are always determined
/// anew.
fn same_cut(made: &PartitionManifest, dataset: &Dataset, wanted: &PartitionConfig) -> bool {
    made.source.fingerprint == fingerprint(dataset.manifest())
        && made.algorithm == wanted.algorithm
        && (made.layout != PartLayout::EdgeCut || made.hops == wanted.hops)
        && made.seed == wanted.seed
        && made.layout == wanted.layout
        && made.parameters == wanted.parameters()
        && match wanted.parts {
            gnarl_partition::Parts::Auto(_) => false,
            parts => parts.resolve(0).is_ok_and(|count| count == made.parts),
        }
}
