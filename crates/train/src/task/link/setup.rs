//! Setup of link prediction from a run file.

use std::sync::{Arc, OnceLock};

use gnarl_common::did_you_mean::unknown;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::{Leakage, RunConfig, SampleSection, Strategy};
use gnarl_graph::Dataset;
use gnarl_graph::triples::FilteredSet;
use gnarl_nn::ParamsBuilder;
use gnarl_nn::decoders::{self, Decoder};

use super::edges::{Edges, Loaded};
use super::links::LinkPrediction;
use super::{leakage, ranking};
use crate::data::target_edges::{EdgesInMemory, KnownEdges, KnownInMemory};
use crate::embeddings::TableSpec;
use crate::encoder::Encoder;
use crate::encoder::build::{RELATIONAL, over_edges, over_relations, over_types};
use crate::encoder::embedding_only::EmbeddingOnly;
use crate::encoder::message_graph::MessageEdges;
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
    check(config, &loaded)?;
    let mut params = ParamsBuilder::new(Key::new(config.train.seed).with(0));
    let dim = config.embedding.dim;
    let decoder = decoders::add(&config.decoder, dim, loaded.relations, &mut params)?;
    let width = decoder.width();
    let name = config.model.name.as_str();
    let task = |loaded: Loaded, decoder: Box<dyn Decoder>| -> Result<LinkPrediction> {
        let (edges, known) = in_memory(config, loaded);
        Ok(LinkPrediction {
            config: config.clone(),
            metric: metric.clone(),
            loss: config.loss.build()?,
            encoded: name != "none",
            edges,
            known,
            decoder,
            negatives: OnceLock::new(),
            filtered: OnceLock::new(),
            paired: Default::default(),
        })
    };

    let edges = loaded;
    if let Some((triple, held)) = &edges.held {
        let encoder = over_types((config, registry), dataset, triple, held, width, &mut params)?;
        let tables = encoder.tables(config)?;
        let start = Start { params: params.build(), tables };
        return Ok((checked(task(edges, decoder)?, encoder)?, start));
    }
    if name == "none" {
        let spec = table(config, &edges, width)?;
        let start = Start { params: params.build(), tables: vec![spec] };
        let encoder = EmbeddingOnly { nodes: edges.endpoints.nodes() };
        return Ok((checked(task(edges, decoder)?, encoder)?, start));
    }
    let messages = MessageEdges {
        edges: &edges.splits[0],
        node_type: edges.endpoints.head_type(),
        nodes: edges.endpoints.nodes(),
        relations: edges.relations,
    };
    if RELATIONAL.contains(&name) || registry.has_hetero_model(name) {
        let encoder = over_relations((config, registry), dataset, &messages, width, &mut params)?;
        let tables = encoder.tables(config)?;
        let start = Start { params: params.build(), tables };
        return Ok((checked(task(edges, decoder)?, encoder)?, start));
    }
    let encoder = over_edges((config, registry), dataset, &messages, width, &mut params)?;
    let start = Start { params: params.build(), tables: Vec::new() };
    Ok((checked(task(edges, decoder)?, encoder)?, start))
}

/// The edges of a run and the known ones, all in memory.
fn in_memory(config: &RunConfig, loaded: Loaded) -> (Edges, Box<dyn KnownEdges>) {
    let Loaded { splits: [train, valid, test], triple, endpoints, relations, names, .. } = loaded;
    let all = Arc::new(FilteredSet::new(&[&train, &valid, &test]));
    let left_out = config.negatives.filtered;
    let training = left_out.then(|| Arc::new(FilteredSet::new(&[&train])));
    let train = Box::new(EdgesInMemory::new(train));
    let edges = Edges { train, valid, test, triple, endpoints, relations, names };
    (edges, Box::new(KnownInMemory { all, training }))
}

/// The task with its encoder, unless held-out edges pass messages against the run file.
fn checked<E: Encoder + 'static>(task: LinkPrediction, encoder: E) -> Result<Box<dyn Training>> {
    let [valid, test] = leakage::held_out(&task, &encoder)?;
    let seen = valid.seen + test.seen;
    if seen > 0 && task.encoded && task.config.task.leakage != Leakage::Keep {
        let text = format!(
            "{seen} of {} held-out edges, or their reverses, are in the message graph",
            valid.edges + test.edges
        );
        return Err(Error::invalid(text).hint(
            "hold out each edge with its reverse, or set task.leakage to 'keep' to train anyway",
        ));
    }
    Ok(Box::new(Fit::new(&task.config.clone(), task, encoder)))
}

/// The embedding table of a graph whose edges are predicted without a model.
fn table(config: &RunConfig, edges: &Loaded, width: usize) -> Result<TableSpec> {
    let section = &config.embedding;
    let node_type = edges.endpoints.head_type().to_string();
    Ok(TableSpec {
        name: node_type.clone(),
        node_type,
        count: edges.endpoints.nodes() as u64,
        width,
        bound: section.bound.unwrap_or((section.dim as f32).sqrt().recip()),
        key: Key::new(config.train.seed).with(5),
        optimizer: section.optimizer(&config.optimizer)?,
    })
}

/// Rejects batches that leave no edges for messages.
fn check(config: &RunConfig, edges: &Loaded) -> Result<()> {
    let SampleSection { batch_size, .. } = config.sample;
    // A perceptron receives no messages anyway.
    let receives = !["mlp", "none"].contains(&config.model.name.as_str());
    let count = edges.splits[0].len();
    let all = batch_size == 0 || batch_size >= count;
    // Messages pass over the other edge types, too.
    let others = edges.held.is_some() && config.train.strategy != Strategy::Tensor;
    if receives && !others && config.task.leakage == Leakage::Remove && all {
        let message =
            format!("a batch of all {count} training edges leaves none for messages to pass over");
        return Err(Error::usage(message)
            .hint("set sample.batch_size to fewer edges, or task.leakage to 'keep'"));
    }
    Ok(())
}

/// The metric that selects the best weights.
fn metric_of(config: &RunConfig) -> Result<String> {
    let known: Vec<&str> = match config.model.name.as_str() {
        "none" => ranking::RANKED.to_vec(),
        _ => [&ranking::PAIRED[..], &ranking::RANKED].concat(),
    };
    // Names of scores have underscores, those of metrics hyphens.
    let name = config.train.metric.as_deref().unwrap_or(known[0]).replace('-', "_");
    if known.contains(&name.as_str()) {
        Ok(name)
    } else {
        Err(unknown("metric of link prediction", &name, &known))
    }
}
