//! Labels of edges: classes or numbers, learnt from the rows that a model puts out for both ends
//! (DistDGLv2, section 3.1).

mod answers;
mod data;
mod encoder;
mod evaluate;
mod learner;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Dataset, Error, Labels, Result};
use gnarl_nn::heads::{self, Head, HeadSizes};
use gnarl_nn::losses::values::ValueLoss;
use gnarl_nn::models::typed;
use gnarl_nn::{Params, ParamsBuilder, metrics};
use gnarl_partition::PartitionedDataset;
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use crate::config::{RunConfig, Strategy, TaskKind};
use crate::embeddings::{Rows, TableSpec};
use crate::evaluate::Evaluation;
use crate::learner::{Sizes, Task};
use crate::messages::{PlainEncoder, of_types, relational};
use crate::state::{Start, TrainState};
use crate::strategy::Session;
use answers::Answers;
use data::Targets;
use encoder::Encoder;

/// The task of a run.
pub(crate) struct EdgeLabels {
    config: RunConfig,
    targets: Targets,
    /// Features of the edges, if they are looked at.
    features: Option<MappedFeatures>,
    encoder: Box<dyn Encoder>,
    head: Box<dyn Head>,
    /// What a number that is off costs.
    loss: Box<dyn ValueLoss>,
    metric: String,
    /// Part of each node that is a head; empty if the graph was not cut.
    owner: Vec<u32>,
}

impl EdgeLabels {
    /// The task of `config` on a dataset, with weights and rows freshly initialised.
    ///
    /// # Errors
    /// If edges have no labels or no splits, or the configuration does not fit the dataset.
    pub fn new(config: &RunConfig, dataset: &Dataset) -> Result<(Self, Start)> {
        check(config)?;
        let targets = Targets::open(dataset, config)?;
        let metric = metric_of(config, &targets.train.answers)?;
        let features = edge_features(config, dataset, &targets)?;
        let mut params = ParamsBuilder::new(Key::new(config.train.seed).with(0));
        let width = config.embedding.dim;
        let sizes = HeadSizes {
            width,
            features: features.as_ref().map_or(0, MappedFeatures::width),
            outputs: targets.train.answers.outputs(),
        };
        let head = heads::add(&config.decoder, sizes, &mut params)?;
        let (encoder, tables) = encoder(config, dataset, &targets, &mut params)?;
        let loss = match config.task.kind {
            TaskKind::EdgeRegression => config.loss.of_values()?,
            _ => gnarl_nn::losses::LossConfig::default().of_values()?,
        };
        let (config, owner) = (config.clone(), Vec::new());
        let task = Self { config, targets, features, encoder, head, loss, metric, owner };
        Ok((task, Start { params: params.build(), tables }))
    }
}

impl EdgeLabels {
    /// Whether heads are of another node type than tails.
    fn two_types(&self) -> bool {
        self.targets.triple.src != self.targets.triple.dst
    }
}

/// Refuses what edges cannot be trained with.
fn check(config: &RunConfig) -> Result<()> {
    if config.train.strategy != Strategy::Gradient {
        return Err(Error::usage("labels of edges are learnt by 'gradient' alone")
            .hint("set train.strategy to 'gradient'"));
    }
    if config.model.name == "none" {
        return Err(Error::usage("labels of edges follow from rows that a model puts out")
            .hint("model.name = 'mlp' takes the rows of nodes alone"));
    }
    config.sample.method.check_neighbours()
}

/// The score that a run is judged by.
fn metric_of(config: &RunConfig, answers: &Answers) -> Result<String> {
    let default = match answers {
        Answers::Labels(Labels::Single { .. }) => "accuracy",
        Answers::Labels(Labels::Multi { .. }) => "micro-f1",
        Answers::Values(_) => "rmse",
    };
    let name = config.train.metric.clone().unwrap_or_else(|| default.into());
    match answers {
        Answers::Labels(_) => metrics::build(&name).map(drop)?,
        Answers::Values(_) => metrics::build_of_values(&name).map(drop)?,
    }
    Ok(name)
}

/// The features of the edges, if the run looks at them.
fn edge_features(
    config: &RunConfig,
    dataset: &Dataset,
    targets: &Targets,
) -> Result<Option<MappedFeatures>> {
    if !config.task.edge_features {
        return Ok(None);
    }
    let column = dataset.edge_column(&targets.triple, "features")?.ok_or_else(|| {
        let place = dataset.dir().display();
        Error::invalid(format!("{place}: {}: edges have no features", targets.triple))
            .hint("import with --edge-features, or leave out task.edge_features")
    })?;
    MappedFeatures::new(gnarl_graph::Features::Dense(column), Normalize::None).map(Some)
}

/// The encoder of a run and its learnt rows: over the edge types of a graph that has several, over
/// relations, or over edges whatever they are.
fn encoder(
    config: &RunConfig,
    dataset: &Dataset,
    targets: &Targets,
    params: &mut ParamsBuilder,
) -> Result<(Box<dyn Encoder>, Vec<TableSpec>)> {
    let width = config.embedding.dim;
    let Some(heard) = targets.message_edges() else {
        let made = of_types(config, dataset, &targets.triple, &targets.held, width, params)?;
        let tables = made.tables(config)?;
        return Ok((Box::new(made), tables));
    };
    if is_relational(config, dataset, &targets.triple.src)? {
        let made = relational(config, dataset, &heard, width, params)?;
        let tables = made.tables(config)?;
        return Ok((Box::new(made), tables));
    }
    Ok((Box::new(PlainEncoder::new(config, dataset, &heard, width, params)?), Vec::new()))
}

/// Whether the model is one of graphs with types; one that is of both kinds is if nodes need learnt rows.
fn is_relational(config: &RunConfig, dataset: &Dataset, node_type: &str) -> Result<bool> {
    let name = config.model.name.as_str();
    let bare = dataset.features(node_type)?.is_none();
    Ok(typed::names().contains(&name) && (bare || !gnarl_nn::models::names().contains(&name)))
}

impl Task for EdgeLabels {
    fn metric(&self) -> String {
        self.metric.replace('-', "_")
    }

    fn sizes(&self) -> Sizes {
        let Targets { train, valid, test, .. } = &self.targets;
        let splits = [train, valid, test].map(|split| split.edges.len());
        Sizes { of: "edges", outputs: train.answers.outputs(), splits }
    }

    /// Parts decide which rank takes which edges; every rank has the whole graph.
    fn divide(&mut self, _: Option<&Dataset>, cut: &PartitionedDataset) -> Result<()> {
        self.owner = cut.assignment(&self.targets.triple.src)?.to_vec();
        Ok(())
    }

    fn train(
        &self,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        self.encoder.train(self, session, rank, state)
    }

    fn judge(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation> {
        let found = evaluate::alone(self, params, tables)?;
        Ok(Evaluation { leakage: Some(self.encoder.leakage(self)?), ..found })
    }
}
