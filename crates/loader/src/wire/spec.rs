//! The way in which all batches of a loader are made.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::Triple;
use gnarl_sample::HeteroFanouts;
use gnarl_sample::parts::Rule;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graph::LoaderGraph;
use crate::options::{Columns, LoaderOptions, Neighborhood};
use crate::sampler::NeighborSampler;
use crate::source::OwnBatches;

/// The version of gnarl.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Most hops of batches that are asked for elsewhere.
const MOST_HOPS: usize = 64;

/// The sampler and the columns of a loader's batches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchSpec {
    /// The version of gnarl, whose samplers and messages may differ between versions.
    version: String,
    /// A number of the partition, see [`LoaderGraph::parts_key`].
    parts: u64,
    fanouts: Vec<i64>,
    fanouts_of: Vec<(Triple, Vec<i64>)>,
    rule: String,
    disjoint: bool,
    time: Option<String>,
    replace: bool,
    subgraph: String,
    features: bool,
    labels: bool,
    others: bool,
}

impl BatchSpec {
    /// The spec of a loader.
    pub fn of(
        graph: &LoaderGraph,
        (fanouts, rule): (&HeteroFanouts, Rule),
        options: &LoaderOptions,
    ) -> Self {
        let own = fanouts.of_types().map(|(triple, fanouts)| (triple.clone(), fanouts.to_vec()));
        Self {
            version: VERSION.into(),
            parts: graph.parts_key(),
            fanouts: fanouts.of_others().to_vec(),
            fanouts_of: own.collect(),
            rule: rule.name().into(),
            disjoint: options.neighborhood.disjoint,
            time: options.neighborhood.time.map(|rule| rule.name().into()),
            replace: options.neighborhood.replace,
            subgraph: options.neighborhood.subgraph.name().into(),
            features: options.columns.features,
            labels: options.columns.labels,
            others: options.columns.others,
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it has another form.
    pub fn read(message: &Value) -> Result<Self> {
        // Before the rest, which may have another form.
        let theirs = message.get("version").and_then(Value::as_str).unwrap_or("?");
        if theirs != VERSION {
            let message =
                format!("a loader of gnarl {theirs} asks a server of {VERSION} for batches");
            return Err(Error::usage(message).hint("install one version on all hosts"));
        }
        let spec = Self::deserialize(message)
            .map_err(|e| Error::invalid(format!("the sampler of batches: {e}")))?;
        let hops = spec.fanouts_of.iter().map(|(_, own)| own.len()).chain([spec.fanouts.len()]);
        match hops.max().filter(|&hops| hops > MOST_HOPS) {
            Some(hops) => Err(Error::usage(format!("{hops} hops of batches: at most {MOST_HOPS}"))),
            None => Ok(spec),
        }
    }

    /// The message.
    pub fn message(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The batches of `graph` that are so made, with `threads` to prepare them.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`]; if there is no such rule.
    pub fn batches(&self, graph: &Arc<LoaderGraph>, threads: usize) -> Result<OwnBatches> {
        if self.parts != graph.parts_key() {
            let message = "a loader of another partition asks for batches";
            return Err(Error::usage(message).hint("connect to the server again"));
        }
        let mut fanouts = HeteroFanouts::new(&self.fanouts);
        for (triple, own) in &self.fanouts_of {
            fanouts = fanouts.with(triple.clone(), own);
        }
        let neighborhood = Neighborhood {
            disjoint: self.disjoint,
            time: self.time.as_deref().map(str::parse).transpose()?,
            replace: self.replace,
            subgraph: self.subgraph.parse()?,
        };
        let rule = self.rule.parse()?;
        let sampler = NeighborSampler::new(graph.clone(), (&fanouts, rule), neighborhood, threads)?;
        let Self { features, labels, others, .. } = *self;
        Ok(OwnBatches::new(sampler, Columns { features, labels, others }))
    }
}
