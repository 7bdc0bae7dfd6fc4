//! Requests as JSON: commands in the descriptors of exchanges, and tickets.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::Triple;
use gnarl_graph::triples::Side;
use gnarl_sample::parts::{AsOf, HopRequest, Rule};
use serde::{Deserialize, Serialize};

/// A command on the nodes (or places of edges) that follow in the column `node` of an exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Command {
    /// Gathers values of the part's own nodes.
    Gather {
        /// Part number.
        part: usize,
        /// The type of the nodes; may be left out where there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ntype: Option<String>,
        /// `features`, `stored`, `label`, `split`, `embedding` or `time`.
        column: Column,
    },
    /// Updates the embeddings of the part's own nodes by the gradients that follow in a column
    /// `gradient`. The reply has the embeddings after the step.
    Push {
        /// Part number.
        part: usize,
        /// Learning rate.
        lr: f32,
        /// Id of the client, unique among clients.
        from: u64,
        /// The client's pushes, counted from 1 on. A repeated number is not applied again, so
        /// that a push whose reply was lost can be retried.
        step: u64,
    },
    /// Samples in-neighbors, see [`HopRequest`].
    Sample {
        /// Part number.
        part: usize,
        /// The type of the edges, `source:relation:destination`; may be left out where there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        etype: Option<String>,
        /// Most neighbors of a node; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fanout: Option<u32>,
        /// Name of the sampling rule.
        rule: String,
        /// [`Key::bits`].
        key: u64,
        /// Asks for the features of edges.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        edge_features: bool,
        /// Asks about each node at its time in the column `time` (i64), by this rule: `recent` or `uniform`. Edges have
        /// random numbers of their own if `rule` is `exact`, as vertex cuts require.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<String>,
    },
    /// Reads the target edges at the places in the column `node`, as far as the part has them.
    Targets {
        /// Part number.
        part: usize,
        /// 0 to 2: `train`, `valid`, `test`.
        split: usize,
    },
    /// Reads the part's target edges that have one of the endpoints in the column `node`, with the relation in the
    /// column `relation` (u32).
    Known {
        /// Part number.
        part: usize,
        /// The other side than that of the given endpoints: `head` or `tail`.
        #[serde(with = "SideName")]
        side: Side,
        /// Training edges only.
        train: bool,
    },
    /// Asks for a batch, see [`BatchServer`](crate::BatchServer): what is not said here is in lists.
    Batch {
        /// The way in which all batches of a loader are made.
        spec: serde_json::Value,
        /// The batch.
        request: serde_json::Value,
    },
}

/// Names of [`Side`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Side", rename_all = "lowercase")]
enum SideName {
    Head,
    Tail,
}

/// The action by which a server says that it makes batches.
pub(crate) const BATCHES: &str = "batches";

/// The action that lists the files that describe the partition.
pub(crate) const FILES: &str = "files";

/// A node column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// Features, widened to f32.
    Features,
    /// Features in the type that they are stored in, if that is f16 or bf16; else as [`Column::Features`].
    Stored,
    /// Class indices, or a row of 0 and 1.
    Label,
    /// The split of a node: 0 for none, 1 to 3 for `train`, `valid` and `test`.
    Split,
    /// Embeddings.
    Embedding,
    /// Times.
    Time,
}

/// A ticket for all values of a column: one row per node that the part owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// Part number.
    pub part: usize,
    /// The type of the nodes; may be left out where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntype: Option<String>,
    /// Requested column.
    pub column: Column,
}

/// A ticket for all target edges of a split that a part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeSplit {
    /// Part number.
    pub part: usize,
    /// The split, 0 to 2: `train`, `valid`, `test`.
    pub targets: usize,
}

/// A ticket for a piece of a file that describes the partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilePiece {
    /// The name that the server lists.
    pub file: String,
    /// The first byte.
    pub from: u64,
}

/// A ticket.
pub(crate) enum GetTicket {
    /// A node column.
    Column(Whole),
    /// The target edges of a split.
    Split(WholeSplit),
    /// A piece of a file.
    File(FilePiece),
}

impl GetTicket {
    /// Parses a ticket; one of target edges has the key `targets`, one of a file `file`.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let json: serde_json::Value = read("the ticket", bytes)?;
        match json.get("targets").is_some() {
            true => Ok(Self::Split(read("the ticket", bytes)?)),
            false if json.get("file").is_some() => Ok(Self::File(read("the ticket", bytes)?)),
            false => Ok(Self::Column(read("the ticket", bytes)?)),
        }
    }
}

/// Names of the splits, in the order of the codes of [`Column::Split`] from 1 on.
pub const SPLITS: [&str; 3] = ["train", "valid", "test"];

impl Column {
    /// All columns.
    pub const ALL: [Self; 6] =
        [Self::Features, Self::Stored, Self::Label, Self::Split, Self::Embedding, Self::Time];

    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Features => "features",
            Self::Stored => "stored",
            Self::Label => "label",
            Self::Split => "split",
            Self::Embedding => "embedding",
            Self::Time => "time",
        }
    }
}

impl Command {
    /// The part that the command is about; none of a batch.
    pub(crate) fn part(&self) -> Option<usize> {
        match self {
            Self::Gather { part, .. }
            | Self::Push { part, .. }
            | Self::Sample { part, .. }
            | Self::Targets { part, .. }
            | Self::Known { part, .. } => Some(*part),
            Self::Batch { .. } => None,
        }
    }

    /// The command that sends `request` to a part, over the edges of a type or of the only one.
    pub fn sample(part: usize, etype: Option<&Triple>, request: &HopRequest) -> Self {
        Self::Sample {
            part,
            etype: etype.map(Triple::to_string),
            fanout: (request.fanout != u32::MAX).then_some(request.fanout),
            rule: request.rule.name().into(),
            key: request.key.bits(),
            edge_features: request.edge_features,
            as_of: request.as_of.as_ref().map(|as_of| as_of.rule.name().into()),
        }
    }
}

/// The hop request of a `sample` command for `nodes`.
///
/// # Errors
/// If there is no such rule.
pub(crate) fn hop(
    nodes: Vec<u64>,
    (fanout, rule): (Option<u32>, &str),
    key: u64,
    edge_features: bool,
    as_of: Option<AsOf>,
) -> Result<HopRequest> {
    let (fanout, key) = (fanout.unwrap_or(u32::MAX), Key::from_bits(key));
    Ok(HopRequest { nodes, fanout, rule: rule.parse::<Rule>()?, key, edge_features, as_of })
}

/// Parses a client's `what`.
///
/// # Errors
/// If it is not the expected JSON.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(what: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::usage(format!("{what} is not a valid command: {e}"))
            .hint(r#"such as {"op": "gather", "part": 0, "column": "features"}"#)
    })
}

/// Serializes a command or ticket as JSON.
pub(crate) fn write(what: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(what).unwrap_or_default()
}
