//! What is learnt: labels, splits and features, over the whole graph or one part of it.

use std::sync::{Arc, Mutex, PoisonError};

use gnarl_graph::inspect::grouped;
use gnarl_graph::rng::Key;
use gnarl_graph::{Buf, Dataset, Error, Labels, Result};
use gnarl_sample::parts::{NeighborService, PartsSampler, Replica, Routes, Rule};
use gnarl_sample::{Block, SampleGraph, whole_block};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use crate::config::{DatasetSection, SplitSection};

/// The role of a node in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Only a neighbour.
    None,
    /// Its label is learnt from.
    Train,
    /// Its label picks the best epoch.
    Valid,
    /// Its label judges the result.
    Test,
}

impl Role {
    /// The splits of a dataset, and the roles of their nodes.
    pub const SPLITS: [(&str, Self); 3] =
        [("train", Self::Train), ("valid", Self::Valid), ("test", Self::Test)];
}

/// Roles of all nodes of a dataset, one byte each.
#[derive(Debug, Clone)]
pub struct Roles(Vec<Role>);

impl Roles {
    /// The dataset's own splits `train`, `valid` and `test`, or a seeded one of its labelled
    /// nodes. Nodes of a split without a label are left out with a warning.
    ///
    /// # Errors
    /// If no training node is left.
    pub fn of(dataset: &Dataset, labels: &Labels, split: Option<&SplitSection>) -> Result<Self> {
        let (node, _) = dataset.plain()?;
        let mut roles = vec![Role::None; node.count as usize];
        for (name, role) in Role::SPLITS {
            for &id in dataset.split(&node.name, name)?.unwrap_or_default().iter() {
                roles[id as usize] = role;
            }
        }
        Self::new(roles, labels, split, &dataset.dir().display().to_string())
    }

    /// The roles given, less those of nodes without a label, or the roles that `split` draws instead.
    /// `place` names the dataset in messages.
    ///
    /// # Errors
    /// If no training node is left.
    pub fn new(
        mut roles: Vec<Role>,
        labels: &Labels,
        split: Option<&SplitSection>,
        place: &str,
    ) -> Result<Self> {
        if let Some(split) = split {
            roles.fill(Role::None);
            draw(&mut roles, labels, split);
        }
        let given = roles.contains(&Role::Train);
        if let Labels::Single { classes, .. } = labels {
            leave_out_unlabeled(&mut roles, classes, place);
        }
        if !roles.contains(&Role::Train) {
            let hint = match given {
                true => "none of the nodes in split 'train' has a label: import labels of some",
                false => "import with --split train=…, or set dataset.split in the run file",
            };
            return Err(Error::invalid(format!("{place}: no training nodes")).hint(hint));
        }
        Ok(Self(roles))
    }

    /// The nodes of a role, ascending.
    pub fn nodes(&self, role: Role) -> Vec<u32> {
        (0..self.0.len() as u32).filter(|&v| self.0[v as usize] == role).collect()
    }

    /// The role of a node of the dataset.
    pub fn get(&self, id: u64) -> Role {
        self.0[id as usize]
    }
}

/// Takes the roles of nodes without a class, and says of each split how many those were.
fn leave_out_unlabeled(roles: &mut [Role], classes: &[i32], place: &str) {
    for (split, role) in Role::SPLITS {
        let listed = roles.iter().filter(|&&given| given == role).count();
        let mut unlabeled = 0;
        for (given, &class) in roles.iter_mut().zip(classes) {
            if *given == role && class < 0 {
                *given = Role::None;
                unlabeled += 1;
            }
        }
        warn_of_unlabeled(place, split, unlabeled, listed as u64, "nodes");
    }
}

/// Says how many of the `members` of a split, nodes or edges, have no label, if any.
pub(crate) fn warn_of_unlabeled(
    place: &str,
    split: &str,
    unlabeled: u64,
    listed: u64,
    members: &str,
) {
    if unlabeled > 0 {
        let (few, all) = (grouped(unlabeled), grouped(listed));
        tracing::warn!("{place}: {few} of {all} {split} {members} have no label and are left out");
    }
}

/// Shuffles the labelled nodes and cuts them by the shares.
fn draw(roles: &mut [Role], labels: &Labels, split: &SplitSection) {
    let labelled = |v: usize| match labels {
        Labels::Single { classes, .. } => classes[v] >= 0,
        Labels::Multi { .. } => true,
    };
    let mut nodes: Vec<u32> = (0..roles.len()).filter(|&v| labelled(v)).map(|v| v as u32).collect();
    Key::new(split.seed).with(0x5917).shuffle(&mut nodes);
    let mut nodes = nodes.into_iter();
    let total = nodes.len() as f64;
    let mut end = 0.0;
    let mut taken = 0;
    for (share, role) in
        [(split.train, Role::Train), (split.valid, Role::Valid), (split.test, Role::Test)]
    {
        end += share * total;
        let count = (end.round() as usize).saturating_sub(taken);
        taken += count;
        nodes.by_ref().take(count).for_each(|v| roles[v as usize] = role);
    }
}

/// Where the in-neighbour lists of a graph are.
pub enum Topology {
    /// In files of this machine, in local ids.
    Held(SampleGraph),
    /// In parts, here and on other machines. Local ids are dataset ids.
    Divided(Divided),
}

/// A graph that lies in parts.
pub struct Divided {
    /// Which parts have edges of a node.
    pub routes: Routes,
    /// What answers for each part.
    pub services: Vec<Arc<dyn NeighborService>>,
    /// New id of each node, those of a part following each other.
    pub new_ids: Buf<u64>,
    /// First new id of each part, and the number of nodes.
    pub ranges: Vec<u64>,
    /// Copies of lists of other machines.
    pub replica: Option<Arc<Replica>>,
}

impl Divided {
    /// A sampler of its parts.
    ///
    /// # Errors
    /// As [`PartsSampler::new`].
    pub fn sampler(&self, rule: Rule, fanouts: &[i64]) -> Result<PartsSampler> {
        let (routes, services) = (self.routes.clone(), self.services.clone());
        let sampler = PartsSampler::new(rule, fanouts, routes, services)?;
        Ok(match &self.replica {
            Some(replica) => sampler.with_replica(replica.clone()),
            None => sampler,
        })
    }
}

/// A graph to train on or to judge by: the whole dataset or one part.
pub struct TaskGraph {
    /// In-neighbour lists.
    pub topology: Topology,
    /// Feature rows by local id.
    pub features: Box<dyn FeatureStore>,
    /// Labels by local id.
    pub labels: Labels,
    /// Training nodes, ascending local ids; core nodes only.
    pub train: Vec<u32>,
    /// Validation nodes.
    pub valid: Vec<u32>,
    /// Test nodes.
    pub test: Vec<u32>,
    /// All of it as one block, once somebody asked for it.
    pub whole: Whole,
}

/// The whole graph as one block, made once for all workers of this process.
#[derive(Default)]
pub struct Whole(Mutex<Option<Arc<Block>>>);

impl TaskGraph {
    /// The whole graph as one block, which knows whether it is symmetric.
    ///
    /// # Errors
    /// If the graph lies in parts, or is too large for a block.
    pub fn whole_block(&self) -> Result<Arc<Block>> {
        let mut whole = self.whole.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = &*whole {
            return Ok(block.clone());
        }
        let block = Arc::new(whole_block(self.held()?)?.with_symmetry());
        Ok(whole.insert(block).clone())
    }

    /// Opens a dataset, or a part of one, with the roles of the whole dataset's nodes.
    ///
    /// # Errors
    /// If the graph is not plain, or lacks features or labels.
    pub fn open(dataset: &Dataset, roles: &Roles, normalize: Normalize) -> Result<Arc<Self>> {
        let graph = SampleGraph::open(dataset)?;
        let with = |role: Role| -> Vec<u32> {
            (0..graph.core() as u32).filter(|&v| roles.get(graph.id(v)) == role).collect()
        };
        let (train, valid, test) = (with(Role::Train), with(Role::Valid), with(Role::Test));
        let features = Box::new(MappedFeatures::new(features_of(dataset)?, normalize)?);
        let (topology, labels) = (Topology::Held(graph), labels_of(dataset)?);
        let whole = Whole::default();
        Ok(Arc::new(Self { topology, features, labels, train, valid, test, whole }))
    }

    /// The lists, if they are on this machine as a whole.
    ///
    /// # Errors
    /// [`gnarl_graph::Kind::Usage`] if they lie in parts.
    pub fn held(&self) -> Result<&SampleGraph> {
        match &self.topology {
            Topology::Held(graph) => Ok(graph),
            Topology::Divided(_) => Err(Error::usage("this needs the whole graph in one place")
                .hint("leave out partition.servers, or sample neighbours")),
        }
    }

    /// Width of a feature row.
    pub fn width(&self) -> usize {
        self.features.width()
    }
}

/// The features of a plain dataset's nodes.
pub(crate) fn features_of(dataset: &Dataset) -> Result<gnarl_graph::Features> {
    let (node, _) = dataset.plain()?;
    dataset.features(&node.name)?.ok_or_else(|| {
        Error::invalid(format!("{}: nodes have no features", dataset.dir().display()))
            .hint("import with --features")
    })
}

/// The labels of a plain dataset.
///
/// # Errors
/// If it has none.
pub fn labels_of(dataset: &Dataset) -> Result<Labels> {
    let (node, _) = dataset.plain()?;
    dataset.labels(&node.name)?.ok_or_else(|| {
        Error::invalid(format!("{}: nodes have no labels", dataset.dir().display()))
            .hint("import with --labels, or with --label from a table")
    })
}

/// The whole dataset with its roles, as a run file's `[dataset]` asks for.
///
/// # Errors
/// As [`Roles::of`] and [`TaskGraph::open`].
pub fn whole(section: &DatasetSection) -> Result<(Dataset, Roles, Arc<TaskGraph>)> {
    let dataset = Dataset::open(&section.path)?;
    let (roles, graph) = opened(&dataset, section)?;
    Ok((dataset, roles, graph))
}

/// The same of a dataset that is open.
pub(crate) fn opened(
    dataset: &Dataset,
    section: &DatasetSection,
) -> Result<(Roles, Arc<TaskGraph>)> {
    let roles = Roles::of(dataset, &labels_of(dataset)?, section.split.as_ref())?;
    let graph = TaskGraph::open(dataset, &roles, section.normalize)?;
    Ok((roles, graph))
}
