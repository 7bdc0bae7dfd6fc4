//! Link prediction: which edges of which relations there are, learnt by telling known ones from others.
//!
//! Without an encoder (`model.name = "none"`) the rows of nodes are learnt themselves, which is the
//! embedding of a knowledge graph. With one, a model puts them out.

mod batches;
mod columns;
mod data;
mod encoded;
mod encoder;
mod ends;
mod evaluate;
mod leakage;
mod learner;

use std::ops::Range;
use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::names::unknown;
use gnarl_graph::rng::Key;
use gnarl_graph::{Dataset, Error, Result};
use gnarl_nn::decoders::{self, Decoder, Side};
use gnarl_nn::{Params, ParamsBuilder};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::negatives::{self, Known, NegativeSampler};

use crate::config::{Leakage, NegativesSection, RunConfig, SampleSection, Strategy};
use crate::embeddings::{Rows, TableSpec};
use crate::evaluate::Evaluation;
use crate::learner::{Sizes, Task};
use crate::messages::{MessageEdges, PlainEncoder, of_types, relational};
use crate::state::{Start, TrainState};
use crate::strategy::{Session, gradient};
use crate::tensor;
use data::Edges;
use encoder::Encoder;
use learner::LinkLearner;

pub(crate) use data::count as count_relations;
pub use evaluate::RelationScores;
pub use leakage::LeakageReport;

/// Scores by ranks among all nodes; the first judges a run without an encoder.
const RANKED: [&str; 5] = ["mrr", "mrr_raw", "hits@1", "hits@3", "hits@10"];
/// Scores by telling edges from as many pairs without; the first judges a run with an encoder.
const TOLD: [&str; 2] = ["roc_auc", "average_precision"];

/// The task of a run.
pub(crate) struct Links {
    config: RunConfig,
    edges: Edges,
    /// Edges of all splits.
    known: Known,
    decoder: Box<dyn Decoder>,
    /// What puts out the rows of nodes, if they are not learnt themselves.
    encoder: Option<Box<dyn Encoder>>,
    /// Part of each node that is a head; empty if the graph was not cut.
    owner: Vec<u32>,
}

impl Links {
    /// The task of `config` on a dataset, with weights and rows freshly initialised.
    ///
    /// # Errors
    /// If the dataset is not one of edges with splits, or the configuration does not fit it.
    pub fn new(config: &RunConfig, dataset: &Dataset) -> Result<(Self, Start)> {
        let config = &tensor::all_neighbours(config)?;
        metric_of(config)?;
        let edges = Edges::open(dataset, config)?;
        check(config, edges.train.len())?;
        let known = Known::new(&[&edges.train, &edges.valid, &edges.test]);
        let key = Key::new(config.train.seed);
        let (mut params, dim) = (ParamsBuilder::new(key.with(0)), config.embedding.dim);
        let decoder = decoders::add(&config.decoder, dim, edges.relations, &mut params)?;
        let (mut encoder, mut tables) = (None, Vec::new());
        match (config.model.name.as_str(), &edges.held) {
            ("none", Some((triple, _))) => {
                let message =
                    format!("model.name is 'none', and '{triple}' is one of several types");
                return Err(
                    Error::usage(message).hint("model.name = 'mlp' takes the rows of nodes")
                );
            }
            ("none", None) => {
                let (section, node_type) = (&config.embedding, edges.ends.head_type().to_string());
                tables.push(TableSpec {
                    name: node_type.clone(),
                    node_type,
                    count: edges.ends.nodes() as u64,
                    width: decoder.width(),
                    bound: section.bound.unwrap_or((dim as f32).sqrt().recip()),
                    key: key.with(5),
                    optimizer: section.optimizer(&config.optimizer)?,
                });
            }
            (_, Some((triple, held))) => {
                let width = decoder.width();
                let made = of_types(config, dataset, triple, held, width, &mut params)?;
                tables.extend(made.tables(config)?);
                encoder = Some(Box::new(made) as Box<dyn Encoder>);
            }
            (name, None) => {
                let Edges { train, ends, relations, .. } = &edges;
                let (node_type, nodes, relations) = (ends.head_type(), ends.nodes(), *relations);
                let heard = MessageEdges { edges: train, node_type, nodes, relations };
                let width = decoder.width();
                encoder = Some(match relational::MODELS.contains(&name) {
                    true => {
                        let made = relational(config, dataset, &heard, width, &mut params)?;
                        tables.extend(made.tables(config)?);
                        Box::new(made) as Box<dyn Encoder>
                    }
                    false => {
                        Box::new(PlainEncoder::new(config, dataset, &heard, width, &mut params)?)
                    }
                });
            }
        }
        let (config, owner) = (config.clone(), Vec::new());
        let links = Self { config, edges, known, decoder, encoder, owner };
        leakage::refuse(&links)?;
        Ok((links, Start { params: params.build(), tables }))
    }

    /// What batches are told from.
    fn negatives(&self) -> Result<Box<dyn NegativeSampler>> {
        let (ends, kind) = (&self.edges.ends, self.config.negatives.kind.as_str());
        let sampler = match (ends.are_two_types(), kind) {
            (false, _) | (true, "in-batch" | "typed") => {
                self.negatives_among(0..ends.nodes() as u32)?
            }
            (true, "uniform" | "joint" | "all" | "degree") => {
                let [heads, tails] = Side::BOTH.map(|side| self.negatives_among(ends.range(side)));
                Box::new(negatives::Sided::new(heads?, tails?, ends.first_tail()))
            }
            (true, kind) => {
                let message = format!("negatives.kind is '{kind}', and ends are of two node types");
                return Err(Error::usage(message).hint("take 'joint'"));
            }
        };
        if !self.config.negatives.filtered {
            return Ok(sampler);
        }
        let known = Arc::new(Known::new(&[&self.edges.train]));
        Ok(Box::new(negatives::Filtered::new(sampler, known)))
    }

    /// Candidates among some nodes, counted from the first of them.
    fn negatives_among(&self, among: Range<u32>) -> Result<Box<dyn NegativeSampler>> {
        let NegativesSection { count, exponent, .. } = self.config.negatives;
        let (train, nodes) = (&self.edges.train, among.len() as u32);
        Ok(match self.config.negatives.kind.as_str() {
            "uniform" => Box::new(negatives::Uniform::new(nodes, count)),
            "joint" => Box::new(negatives::Joint::new(nodes, count)),
            "in-batch" => Box::new(negatives::InBatch),
            "all" => Box::new(negatives::All::new(nodes)),
            "typed" => Box::new(negatives::Typed::new(train, count)),
            "degree" => {
                let mut degrees = vec![0; nodes as usize];
                let all = train.heads.iter().chain(&train.tails);
                all.filter(|&v| among.contains(v))
                    .for_each(|&v| degrees[(v - among.start) as usize] += 1);
                Box::new(negatives::ByDegree::new(&degrees, exponent, count))
            }
            "local" if self.owner.is_empty() => {
                return Err(Error::usage("negatives.kind is 'local', and the graph has no parts")
                    .hint("set partition.parts, or take 'joint'"));
            }
            "local" => Box::new(negatives::Local::new(self.owner.clone(), count)),
            _ => Box::new(self.config.negatives.listed(train.len(), nodes)?),
        })
    }
}

/// Refuses strategies that do not train on `edges` edges so.
fn check(config: &RunConfig, edges: usize) -> Result<()> {
    let SampleSection { batch_size, .. } = config.sample;
    match (config.train.strategy, config.model.name.as_str()) {
        (Strategy::Average, _) => {
            Err(Error::usage("link prediction is trained by 'gradient' or 'tensor'")
                .hint("set train.strategy to 'gradient'"))
        }
        (Strategy::Tensor, "none") => {
            let message =
                "train.strategy = 'tensor' shares out what messages pass, and model.name is 'none'";
            Err(Error::usage(message).hint("set train.strategy to 'gradient', or take an encoder"))
        }
        // A perceptron hears nothing anyway.
        (Strategy::Tensor, name)
            if name != "mlp"
                && config.task.leakage == Leakage::Remove
                && (batch_size == 0 || batch_size >= edges) =>
        {
            let message = format!(
                "a batch of all {edges} training edges leaves none for messages to pass over"
            );
            Err(Error::usage(message)
                .hint("set sample.batch_size to fewer edges, or task.leakage to 'keep'"))
        }
        _ => Ok(()),
    }
}

/// The score that a run is judged by.
fn metric_of(config: &RunConfig) -> Result<String> {
    let known: Vec<&str> = match config.model.name.as_str() {
        "none" => RANKED.to_vec(),
        _ => [&TOLD[..], &RANKED].concat(),
    };
    // Names of scores have underscores, those of metrics hyphens.
    let name = config.train.metric.as_deref().unwrap_or(known[0]).replace('-', "_");
    match known.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(unknown("metric of link prediction", &name, &known)),
    }
}

impl Task for Links {
    fn metric(&self) -> String {
        metric_of(&self.config).unwrap_or_default()
    }

    fn sizes(&self) -> Sizes {
        let Edges { train, valid, test, .. } = &self.edges;
        Sizes { of: "edges", outputs: 0, splits: [train, valid, test].map(|edges| edges.len()) }
    }

    fn divide(&mut self, _: Option<&Dataset>, cut: &PartitionedDataset) -> Result<()> {
        self.owner = cut.assignment(self.edges.ends.head_type())?.to_vec();
        Ok(())
    }

    fn train(
        &self,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        match &self.encoder {
            None => gradient::train(session, &LinkLearner::new(self)?, rank, state),
            Some(encoder) => encoder.train(self, session, rank, state),
        }
    }

    fn judge(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation> {
        let found = evaluate::alone(self, params, tables)?;
        Ok(Evaluation { leakage: Some(leakage::check(self)?), ..found })
    }
}
