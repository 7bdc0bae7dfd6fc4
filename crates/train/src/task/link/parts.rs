//! Setup of link prediction from a run file, over parts with target edges.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{PartAccess, Server};

use super::divide::message_form;
use super::edges::Edges;
use super::endpoints::Endpoints;
use super::model::{Model, check_batches, embeddings, metric_of, params};
use crate::data::partitioned::{Ranks, access, node_times};
use crate::data::target_edges::{Gathered, KnownInParts, gather, of_partition};
use crate::encoder::build::{PartsOfTask, over_parts, over_typed_parts};
use crate::encoder::message_graph::MessageForm;
use crate::fit::{Fit, Training};
use crate::registry::Registry;
use crate::state::Start;
use crate::task::divide::{TaskSettings, training_edges};

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
    let metric = metric_of(config)?;
    let settings = TaskSettings::of(cut)?;
    let plain = settings.messages != MessageForm::Types;
    let run = (config, registry);
    let form = message_form(run, plain);
    settings.check(config, form)?;
    let targets = of_partition(cut)?;
    let triple = targets.triple.clone();
    let count = |name: &str| cut.node_type(name).map(|found| found.count as u32);
    let types = [triple.src.clone(), triple.dst.clone()];
    let endpoints = Endpoints::new(types, [count(&triple.src)?, count(&triple.dst)?]);
    check_batches(config, targets.split_len(0) as usize, !plain)?;

    let (parts, server) = access(config, cut, ranks)?;
    let parts: Arc<[PartAccess]> = parts.into();
    let first_tail = endpoints.first_tail();
    let held_out = |split| -> Result<_> {
        let Gathered { mut edges, times, .. } = gather(&parts, split)?;
        edges.tails.iter_mut().for_each(|tail| *tail += first_tail);
        Ok((edges, times.unwrap_or_default()))
    };
    let (valid, of_valid) = held_out(1)?;
    let (test, of_test) = held_out(2)?;
    let of_type = |name: &str| match config.samples_by_time() {
        true => node_times(cut, &parts, name),
        false => Ok(None),
    };
    let node_times = [of_type(&triple.src)?, of_type(&triple.dst)?];
    let relations = targets.relations as usize;
    let edges = Edges {
        train: Box::new(training_edges(config, cut, (parts.clone(), first_tail))?),
        valid,
        test,
        times: [of_valid, of_test],
        node_times,
        triple: triple.clone(),
        endpoints: endpoints.clone(),
        relations,
        names: targets.relation_names.clone(),
    };
    let known = Box::new(KnownInParts::new(cut, parts.clone(), first_tail)?);

    let mut params = params(config);
    let model = Model::new((config, metric), relations, &mut params)?;
    let width = model.width();
    let of_task = PartsOfTask { cut, parts: &parts, ranks, triple: &triple, relations };
    let (training, tables): (Box<dyn Training>, _) = match form {
        MessageForm::None => {
            let (encoder, table) = embeddings(config, &endpoints, width)?;
            (Box::new(Fit::new(config, model.task(edges, known)?, encoder)), vec![table])
        }
        MessageForm::Edges => {
            let encoder = over_parts(run, &of_task, width, &mut params)?;
            (Box::new(Fit::new(config, model.task(edges, known)?, encoder)), Vec::new())
        }
        MessageForm::Relations | MessageForm::Types => {
            let encoder = over_typed_parts(run, &of_task, form, width, &mut params)?;
            let tables = encoder.tables(config)?;
            (Box::new(Fit::new(config, model.task(edges, known)?, encoder)), tables)
        }
    };
    Ok((training, Start { params: params.build(), tables }, server))
}
