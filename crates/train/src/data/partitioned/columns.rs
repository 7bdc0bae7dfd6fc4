//! Labels and splits of the nodes of a type, from all parts.

use gnarl_common::{Buf, Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::Labels;
use gnarl_graph::splits::{Role, Roles};
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{Description, PartAccess};

use crate::data::node_targets::NodeTargets;
use crate::data::part_nodes::PartNodes;
use crate::data::times::lacking;

/// The nodes of a type, and the columns that parts have of them.
pub(super) struct Columns<'a> {
    pub nodes: &'a PartNodes,
    pub parts: &'a [PartAccess],
    /// What each part says of the type.
    pub abouts: &'a [Description],
}

/// Describes the columns of a node type in each part.
///
/// # Errors
/// If a part has no such nodes, or belongs to another graph or partition.
pub(super) fn describe(
    cut: &PartitionedDataset,
    all: &[Vec<Description>],
    ntype: &str,
) -> Result<Vec<Description>> {
    let ranges = &cut.node_type(ntype)?.ranges;
    let mut abouts: Vec<Description> = Vec::new();
    for (part, (of_part, range)) in all.iter().zip(ranges.windows(2)).enumerate() {
        let shape = |a: &Description| (a.feature_width, a.sparse, a.outputs);
        let known = |about: &&Description| {
            about.ntype == ntype
                && about.nodes == range[1] - range[0]
                && abouts.first().is_none_or(|first| shape(first) == shape(about))
        };
        let types = cut.manifest().node_types.len();
        let about = of_part.iter().find(known).filter(|_| of_part.len() == types);
        let other = || {
            let text = format!("part {part} belongs to another graph or partition");
            Error::invalid(text).hint("serve the parts of the run's partition")
        };
        abouts.push(about.ok_or_else(other)?.clone());
    }
    Ok(abouts)
}

impl Columns<'_> {
    /// Labels and splits by dataset ids, and the roles that splits are made of.
    ///
    /// # Errors
    /// If nodes have no labels, or a part does not reply.
    pub fn targets(
        &self,
        config: &RunConfig,
        cut: &PartitionedDataset,
    ) -> Result<(NodeTargets, Roles)> {
        if self.abouts[0].outputs == 0 {
            return Err(Error::invalid("the nodes of the parts have no labels")
                .hint("partition a dataset that has them"));
        }
        let labels = self.labels()?;
        let place = cut.dir().display().to_string();
        let roles = Roles::new(self.roles()?, &labels, config.dataset.split.as_ref(), &place)?;
        let [train, valid, test] =
            [Role::Train, Role::Valid, Role::Test].map(|role| roles.nodes(role));
        let outputs = labels.outputs();
        Ok((NodeTargets { outputs, labels, train, valid, test, scored: [true; 2] }, roles))
    }

    /// The time of each node, by dataset ids, if the run samples nodes by time.
    ///
    /// # Errors
    /// If nodes have none, or a part does not reply.
    pub fn times_of_seeds(&self, config: &RunConfig) -> Result<Option<Buf<i64>>> {
        if !config.samples_by_time() {
            return Ok(None);
        }
        let name = format!("nodes of type '{}'", self.abouts[0].ntype);
        self.times()?.ok_or_else(|| lacking(&name)).map(Some)
    }

    /// The time of each node, by dataset ids, if nodes have some.
    ///
    /// # Errors
    /// If a part does not reply.
    pub fn times(&self) -> Result<Option<Buf<i64>>> {
        let all = self.parts.iter().zip(self.abouts).map(|(part, about)| part.times(about));
        let all: Vec<Option<Vec<i64>>> = all.collect::<Result<_>>()?;
        let Some(all) = all.into_iter().collect::<Option<Vec<Vec<i64>>>>() else { return Ok(None) };
        let times: Vec<i64> = self.nodes.places().map(|(part, at)| all[part][at]).collect();
        Ok(Some(times.into()))
    }

    fn roles(&self) -> Result<Vec<Role>> {
        let all = self.parts.iter().zip(self.abouts).map(|(part, about)| part.splits(about));
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
        self.nodes.places().map(role).collect()
    }

    fn labels(&self) -> Result<Labels> {
        let all = self.parts.iter().zip(self.abouts).map(|(part, about)| part.labels(about));
        let all: Vec<Option<Labels>> = all.collect::<Result<_>>()?;
        let outputs = self.abouts[0].outputs;
        let (mut classes, mut marks, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (part, at) in self.nodes.places() {
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
