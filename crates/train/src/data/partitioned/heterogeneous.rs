//! A partitioned heterogeneous graph.

use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::blocks::Schema;
use gnarl_graph::splits::Roles;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::EdgeServices;
use gnarl_sample::parts::Routes;
use gnarl_serve::{Description, PartAccess, PartitionedFeatures, describe_type};
use gnarl_store::FeatureStore;

use super::caches::cached;
use super::columns::Columns;
use super::hot_nodes::{Seeds, Wanted};
use crate::data::hetero_graph::{HeteroGraph, HeteroParts};
use crate::data::node_targets::NodeTargets;
use crate::data::times::draw_of;

/// The partitioned graph of `parts`, for one of some ranks, the targets of the nodes to predict, and their type. Memory:
/// an id map of each type, the nodes with a role and their labels, and the budget of `[cache]`, which node types share by
/// the bytes of their features.
///
/// # Errors
/// If the nodes to predict lack labels, or a part belongs to another partition or does not reply.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    rank: (usize, usize),
) -> Result<(HeteroGraph, (NodeTargets, Roles), String)> {
    let types = Types::open(cut, parts)?;
    let names = types.schema.node_types();
    let target = target(config, names, &types.abouts)?;
    let name = names[target].clone();
    let columns = Columns { nodes: &types.nodes[target], parts, abouts: &types.abouts[target] };
    let times = columns.times_of_seeds(config)?;
    let targets = columns.targets(config, cut);
    let (targets, roles) = targets.while_doing(|| format!("reading labels of type '{name}'"))?;
    let graph =
        types.graph(config, cut, parts, Seeds { of: target, train: Some(&targets.train), rank })?;
    let graph = match config.time_rule() {
        Some(rule) => {
            graph.parts_in_time(draw_of(config, rule), times.map(|times| (target, times)))?
        }
        None => graph,
    };
    Ok((graph, (targets, roles), name))
}

/// The partitioned graph of `parts` for tasks of edges whose heads are of type `heads`. Nodes need no labels, and any
/// of that type may be a seed.
///
/// # Errors
/// As [`open`], but for labels.
pub(super) fn messages(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    (heads, rank): (&str, (usize, usize)),
) -> Result<HeteroGraph> {
    let types = Types::open(cut, parts)?;
    let of = types.schema.node_type(heads)?;
    let graph = types.graph(config, cut, parts, Seeds { of, train: None, rank })?;
    match config.time_rule() {
        Some(rule) => graph.parts_in_time(draw_of(config, rule), None),
        None => Ok(graph),
    }
}

/// The node types of a partitioned graph.
struct Types {
    schema: Arc<Schema>,
    /// What each part says of each type.
    abouts: Vec<Vec<Description>>,
    nodes: Vec<Routes>,
}

impl Types {
    fn open(cut: &PartitionedDataset, parts: &[PartAccess]) -> Result<Self> {
        let schema = Arc::new(cut.schema()?);
        let all = parts.iter().map(PartAccess::describe);
        let all: Vec<Vec<Description>> = all.collect::<Result<_>>()?;
        let names = schema.node_types();
        let abouts = names.iter().map(|name| describe_type(cut, &all, name));
        let abouts = abouts.collect::<Result<_>>()?;
        let nodes = names.iter().map(|name| Routes::of_type(cut, name));
        let nodes = nodes.collect::<Result<_>>()?;
        Ok(Self { schema, abouts, nodes })
    }

    /// The graph, for a rank with some `seeds`.
    fn graph(
        self,
        config: &RunConfig,
        cut: &PartitionedDataset,
        parts: &[PartAccess],
        seeds: Seeds<'_>,
    ) -> Result<HeteroGraph> {
        let Self { schema, abouts, nodes } = self;
        let names = schema.node_types();
        let edges = cut.edge_types()?.into_iter().map(|edges| {
            let services = parts.iter().map(|part| part.neighbors(Some(&edges.triple)));
            let weighted = edges.is_weighted();
            Ok(EdgeServices { parts: services.collect::<Result<_>>()?, weighted })
        });
        let edges: Vec<EdgeServices> = edges.collect::<Result<_>>()?;
        let features = {
            let ends = edges.iter().enumerate().map(|(number, edges)| {
                let (src, dst) = schema.ends(number);
                (src, dst, &*edges.parts)
            });
            let wanted = Wanted::new(config, nodes.iter().collect(), ends.collect(), parts, seeds);
            let types = TypedFeatures { config, nodes: &nodes, abouts: &abouts, parts, names };
            (0..names.len()).map(|of| types.open(of, &wanted)).collect::<Result<_>>()?
        };
        let parts = HeteroParts { schema: schema.clone(), nodes, edges };
        Ok(HeteroGraph::of_parts(parts, features))
    }
}

/// Number of the type of the nodes to predict: that of the run file, or the only one with labels.
fn target(config: &RunConfig, names: &[String], abouts: &[Vec<Description>]) -> Result<usize> {
    let known = names.join(", ");
    if let Some(name) = &config.task.node_type {
        let found = names.iter().position(|known| known == name);
        return found.ok_or_else(|| {
            Error::usage(format!("task.node_type: unknown node type '{name}'"))
                .hint(format!("there are: {known}"))
        });
    }
    let labeled: Vec<usize> = (0..names.len()).filter(|&of| abouts[of][0].outputs > 0).collect();
    if let [only] = labeled[..] {
        let name = &names[only];
        tracing::info!("task.node_type is not set: '{name}' is the only node type with labels");
        return Ok(only);
    }
    let what = if labeled.is_empty() { "no node type has labels" } else { "several have labels" };
    let kind = config.task.kind.label_columns().join("' or '");
    Err(Error::usage(format!("task.node_type is required for a heterogeneous graph: {what}"))
        .hint(format!("the type of the nodes with a column '{kind}', one of: {known}")))
}

/// The features of all node types.
struct TypedFeatures<'a> {
    config: &'a RunConfig,
    nodes: &'a [Routes],
    abouts: &'a [Vec<Description>],
    parts: &'a [PartAccess],
    names: &'a [String],
}

impl TypedFeatures<'_> {
    /// The features of type number `of`, if it has any.
    fn open(&self, of: usize, wanted: &Wanted<'_>) -> Result<Option<Box<dyn FeatureStore>>> {
        let (width, sparse) = (self.abouts[of][0].feature_width, self.abouts[of][0].sparse);
        if width == 0 {
            return Ok(None);
        }
        let all: u64 = (0..self.names.len()).map(|of| self.dense_bytes(of)).sum();
        let memory = u128::from(self.config.cache.memory.as_u64());
        let share = memory * u128::from(self.dense_bytes(of)) / u128::from(all.max(1));
        let memory = (self.config.cache.policy, share as u64);
        let cache = |source| cached(memory, source, (of, sparse), wanted);
        let of_type = (&*self.names[of], self.nodes[of].clone());
        let (parts, normalize) = (self.parts.to_vec(), self.config.dataset.normalize);
        let features = PartitionedFeatures::new(of_type, parts, (width, sparse), normalize, cache)
            .while_doing(|| format!("opening the features of type '{}'", self.names[of]))?;
        Ok(Some(Box::new(features)))
    }

    /// Bytes of the features of type number `of`, if they are cached.
    fn dense_bytes(&self, of: usize) -> u64 {
        let about = &self.abouts[of][0];
        let width = if about.sparse { 0 } else { about.feature_width };
        (self.nodes[of].num_nodes() * width * size_of::<f32>()) as u64
    }
}
