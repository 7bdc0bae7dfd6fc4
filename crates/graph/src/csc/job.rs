//! The job of the builder: edges, options, and ids as stored.

use std::path::Path;

use gnarl_common::Element;

use crate::column::ColumnSpec;

/// Inputs and options of the builder.
pub(crate) struct CscJob<'a> {
    pub dir: &'a Path,
    /// Prefix of the column files.
    pub stem: &'a str,
    pub src: &'a ColumnSpec,
    pub dst: &'a ColumnSpec,
    pub num_dst: u64,
    /// True if source and destination types are the same.
    pub square: bool,
    /// Keep each edge's row beside its source.
    pub keep_rows: bool,
    /// Weights of the edges, to be written in the order of the lists too. Needs `keep_rows`.
    pub weights: Option<&'a ColumnSpec>,
    /// Drop repeated edges.
    pub coalesce: bool,
    /// Memory limit of the builder in bytes.
    pub memory: u64,
    /// Memory limit of one range of lists, if lower than the rest of `memory`.
    pub range_bytes: Option<u64>,
    /// Distinct sort key of each source, by which lists ascend; the source itself if `None`.
    pub order: Option<&'a [u64]>,
}

/// An id as stored.
pub(crate) trait Id: Element + Ord + Default {
    fn of(id: u64) -> Self;
    fn wide(self) -> u64;
}

impl Id for u32 {
    fn of(id: u64) -> Self {
        id as u32
    }

    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Id for u64 {
    fn of(id: u64) -> Self {
        id
    }

    fn wide(self) -> u64 {
        self
    }
}
