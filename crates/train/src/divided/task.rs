//! What is learnt on parts: their labels and splits together, and rows from where they are.

use gnarl_graph::{Error, Labels, Result};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::Routes;
use gnarl_serve::{Description, DividedFeatures, PartAccess};

use crate::config::RunConfig;
use crate::task::{Divided, Role, Roles, TaskGraph, Topology};

/// The graph whose parts are reached by `parts`. Memory: a label and two numbers for each node.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: Vec<PartAccess>,
) -> Result<TaskGraph> {
    let [node] = &cut.manifest().node_types[..] else {
        return Err(Error::invalid("training on parts knows graphs of one node type only"));
    };
    let routes = Routes::of(cut)?;
    let abouts: Vec<Description> = parts.iter().map(PartAccess::describe).collect::<Result<_>>()?;
    alike(&abouts, &node.ranges)?;
    let divided = Divided {
        services: parts.iter().map(PartAccess::neighbors).collect(),
        routes: routes.clone(),
        new_ids: cut.new_ids(&node.name)?,
        ranges: node.ranges.clone(),
    };
    let nodes = Nodes { divided: &divided };
    let labels = nodes.labels(&parts, &abouts)?;
    let roles = nodes.roles(&parts, &abouts)?;
    let roles = Roles::new(roles, &labels, config.dataset.split.as_ref())?;
    let [train, valid, test] = [Role::Train, Role::Valid, Role::Test].map(|role| roles.nodes(role));
    let rows = (abouts[0].feature_width, abouts[0].sparse);
    let cache = |source| {
        let section = &config.cache;
        section.policy.build(source, section.memory.as_u64(), |_| Err(fixed()))
    };
    let features = DividedFeatures::new(routes, parts, rows, config.dataset.normalize, cache)?;
    let features = Box::new(features);
    Ok(TaskGraph { topology: Topology::Divided(divided), features, labels, train, valid, test })
}

fn fixed() -> Error {
    Error::usage("cache.policy = 'fixed' is not known here")
        .hint("take 'clockpro', 'lru' or 'fifo', or set cache.memory to 0")
}

/// Refuses parts that are not of one graph, or have nothing to learn.
fn alike(abouts: &[Description], ranges: &[u64]) -> Result<()> {
    let first = &abouts[0];
    if first.feature_width == 0 || first.outputs == 0 {
        let what = if first.feature_width == 0 { "features" } else { "labels" };
        return Err(Error::invalid(format!("the nodes of the parts have no {what}"))
            .hint("cut a dataset that has them"));
    }
    for (about, range) in abouts.iter().zip(ranges.windows(2)) {
        let shape = |a: &Description| (a.feature_width, a.sparse, a.outputs);
        if about.nodes != range[1] - range[0] || shape(about) != shape(first) {
            let text = format!("part {} is of another graph or partition", about.part);
            return Err(Error::invalid(text).hint("serve the parts of the partition trained on"));
        }
    }
    Ok(())
}

/// Puts what parts have of their nodes in the order of dataset ids.
struct Nodes<'a> {
    divided: &'a Divided,
}

impl Nodes<'_> {
    /// The part of each node, and its place there.
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
                split.map(|split| split.1).ok_or_else(|| {
                    Error::invalid(format!("part {part}: {number} is no split's number"))
                })
            }
        };
        self.places().map(role).collect()
    }

    fn labels(&self, parts: &[PartAccess], abouts: &[Description]) -> Result<Labels> {
        let all = parts.iter().zip(abouts).map(|(part, about)| part.labels(about));
        let all: Vec<Option<Labels>> = all.collect::<Result<_>>()?;
        let outputs = abouts[0].outputs;
        let (mut classes, mut values) = (Vec::new(), Vec::new());
        for (part, at) in self.places() {
            match &all[part] {
                Some(Labels::Single { classes: of_part, .. }) => classes.push(of_part[at]),
                Some(Labels::Multi { values: of_part, tasks }) => {
                    values.extend_from_slice(&of_part[at * tasks..(at + 1) * tasks]);
                }
                None => return Err(Error::invalid(format!("part {part} has no labels"))),
            }
        }
        if classes.len() * values.len() > 0 {
            return Err(Error::invalid("some parts have classes, others several labels a node"));
        }
        Ok(match values.is_empty() {
            true => Labels::Single { classes: classes.into(), count: outputs },
            false => Labels::Multi { values: values.into(), tasks: outputs },
        })
    }
}
