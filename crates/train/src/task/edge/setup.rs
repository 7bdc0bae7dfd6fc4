//! Setup of edge prediction from a run file.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_graph::{Dataset, Triple};
use gnarl_nn::ParamsBuilder;
use gnarl_nn::heads::{self, HeadSizes};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use super::labels::EdgePrediction;
use super::splits::{Loaded, Split, is_relational};
use crate::data::target_edges::EdgesInMemory;
use crate::encoder::build::{over_edges, over_relations, over_types};
use crate::fit::{Fit, Training};
use crate::registry::Registry;
use crate::state::Start;
use crate::task::objective;

/// The task of `config` on a dataset, with weights and embeddings freshly initialized.
///
/// # Errors
/// If edges have no labels or no splits, or the configuration does not fit the dataset.
pub(crate) fn open(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
) -> Result<(Box<dyn Training>, Start)> {
    let loaded = Loaded::open(dataset, (config, registry))?;
    let labels = &loaded.train.labels;
    let objective = objective::of_labels(config, labels)?;
    let features = edge_features(config, dataset, &loaded.held_out.triple)?;
    let mut params = ParamsBuilder::new(Key::new(config.train.seed).with(0));
    let width = config.embedding.dim;
    let sizes = HeadSizes {
        width,
        features: features.as_ref().map_or(0, MappedFeatures::width),
        outputs: objective.outputs(labels)?,
    };
    let head = heads::add(&config.decoder, sizes, &mut params)?;
    let task = |loaded: Loaded| {
        let Loaded { train: Split { edges, rows, times, labels }, held_out, .. } = loaded;
        let features = features.map(Arc::new);
        let outputs = labels.outputs();
        EdgePrediction {
            config: config.clone(),
            train: Box::new(
                EdgesInMemory::labeled((edges, rows), labels, features.clone()).with_times(times),
            ),
            splits: held_out,
            outputs,
            features: features.map(|features| features as Arc<dyn FeatureStore>),
            head,
            objective,
        }
    };

    let Some(messages) = loaded.message_edges() else {
        let (triple, held) = (&loaded.held_out.triple, &loaded.held);
        let encoder = over_types((config, registry), dataset, triple, held, width, &mut params)?;
        let tables = encoder.tables(config)?;
        let start = Start { params: params.build(), tables };
        return Ok((Box::new(Fit::new(config, task(loaded), encoder)), start));
    };
    if is_relational((config, registry), dataset, &loaded.held_out.triple.src)? {
        let encoder = over_relations((config, registry), dataset, &messages, width, &mut params)?;
        let tables = encoder.tables(config)?;
        let start = Start { params: params.build(), tables };
        return Ok((Box::new(Fit::new(config, task(loaded), encoder)), start));
    }
    let encoder = over_edges((config, registry), dataset, &messages, width, &mut params)?;
    let start = Start { params: params.build(), tables: Vec::new() };
    Ok((Box::new(Fit::new(config, task(loaded), encoder)), start))
}

/// The edge features, if the run uses them.
fn edge_features(
    config: &RunConfig,
    dataset: &Dataset,
    triple: &Triple,
) -> Result<Option<MappedFeatures>> {
    if !config.task.edge_features {
        return Ok(None);
    }
    let column = dataset.edge_column(triple, "features")?.ok_or_else(|| {
        let place = dataset.dir().display();
        Error::invalid(format!("{place}: {triple}: edges have no features"))
            .hint("import with --edge-features, or leave out task.edge_features")
    })?;
    if u32::try_from(column.rows()).is_err() {
        let message = format!("edge features of {} edges, more than 2^32", column.rows());
        return Err(Error::new(Kind::Limit, message).hint("leave out task.edge_features"));
    }
    MappedFeatures::new(gnarl_graph::Features::Dense(column), Normalize::None).map(Some)
}
