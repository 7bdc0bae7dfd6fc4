//! The decoder, loss and metric of link prediction, wherever its edges are.

use std::sync::{Mutex, OnceLock};

use gnarl_common::did_you_mean::unknown;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::{Leakage, RunConfig, SampleSection};
use gnarl_nn::ParamsBuilder;
use gnarl_nn::decoders::{self, Decoder};

use super::edges::Edges;
use super::endpoints::Endpoints;
use super::links::LinkPrediction;
use super::{pairs, ranking};
use crate::data::target_edges::KnownEdges;
use crate::embeddings::TableSpec;
use crate::encoder::embedding_only::EmbeddingOnly;

/// The parts of a task that do not depend on where its edges are.
pub(super) struct Model<'a> {
    config: &'a RunConfig,
    metric: String,
    decoder: Box<dyn Decoder>,
}

impl<'a> Model<'a> {
    /// The model of `config` for so many `relations`, and its parameters added to `params`.
    ///
    /// # Errors
    /// If the metric or the decoder is unknown, or sizes are impossible.
    pub fn new(
        (config, metric): (&'a RunConfig, String),
        relations: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let decoder = decoders::add(&config.decoder, config.embedding.dim, relations, params)?;
        Ok(Self { config, metric, decoder })
    }

    /// Width of node embeddings.
    pub fn width(&self) -> usize {
        self.decoder.width()
    }

    /// The task over `edges` and the `known` ones.
    ///
    /// # Errors
    /// If the loss does not fit the configuration.
    pub fn task(self, edges: Edges, known: Box<dyn KnownEdges>) -> Result<LinkPrediction> {
        let Self { config, metric, decoder } = self;
        Ok(LinkPrediction {
            config: config.clone(),
            metric,
            loss: config.loss.build()?,
            encoded: config.model.name != "none",
            edges,
            known,
            decoder,
            negatives: OnceLock::new(),
            buckets: OnceLock::new(),
            sorting: Mutex::new(()),
            filtered: OnceLock::new(),
            paired: Default::default(),
        })
    }
}

/// The initial parameters of a run, which those of its model are added to.
pub(super) fn params(config: &RunConfig) -> ParamsBuilder {
    ParamsBuilder::new(Key::new(config.train.seed).with(0))
}

/// The embeddings of a graph whose edges are predicted without a model.
///
/// # Errors
/// If there is no such optimizer.
pub(super) fn embeddings(
    config: &RunConfig,
    endpoints: &Endpoints,
    width: usize,
) -> Result<(EmbeddingOnly, TableSpec)> {
    let section = &config.embedding;
    let node_type = endpoints.head_type().to_string();
    let table = TableSpec {
        name: node_type.clone(),
        node_type,
        count: endpoints.nodes() as u64,
        width,
        bound: section.bound.unwrap_or((section.dim as f32).sqrt().recip()),
        key: Key::new(config.train.seed).with(5),
        optimizer: section.optimizer(&config.optimizer)?,
        in_turns: false,
    };
    Ok((EmbeddingOnly { nodes: endpoints.nodes() }, table))
}

/// Rejects batches that leave none of so many training edges for messages; `typed` if messages pass over several edge
/// types.
pub(super) fn check_batches(config: &RunConfig, count: usize, typed: bool) -> Result<()> {
    let SampleSection { batch_size, .. } = config.sample;
    // A perceptron receives no messages anyway.
    let timed = config.samples_by_time();
    let receives = !timed && !["mlp", "none"].contains(&config.model.name.as_str());
    let all = batch_size == 0 || batch_size >= count;
    // Messages pass over the other edge types, too.
    let others = typed && !config.train.strategy.takes_whole_graph();
    if receives && !others && config.task.leakage == Leakage::Remove && all {
        let message =
            format!("a batch of all {count} training edges leaves none for messages to pass over");
        return Err(Error::usage(message)
            .hint("set sample.batch_size to fewer edges, or task.leakage to 'keep'"));
    }
    Ok(())
}

/// The metric that selects the best weights.
///
/// # Errors
/// If it is unknown.
pub(super) fn metric_of(config: &RunConfig) -> Result<String> {
    let known: Vec<&str> = match config.model.name.as_str() {
        "none" => ranking::RANKED.to_vec(),
        _ if config.evaluate.candidates > 0 => {
            // Candidates have no edges: ranks are filtered ones.
            let filtered = ranking::RANKED.iter().filter(|name| **name != "mrr_raw");
            pairs::PAIRED.iter().chain(filtered).copied().collect()
        }
        _ if config.samples_by_time() => pairs::PAIRED.to_vec(),
        _ => [&pairs::PAIRED[..], &ranking::RANKED].concat(),
    };
    // Names of scores have underscores, those of metrics hyphens.
    let name = config.train.metric.as_deref().unwrap_or(known[0]).replace('-', "_");
    if known.contains(&name.as_str()) {
        Ok(name)
    } else if config.samples_by_time() && ranking::RANKED.contains(&name.as_str()) {
        Err(Error::usage(format!(
            "train.metric = '{name}' ranks all nodes, each of which sample.time would embed as of the time of every edge"
        ))
        .hint("set evaluate.candidates, such as 100, to rank among nodes that are drawn for each edge"))
    } else {
        Err(unknown("metric of link prediction", &name, &known))
    }
}
