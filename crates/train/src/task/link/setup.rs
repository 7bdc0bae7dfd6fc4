//! Setup of link prediction from a run file, over a dataset.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_config::{Leakage, RunConfig};
use gnarl_graph::Dataset;
use gnarl_graph::triples::FilteredSet;

use super::divide::message_form;
use super::edges::{Edges, Loaded};
use super::leakage;
use super::links::LinkPrediction;
use super::model::{Model, check_batches, embeddings, metric_of, params};
use crate::data::target_edges::{EdgesInMemory, KnownEdges, KnownInMemory};
use crate::embeddings::TableSpec;
use crate::encoder::Encoder;
use crate::encoder::build::{over_edges, over_relations, over_types};
use crate::encoder::message_graph::{MessageEdges, MessageForm};
use crate::fit::{Fit, Training};
use crate::registry::Registry;
use crate::state::Start;

/// The task of `config` on a dataset, with weights and embeddings freshly initialized.
///
/// # Errors
/// If the dataset has no edges with splits, or the configuration does not fit it.
pub(crate) fn open(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
) -> Result<(Box<dyn Training>, Start)> {
    let metric = metric_of(config)?;
    let loaded = Loaded::open(dataset, config)?;
    check_batches(config, loaded.splits[0].len(), loaded.held.is_some())?;
    let mut params = params(config);
    let model = Model::new((config, metric), loaded.relations, &mut params)?;
    let width = model.width();
    let known = loaded.before_any_edge();
    let (passing, times) =
        known.as_ref().map_or((&loaded.splits[0], &[][..]), |(edges, times)| (edges, times));
    let messages = MessageEdges {
        edges: passing,
        times,
        node_type: loaded.endpoints.head_type(),
        nodes: loaded.endpoints.nodes(),
        relations: loaded.relations,
    };
    let run = (config, registry);
    let form = message_form(run, loaded.held.is_none());
    let (training, tables): (_, Vec<TableSpec>) = match (form, &loaded.held) {
        (MessageForm::Types, Some((triple, held))) => {
            let encoder = over_types(run, dataset, triple, held, width, &mut params)?;
            let tables = encoder.tables(config)?;
            (checked(in_memory(model, config, loaded)?, encoder)?, tables)
        }
        (MessageForm::None, _) => {
            let (encoder, table) = embeddings(config, &loaded.endpoints, width)?;
            (checked(in_memory(model, config, loaded)?, encoder)?, vec![table])
        }
        (MessageForm::Relations, _) => {
            let encoder = over_relations(run, dataset, &messages, width, &mut params)?;
            let tables = encoder.tables(config)?;
            (checked(in_memory(model, config, loaded)?, encoder)?, tables)
        }
        _ => {
            let encoder = over_edges(run, dataset, &messages, width, &mut params)?;
            (checked(in_memory(model, config, loaded)?, encoder)?, Vec::new())
        }
    };
    Ok((training, Start { params: params.build(), tables }))
}

/// The task over edges in memory.
fn in_memory(model: Model<'_>, config: &RunConfig, loaded: Loaded) -> Result<LinkPrediction> {
    let Loaded { splits: [train, valid, test], times, triple, .. } = loaded;
    let [of_train, of_valid, of_test] = times;
    let Loaded { node_times, endpoints, relations, names, .. } = loaded;
    let all = Arc::new(FilteredSet::new(&[&train, &valid, &test]));
    let left_out = config.negatives.filtered;
    let training = left_out.then(|| Arc::new(FilteredSet::new(&[&train])));
    let train = Box::new(EdgesInMemory::new(train).with_times(of_train));
    let times = [of_valid, of_test];
    let edges =
        Edges { train, valid, test, times, node_times, triple, endpoints, relations, names };
    let known: Box<dyn KnownEdges> = Box::new(KnownInMemory { all, training });
    model.task(edges, known)
}

/// The task with its encoder, unless held-out edges pass messages against the run file.
fn checked<E: Encoder + 'static>(task: LinkPrediction, encoder: E) -> Result<Box<dyn Training>> {
    let timed = task.config.samples_by_time();
    if task.encoded && !timed && task.config.task.leakage != Leakage::Keep {
        leakage::reject(&leakage::held_out(&task, &encoder)?)?;
    }
    Ok(Box::new(Fit::new(&task.config.clone(), task, encoder)))
}
