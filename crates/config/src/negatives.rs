//! Negative sampling for link prediction.

use std::path::PathBuf;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::import::id_table;
use gnarl_graph::triples::Side;
use gnarl_sample::negatives::FromFile;
use serde::{Deserialize, Serialize};

/// Names of `negatives.kind`.
const KINDS: [&str; 8] =
    ["uniform", "joint", "in-batch", "local", "degree", "typed", "all", "file"];

/// The endpoints of edges that negatives replace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sides {
    /// Heads and tails; the losses of both are added.
    #[default]
    Both,
    /// Heads.
    Head,
    /// Tails.
    Tail,
}

/// `[negatives]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NegativesSection {
    /// Name of the negative sampler.
    pub kind: String,
    /// Number of negatives per edge; not used by `in-batch` and `all`.
    pub count: usize,
    /// Endpoints that negatives replace.
    pub sides: Sides,
    /// True if candidates that complete a training edge are left out.
    pub filtered: bool,
    /// `degree`: nodes are drawn in proportion to this power of their degree.
    pub exponent: f64,
    /// `file`: an npy table of candidates for the heads of training edges, one row per edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<PathBuf>,
    /// `file`: a table of candidates for the tails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tails: Option<PathBuf>,
}

impl Default for NegativesSection {
    fn default() -> Self {
        Self {
            kind: "joint".into(),
            count: 256,
            sides: Sides::Both,
            filtered: false,
            exponent: 0.75,
            heads: None,
            tails: None,
        }
    }
}

impl NegativesSection {
    /// Rejects unknown names and values out of range.
    pub(super) fn check(&self) -> Result<()> {
        if !KINDS.contains(&self.kind.as_str()) {
            return Err(unknown("negatives.kind", &self.kind, &KINDS));
        }
        if self.count == 0 {
            return Err(Error::usage("invalid negatives.count '0': expected a positive number"));
        }
        if !self.exponent.is_finite() {
            return Err(Error::usage("invalid negatives.exponent: expected a finite number"));
        }
        if self.kind == "file" {
            for (key, file, side) in
                [("heads", &self.heads, Side::Head), ("tails", &self.tails, Side::Tail)]
            {
                if self.replaces(side) && file.is_none() {
                    return Err(Error::usage(format!("negatives.{key} is not set"))
                        .hint("name an npy table of candidates, or set negatives.sides"));
                }
            }
        }
        Ok(())
    }

    fn replaces(&self, side: Side) -> bool {
        match self.sides {
            Sides::Both => true,
            Sides::Head => side == Side::Head,
            Sides::Tail => side == Side::Tail,
        }
    }

    /// The candidates of `kind = "file"` for that many edges.
    ///
    /// # Errors
    /// If a file has another number of rows or columns, or a node that does not exist.
    pub fn listed(&self, edges: usize, nodes: u32) -> Result<FromFile> {
        let read = |file: &Option<PathBuf>, side: Side| -> Result<Vec<u32>> {
            let Some(path) = file.as_ref().filter(|_| self.replaces(side)) else {
                return Ok(vec![0; edges * self.count]);
            };
            let (ids, width) = id_table(path, "candidate")?;
            let place = path.display();
            if width != self.count {
                let text = format!(
                    "{place}: expected negatives.count = {} columns, found {width}",
                    self.count
                );
                return Err(Error::invalid(text)
                    .hint("the file has one candidate per column, and one row per edge"));
            }
            if ids.len() != edges * width {
                return Err(Error::invalid(format!(
                    "{place}: expected {edges} rows, one per training edge; found {}",
                    ids.len() / width
                )));
            }
            // Ids that do not fit become invalid nodes, which are reported with their rows.
            Ok(ids.iter().map(|&id| u32::try_from(id).unwrap_or(u32::MAX)).collect())
        };
        let tables = [read(&self.heads, Side::Head)?, read(&self.tails, Side::Tail)?];
        FromFile::new(tables, edges, self.count, nodes).while_doing(|| "reading negatives")
    }
}
