//! Setup of edge prediction from a run file, over parts with target edges.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::Labels;
use gnarl_nn::ParamsBuilder;
use gnarl_nn::heads::{self, HeadSizes};
use gnarl_partition::{PartitionedDataset, TargetLabels};
use gnarl_serve::{PartAccess, Server};
use gnarl_store::FeatureStore;

use super::labels::EdgePrediction;
use super::splits::{HeldOut, Split, relational};
use crate::data::partitioned::{Ranks, access};
use crate::data::target_edges::{FeaturesInMemory, Gathered, gather, of_partition};
use crate::encoder::build::{PartsOfTask, over_parts, over_typed_parts};
use crate::encoder::message_graph::MessageForm;
use crate::fit::{Fit, Training};
use crate::registry::Registry;
use crate::state::Start;
use crate::task::divide::{TaskSettings, training_edges};
use crate::task::objective;

/// The task of `config` on the parts of `cut`, local or remote, and the server of the local ones. Held-out edges are in
/// the memory of each rank, training edges stay with their parts.
///
/// # Errors
/// If the parts were made for another task, or do not reply; if the configuration does not fit them.
pub(crate) fn open_parts(
    (config, registry): (&RunConfig, &Registry),
    cut: &PartitionedDataset,
    ranks: Option<&Ranks<'_>>,
) -> Result<(Box<dyn Training>, Start, Option<Server>)> {
    let run = (config, registry);
    let settings = TaskSettings::of(cut)?;
    let form = match settings.messages {
        MessageForm::Types => MessageForm::Types,
        _ if relational(run, !settings.features) => MessageForm::Relations,
        _ => MessageForm::Edges,
    };
    settings.check(config, form)?;
    let targets = of_partition(cut)?;
    let triple = targets.triple.clone();
    let labels = targets.labels.map(empty).ok_or_else(|| {
        Error::invalid(format!(
            "{}: the target edges of the parts have no labels",
            cut.dir().display()
        ))
    })?;
    let objective = objective::of_labels(config, &labels)?;
    let outputs = objective.outputs(&labels)?;

    let (parts, server) = access(config, cut, ranks)?;
    let parts: Arc<[PartAccess]> = parts.into();
    let width_of_features = targets.feature_width as usize;
    let mut features = FeaturesInMemory::new(width_of_features);
    let mut split = |number| -> Result<Split> {
        let Gathered { edges, labels: found, features: rows, times } = gather(&parts, number)?;
        let first = features.rows() as u64;
        features.append(&rows.unwrap_or_default());
        let labels = found.unwrap_or_else(|| labels.clone());
        let rows = (first..first + edges.len() as u64).collect();
        Ok(Split { rows, edges, times: times.unwrap_or_default(), labels })
    };
    let (valid, test) = (split(1)?, split(2)?);
    let count = |name: &str| cut.node_type(name).map(|found| found.count as usize);
    let nodes = [count(&triple.src)?, count(&triple.dst)?];

    let mut params = ParamsBuilder::new(Key::new(config.train.seed).with(0));
    let sizes = HeadSizes { width: config.embedding.dim, features: width_of_features, outputs };
    let head = heads::add(&config.decoder, sizes, &mut params)?;
    let task = EdgePrediction {
        config: config.clone(),
        train: Box::new(training_edges(config, cut, (parts.clone(), 0))?),
        splits: HeldOut { triple: triple.clone(), valid, test, nodes },
        outputs: labels.outputs(),
        features: (width_of_features > 0).then(|| Arc::new(features) as Arc<dyn FeatureStore>),
        head,
        objective,
    };
    let relations = targets.relations as usize;
    let width = config.embedding.dim;
    let of_task = PartsOfTask { cut, parts: &parts, ranks, triple: &triple, relations };
    let (training, tables): (Box<dyn Training>, _) = match form {
        MessageForm::Relations | MessageForm::Types => {
            let encoder = over_typed_parts(run, &of_task, form, width, &mut params)?;
            let tables = encoder.tables(config)?;
            (Box::new(Fit::new(config, task, encoder)), tables)
        }
        MessageForm::Edges | MessageForm::None => {
            let encoder = over_parts(run, &of_task, width, &mut params)?;
            (Box::new(Fit::new(config, task, encoder)), Vec::new())
        }
    };
    Ok((training, Start { params: params.build(), tables }, server))
}

/// Labels of a kind, of no edges.
fn empty(kind: TargetLabels) -> Labels {
    match kind {
        TargetLabels::Classes(count) => {
            Labels::Single { classes: Vec::new().into(), count: count as usize }
        }
        TargetLabels::Multi(tasks) => {
            Labels::Multi { values: Vec::new().into(), tasks: tasks as usize }
        }
        TargetLabels::Values => Labels::Values { values: Vec::new().into() },
    }
}
