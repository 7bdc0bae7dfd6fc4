//! Assembly of a partitioned graph: labels and splits of all parts, and access to features.

use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_config::{CacheSection, RunConfig};
use gnarl_graph::Labels;
use gnarl_graph::splits::{Role, Roles};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::{Replica, Routes, Rule};
use gnarl_serve::{Description, DividedRows, PartAccess, PartitionedFeatures};
use gnarl_store::RowSource;
use gnarl_store::cache::{CachePolicy, CachedRows};

use super::hot_nodes::Wanted;
use crate::data::graph::{Graph, Partitioned, Topology, Whole};
use crate::data::node_targets::NodeTargets;

/// Bytes of features fetched together before the first epoch.
const AHEAD: usize = 16 << 20;

/// The partitioned graph of `parts`, for one of some ranks. Memory: a label and two numbers
/// per node, and the budget of `[cache]`.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: Vec<PartAccess>,
    rank: (usize, usize),
) -> Result<(Graph, NodeTargets)> {
    let [node] = &cut.manifest().node_types[..] else {
        return Err(Error::invalid("training on parts supports one node type only"));
    };
    let routes = Routes::of(cut)?;
    let abouts: Vec<Vec<Description>> =
        parts.iter().map(PartAccess::describe).collect::<Result<_>>()?;
    let abouts = abouts.concat();
    alike(&abouts, &node.ranges)?;
    let mut divided = Partitioned {
        services: parts.iter().map(PartAccess::neighbors).collect::<Result<_>>()?,
        routes: routes.clone(),
        new_ids: cut.new_ids(&node.name)?,
        ranges: node.ranges.clone(),
        replica: None,
    };
    let nodes = Nodes { divided: &divided };
    let labels = nodes.labels(&parts, &abouts)?;
    let roles = nodes.roles(&parts, &abouts)?;
    let place = cut.dir().display().to_string();
    let roles = Roles::new(roles, &labels, config.dataset.split.as_ref(), &place)?;
    let [train, valid, test] = [Role::Train, Role::Valid, Role::Test].map(|role| roles.nodes(role));
    let rows = (abouts[0].feature_width, abouts[0].sparse);
    let wanted = Wanted::new(config, &divided, &parts, &train, rank);
    let replica = copied(&config.cache, &divided, &wanted)?;
    let cache = |source| cached(&config.cache, source, rows.1, &wanted);
    let normalize = config.dataset.normalize;
    let features = PartitionedFeatures::new(routes, parts.clone(), rows, normalize, cache)?;
    divided.replica = replica;
    let (topology, features) = (Topology::Partitioned(divided), Box::new(features));
    let whole = Whole::default();
    let targets =
        NodeTargets { outputs: labels.outputs(), labels, train, valid, test, scored: [true; 2] };
    Ok((Graph { topology, features, whole }, targets))
}

/// The cache in front of `source`, filled if its rows are chosen beforehand. Sparse features are
/// never cached.
fn cached(
    section: &CacheSection,
    source: DividedRows,
    sparse: bool,
    wanted: &Wanted<'_>,
) -> Result<CachedRows<DividedRows>> {
    let policy = section.policy;
    let bytes = section.memory.as_u64();
    let width = source.width();
    if policy != CachePolicy::Fixed || sparse {
        return policy.build(source, bytes, |_| Ok(Vec::new()));
    }
    let chosen = wanted.rows(policy.capacity(bytes, width))?;
    let cache = policy.build(source, bytes, |_| Ok(chosen.clone()))?;
    let filled = cache.prefetch(&chosen, AHEAD / (size_of::<f32>() * width.max(1)));
    filled.while_doing(|| "filling the feature cache")?;
    tracing::info!("{} remote features are cached", chosen.len());
    Ok(cache)
}

/// Replicas of other machines' lists, if there is a memory budget for them.
fn copied(
    section: &CacheSection,
    divided: &Partitioned,
    wanted: &Wanted<'_>,
) -> Result<Option<Arc<Replica>>> {
    let bytes = section.lists.as_u64();
    if bytes == 0 {
        return Ok(None);
    }
    let whole = divided.sampler(Rule::Exact, &[-1])?;
    let replica = Replica::read(&whole, &wanted.lists(Replica::most(bytes))?, bytes)?;
    let (nodes, edges) = (replica.nodes(), replica.edges());
    tracing::info!("{nodes} remote lists are replicated, {edges} edges");
    Ok(Some(Arc::new(replica)))
}

/// Rejects parts that belong to different graphs, or have no labels.
fn alike(abouts: &[Description], ranges: &[u64]) -> Result<()> {
    let first = &abouts[0];
    if abouts.len() + 1 != ranges.len() {
        return Err(Error::invalid("the served parts belong to a heterogeneous graph")
            .hint("serve the parts of the run's partition"));
    }
    if first.feature_width == 0 || first.outputs == 0 {
        let what = if first.feature_width == 0 { "features" } else { "labels" };
        return Err(Error::invalid(format!("the nodes of the parts have no {what}"))
            .hint("partition a dataset that has them"));
    }
    for (about, range) in abouts.iter().zip(ranges.windows(2)) {
        let shape = |a: &Description| (a.feature_width, a.sparse, a.outputs);
        if about.nodes != range[1] - range[0] || shape(about) != shape(first) {
            let text = format!("part {} belongs to another graph or partition", about.part);
            return Err(Error::invalid(text).hint("serve the parts of the run's partition"));
        }
    }
    Ok(())
}

/// Orders the columns of parts by dataset ids.
struct Nodes<'a> {
    divided: &'a Partitioned,
}

impl Nodes<'_> {
    /// The part of each node, and its position there.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let divided = self.divided;
        (0..divided.routes.num_nodes() as u32).map(|node| {
            let part = divided.routes.owner(node);
            (part, (divided.new_ids[node as usize] - divided.ranges[part]) as usize)
        })
    }

    fn roles(&self, parts: &[PartAccess], abouts: &[Description]) -> Result<Vec<Role>> {
        let all = parts.iter().zip(abouts).map(|(part, about)| part.splits(about));
        let all: Vec<Vec<u8>> = all.collect::<Result<_>>()?;
        let role = |(part, at): (usize, usize)| match all[part][at] {
            0 => Ok(Role::None),
            number => {
                let split = Role::SPLITS.get(usize::from(number) - 1);
                split
                    .map(|split| split.1)
                    .ok_or_else(|| Error::invalid(format!("part {part}: invalid split '{number}'")))
            }
        };
        self.places().map(role).collect()
    }

    fn labels(&self, parts: &[PartAccess], abouts: &[Description]) -> Result<Labels> {
        let all = parts.iter().zip(abouts).map(|(part, about)| part.labels(about));
        let all: Vec<Option<Labels>> = all.collect::<Result<_>>()?;
        let outputs = abouts[0].outputs;
        let (mut classes, mut marks, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (part, at) in self.places() {
            match &all[part] {
                Some(Labels::Single { classes: of_part, .. }) => classes.push(of_part[at]),
                Some(Labels::Multi { values: of_part, tasks }) => {
                    marks.extend_from_slice(&of_part[at * tasks..(at + 1) * tasks]);
                }
                Some(Labels::Values { values: of_part }) => numbers.push(of_part[at]),
                None => return Err(Error::invalid(format!("part {part} has no labels"))),
            }
        }
        match [classes.is_empty(), marks.is_empty(), numbers.is_empty()] {
            [_, true, true] => Ok(Labels::Single { classes: classes.into(), count: outputs }),
            [true, false, true] => Ok(Labels::Multi { values: marks.into(), tasks: outputs }),
            [true, true, false] => Ok(Labels::Values { values: numbers.into() }),
            _ => Err(Error::invalid("parts differ in the kind of their labels")),
        }
    }
}
