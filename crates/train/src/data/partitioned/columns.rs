//! Labels and splits of the nodes of a type, from all parts.

use std::borrow::Cow;

use gnarl_common::{Buf, Error, Result, Spool};
use gnarl_config::RunConfig;
use gnarl_graph::Labels;
use gnarl_graph::splits::{Role, Roles};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::Routes;
use gnarl_serve::{Description, PartAccess};

use crate::data::node_targets::{NodeLabels, NodeTargets};
use crate::data::times::lacking;

/// Nodes whose labels are asked of a part at a time.
const ASKED: usize = 1 << 18;
/// Times written at a time, and bytes of times that are kept in memory.
const PIECE: usize = 1 << 16;
const IN_MEMORY: usize = 64 << 20;

/// The nodes of a type, and the columns that parts have of them.
pub(super) struct Columns<'a> {
    pub nodes: &'a Routes,
    pub parts: &'a [PartAccess],
    /// What each part says of the type.
    pub abouts: &'a [Description],
}

impl Columns<'_> {
    /// Labels and splits by dataset ids, and the roles that splits are made of. Labels are those of nodes with a role, where
    /// these are few.
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
        let split = config.dataset.split.as_ref();
        let given = self.roles()?;
        let with_role = given.iter().filter(|&&role| role != Role::None).count();
        // A node and its label, instead of a label of each node.
        let labels = if split.is_none() && 2 * with_role < given.len() {
            let nodes = (0..).zip(&given).filter(|(_, role)| **role != Role::None);
            let nodes: Vec<u32> = nodes.map(|(node, _)| node).collect();
            NodeLabels::some(self.labels(nodes.iter().copied())?, nodes)
        } else {
            NodeLabels::all(self.labels(0..given.len() as u32)?)
        };
        let place = cut.dir().display().to_string();
        let roles = Roles::new(given, &|node| labels.has(node), split, &place)?;
        let [train, valid, test] =
            [Role::Train, Role::Valid, Role::Test].map(|role| roles.nodes(role));
        let outputs = labels.stored().outputs();
        Ok((
            NodeTargets { outputs, labels, train, valid, test, scored: [true, true, false] },
            roles,
        ))
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

    /// The time of each node, by dataset ids, if nodes have some; in a temporary file if they are many.
    ///
    /// # Errors
    /// If a part does not reply, or there is no room for the file.
    pub fn times(&self) -> Result<Option<Buf<i64>>> {
        let all = self.parts.iter().zip(self.abouts).map(|(part, about)| part.times(about));
        let all: Vec<Option<Cow<'_, [i64]>>> = all.collect::<Result<_>>()?;
        let Some(all) = all.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let mut times = Spool::new(IN_MEMORY);
        let mut piece = Vec::with_capacity(PIECE);
        for (part, at) in self.places() {
            piece.push(all[part][at]);
            if piece.len() == PIECE {
                times.append(&piece)?;
                piece.clear();
            }
        }
        times.append(&piece)?;
        times.finish().map(Some)
    }

    /// The part of each node, and its position there.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.nodes.num_nodes()).map(|node| {
            let (part, at) = self.nodes.ids().place(node);
            (part, at as usize)
        })
    }

    /// The role of each node that the splits of its part give it.
    fn roles(&self) -> Result<Vec<Role>> {
        let all = self.parts.iter().zip(self.abouts).map(|(part, about)| part.splits(about));
        let all: Vec<Cow<'_, [u8]>> = all.collect::<Result<_>>()?;
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

    /// Labels of `nodes`, in their order.
    fn labels(&self, nodes: impl ExactSizeIterator<Item = u32>) -> Result<Labels> {
        let (mut found, count) = (Found::default(), nodes.len());
        let mut asked: Vec<Vec<u64>> = vec![Vec::new(); self.parts.len()];
        let mut parts = Vec::with_capacity(ASKED);
        let mut nodes = nodes.peekable();
        while let Some(node) = nodes.next() {
            let part = self.nodes.owner(node);
            asked[part].push(u64::from(node));
            parts.push(part as u32);
            if parts.len() == ASKED || nodes.peek().is_none() {
                self.ask(&mut asked, &parts, (&mut found, count))?;
                parts.clear();
            }
        }
        let outputs = self.abouts[0].outputs;
        match [found.classes.is_empty(), found.marks.is_empty(), found.numbers.is_empty()] {
            [_, true, true] => Ok(Labels::Single { classes: found.classes.into(), count: outputs }),
            [true, false, true] => Ok(Labels::Multi { values: found.marks.into(), tasks: outputs }),
            [true, true, false] => Ok(Labels::Values { values: found.numbers.into() }),
            _ => Err(Error::invalid("parts differ in the kind of their labels")),
        }
    }

    /// Appends the labels of the nodes that are `asked` of each part, which owns them as `parts` says, to those `found`
    /// of `count` nodes in all.
    fn ask(
        &self,
        asked: &mut [Vec<u64>],
        parts: &[u32],
        (found, count): (&mut Found, usize),
    ) -> Result<()> {
        let sources = self.parts.iter().zip(self.abouts).zip(asked.iter());
        let labels = sources.map(|((part, about), nodes)| match nodes.is_empty() {
            true => Ok(None),
            false if about.outputs == 0 => {
                Err(Error::invalid(format!("part {} has no labels", about.part)))
            }
            false => part.labels(about, nodes).map(Some),
        });
        let labels: Vec<Option<Labels>> = labels.collect::<Result<_>>()?;
        labels.iter().flatten().for_each(|like| found.make_room(like, count));
        let mut next = vec![0; labels.len()];
        for &part in parts {
            let part = part as usize;
            let at = next[part];
            next[part] += 1;
            match &labels[part] {
                Some(Labels::Single { classes, .. }) => found.classes.push(classes[at]),
                Some(Labels::Multi { values, tasks }) => {
                    found.marks.extend_from_slice(&values[at * tasks..(at + 1) * tasks]);
                }
                Some(Labels::Values { values }) => found.numbers.push(values[at]),
                None => unreachable!("each part was asked for the labels of its nodes"),
            }
        }
        asked.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

/// Labels of nodes: classes, rows of marks, or numbers.
#[derive(Default)]
struct Found {
    classes: Vec<i32>,
    marks: Vec<u8>,
    numbers: Vec<f32>,
}

impl Found {
    /// Makes room for labels of `count` nodes, and no more, where there are none yet.
    fn make_room(&mut self, like: &Labels, count: usize) {
        match like {
            Labels::Single { .. } if self.classes.is_empty() => self.classes.reserve_exact(count),
            Labels::Multi { tasks, .. } if self.marks.is_empty() => {
                self.marks.reserve_exact(count * tasks);
            }
            Labels::Values { .. } if self.numbers.is_empty() => self.numbers.reserve_exact(count),
            _ => {}
        }
    }
}
