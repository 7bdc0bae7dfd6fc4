//! Splits of nodes for training: those of a dataset, or a seeded one of its labeled nodes.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::inspect::grouped;
use crate::{Dataset, Features, Labels};

/// Shares of the labeled nodes for training, validation and test, drawn by a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSplit {
    /// Share of training nodes.
    pub train: f64,
    /// Share of validation nodes.
    pub valid: f64,
    /// Share of test nodes.
    pub test: f64,
    /// Random seed.
    #[serde(default)]
    pub seed: u64,
}

/// The role of a node in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// No target; at most a neighbor in samples.
    None,
    /// Training node.
    Train,
    /// Validation node, for choosing the best epoch.
    Valid,
    /// Test node.
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
    /// The splits `train`, `valid` and `test` of a node type of a dataset, or a seeded one of its
    /// labeled nodes. Nodes of a split without a label are left out with a warning.
    ///
    /// # Errors
    /// If no training node is left.
    pub fn of(
        dataset: &Dataset,
        node_type: &str,
        labels: &Labels,
        split: Option<&RandomSplit>,
    ) -> Result<Self> {
        let Self(roles) = Self::given(dataset, node_type)?;
        let place = dataset.dir().display();
        let place = match dataset.plain() {
            Ok(_) => place.to_string(),
            Err(_) => format!("{place}: node type '{node_type}'"),
        };
        Self::new(roles, &|node| labels.has(node), split, &place)
    }

    /// The splits of a node type as they are stored, of labeled nodes and of others; any may be empty.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn given(dataset: &Dataset, node_type: &str) -> Result<Self> {
        let mut roles = vec![Role::None; dataset.manifest().node_type(node_type)?.count as usize];
        for (name, role) in Role::SPLITS {
            for &id in dataset.split(node_type, name)?.unwrap_or_default().iter() {
                let of_node = usize::try_from(id).ok().and_then(|node| roles.get_mut(node));
                *of_node.ok_or_else(|| {
                    let place = dataset.dir().display();
                    Error::invalid(format!("{place}: split '{name}': there is no node {id}"))
                })? = role;
            }
        }
        Ok(Self(roles))
    }

    /// The given roles, without those of unlabeled nodes, or the roles that `split` draws instead. `has_label` tells whether
    /// a node is labeled: of nodes with a role, or of all where roles are drawn. `place` names the dataset in messages.
    ///
    /// # Errors
    /// If no training node is left.
    pub fn new(
        mut roles: Vec<Role>,
        has_label: &dyn Fn(usize) -> bool,
        split: Option<&RandomSplit>,
        place: &str,
    ) -> Result<Self> {
        if let Some(split) = split {
            roles.fill(Role::None);
            draw(&mut roles, has_label, split);
        }
        let given = roles.contains(&Role::Train);
        leave_out_unlabeled(&mut roles, has_label, place);
        if !roles.contains(&Role::Train) {
            let hint = if given {
                "no node in split 'train' has a label: import labels for some"
            } else {
                "import with --split train=…, or set dataset.split in the run file"
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

/// Clears the roles of unlabeled nodes, and logs their number per split.
fn leave_out_unlabeled(roles: &mut [Role], has_label: &dyn Fn(usize) -> bool, place: &str) {
    for (split, role) in Role::SPLITS {
        let listed = roles.iter().filter(|&&given| given == role).count();
        let mut unlabeled = 0;
        for (node, given) in roles.iter_mut().enumerate() {
            if *given == role && !has_label(node) {
                *given = Role::None;
                unlabeled += 1;
            }
        }
        warn_of_unlabeled(place, split, unlabeled, listed as u64, "nodes");
    }
}

/// Logs the number of unlabeled `members` of a split, nodes or edges, if any.
pub fn warn_of_unlabeled(place: &str, split: &str, unlabeled: u64, listed: u64, members: &str) {
    if unlabeled > 0 {
        let (few, all) = (grouped(unlabeled), grouped(listed));
        tracing::warn!("{place}: {few} of {all} {split} {members} have no label and are left out");
    }
}

/// Shuffles the labeled nodes and splits them by the shares.
fn draw(roles: &mut [Role], has_label: &dyn Fn(usize) -> bool, split: &RandomSplit) {
    let labeled = (0..roles.len()).filter(|&v| has_label(v));
    let mut nodes: Vec<u32> = labeled.map(|v| v as u32).collect();
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

/// The numbers of a node type that a regression learns.
///
/// # Errors
/// If it has none.
pub fn values_of(dataset: &Dataset, node_type: &str) -> Result<Labels> {
    dataset.values(node_type)?.ok_or_else(|| {
        let place = dataset.dir().display();
        Error::invalid(format!("{place}: nodes of type '{node_type}' have no values"))
            .hint("import with --values, or with --value from a table")
    })
}

/// The labels of a node type.
///
/// # Errors
/// If it has none.
pub fn labels_of(dataset: &Dataset, node_type: &str) -> Result<Labels> {
    dataset.labels(node_type)?.ok_or_else(|| {
        let place = dataset.dir().display();
        match dataset.plain() {
            Ok(_) => Error::invalid(format!("{place}: nodes have no labels"))
                .hint("import with --labels, or with --label from a table"),
            Err(_) => {
                Error::invalid(format!("{place}: nodes of type '{node_type}' have no labels"))
                    .hint("import with --labels TYPE=FILE, or classify another type")
            }
        }
    })
}

/// The features of a homogeneous dataset's nodes.
///
/// # Errors
/// If it is heterogeneous, or its nodes have none.
pub fn features_of(dataset: &Dataset) -> Result<Features> {
    let (node, _) = dataset.plain()?;
    dataset.features(&node.name)?.ok_or_else(|| {
        Error::invalid(format!("{}: nodes have no features", dataset.dir().display()))
            .hint("import with --features")
    })
}
