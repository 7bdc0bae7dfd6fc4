//! What a client asks for, as JSON: in descriptors of exchanges, and in tickets.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_sample::parts::{HopRequest, Rule};
use serde::{Deserialize, Serialize};

/// A request about nodes that follow in a column `node`, an exchange's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Command {
    /// Values of the part's own nodes.
    Gather {
        /// Which part.
        part: usize,
        /// The type of the nodes; may be left out where there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ntype: Option<String>,
        /// `features`, `label`, `split` or `embedding`.
        column: Column,
    },
    /// A step of the learnt rows of the part's own nodes, by the gradients that follow in a column
    /// `gradient`. Answered with the rows after it.
    Push {
        /// Which part.
        part: usize,
        /// Learning rate.
        lr: f32,
        /// Who pushes; each client has a number of its own.
        from: u64,
        /// Counts the client's pushes from 1 on. One that was taken already is not taken again, so
        /// that a push whose answer was lost can be made anew.
        step: u64,
    },
    /// In-neighbours, see [`HopRequest`].
    Sample {
        /// Which part.
        part: usize,
        /// Most neighbours of a node; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fanout: Option<u32>,
        /// A rule's name.
        rule: String,
        /// [`Key::bits`].
        key: u64,
    },
}

/// What nodes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// Feature rows, widened to f32.
    Features,
    /// Class numbers, or a row of 0 and 1.
    Label,
    /// The split a node is in: 0 for none, 1 to 3 for `train`, `valid` and `test`.
    Split,
    /// Learnt rows.
    Embedding,
}

/// All values of a column, a ticket's: a row for each node the part owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// Which part.
    pub part: usize,
    /// The type of the nodes; may be left out where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntype: Option<String>,
    /// Which column.
    pub column: Column,
}

/// Names of the splits, in the order of [`Column::Split`]'s numbers from 1 on.
pub const SPLITS: [&str; 3] = ["train", "valid", "test"];

impl Column {
    /// All columns.
    pub const ALL: [Self; 4] = [Self::Features, Self::Label, Self::Split, Self::Embedding];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Features => "features",
            Self::Label => "label",
            Self::Split => "split",
            Self::Embedding => "embedding",
        }
    }
}

impl Command {
    /// The command that draws `request` from a part.
    pub fn sample(part: usize, request: &HopRequest) -> Self {
        Self::Sample {
            part,
            fanout: (request.fanout != u32::MAX).then_some(request.fanout),
            rule: request.rule.name().into(),
            key: request.key.bits(),
        }
    }
}

/// The hop that a `sample` command asks for from `nodes`.
///
/// # Errors
/// If there is no such rule.
pub(crate) fn hop(
    nodes: Vec<u64>,
    fanout: Option<u32>,
    rule: &str,
    key: u64,
) -> Result<HopRequest> {
    let (fanout, key) = (fanout.unwrap_or(u32::MAX), Key::from_bits(key));
    Ok(HopRequest { nodes, fanout, rule: rule.parse::<Rule>()?, key })
}

/// Reads what a client sent as `what`.
///
/// # Errors
/// If it is not the JSON expected.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(what: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::usage(format!("{what} is no command: {e}"))
            .hint(r#"such as {"op": "gather", "part": 0, "column": "features"}"#)
    })
}

/// The JSON of a command or ticket.
pub(crate) fn write(what: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(what).unwrap_or_default()
}
