//! The nodes and distributed edges of one part, from which its topology is built.

use std::path::Path;

use gnarl_common::error::Result;
use gnarl_graph::{ColumnSpec, Dataset};

use super::cut::Cut;
use super::degrees::GlobalDegrees;
use super::lists::Words;

/// The inputs shared by all parts.
pub(super) struct Job<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) cut: &'a Cut,
    pub(super) degrees: &'a GlobalDegrees,
    /// Per edge type its columns, distributed to the parts.
    pub(super) dealt: &'a [Vec<ColumnSpec>],
    /// Directory of these columns.
    pub(super) dir: &'a Path,
}

/// A part being written.
pub(super) struct Part<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) part: usize,
    pub(super) dir: &'a Path,
    /// Graph-wide ids of its nodes.
    pub(super) ids: Vec<u64>,
    pub(super) edges: u64,
    pub(super) columns: Vec<ColumnSpec>,
}

impl Part<'_> {
    pub(super) fn heterogeneous(&self) -> bool {
        self.job.dealt.len() > 1
    }

    /// Returns whether any edge type has columns beside its endpoints.
    pub(super) fn carries(&self) -> bool {
        self.job.dealt.iter().any(|columns| columns.len() > 2)
    }

    /// Calls `visit` with the type, the row among the part's of that type, source and destination
    /// of every edge.
    pub(super) fn each_edge(&self, mut visit: impl FnMut(usize, u64, u32, u32)) -> Result<()> {
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for (kind, columns) in self.job.dealt.iter().enumerate() {
            let (start, count) = self.dealt(kind);
            let open = |spec| Words::open(self.job.dir, spec, start, count);
            let (mut src, mut dst) = (open(&columns[0])?, open(&columns[1])?);
            let mut row = 0;
            while src.next(&mut sources)? && dst.next(&mut targets)? {
                for (&u, &v) in sources.iter().zip(&targets) {
                    visit(kind, row, u, v);
                    row += 1;
                }
            }
        }
        Ok(())
    }

    /// First row and number of rows of the part among the distributed edges of a type.
    pub(super) fn dealt(&self, kind: usize) -> (u64, u64) {
        let counts = &self.job.cut.counts[kind];
        (counts[..self.part].iter().sum(), counts[self.part])
    }

    /// Node type of a graph-wide id, and the id within it.
    pub(super) fn own_id(&self, v: u64) -> (usize, u64) {
        let types = &self.job.cut.layout.types;
        let node_type = types.partition_point(|t| t.ids.end <= v);
        (node_type, v - types[node_type].ids.start)
    }
}
