//! Degrees in the whole graph, by edge type.

use std::path::Path;

use gnarl_common::Buf;
use gnarl_common::error::{Error, Result};
use gnarl_graph::{Column, Dataset, EdgeType, Narrow, for_each_edge};

use super::side::Direction;
use crate::write::columns::NamedColumn;
use crate::write::layout::Layout;

/// Degrees of all nodes over each edge type, mapped from files.
pub(super) struct GlobalDegrees {
    types: Vec<OfType>,
}

struct OfType {
    /// Positions of the source and destination node types.
    ends: [usize; 2],
    /// Offsets of in-neighbor lists.
    into: Narrow,
    out: Buf<u32>,
}

impl GlobalDegrees {
    /// Counts in one pass over the edges; out-degrees go to files in `dir`. Memory: 4 bytes per
    /// source node, one edge type after the other.
    pub(super) fn count(dataset: &Dataset, layout: &Layout, dir: &Path) -> Result<Self> {
        let each = dataset.manifest().edge_types.iter().enumerate();
        let types = each.map(|(i, t)| OfType::count(dataset, layout, (i, t), dir));
        Ok(Self { types: types.collect::<Result<_>>()? })
    }

    /// The degree, over edge type `kind`, of node `v` within its type.
    #[inline]
    pub(super) fn of(&self, kind: usize, v: u64, direction: Direction) -> u32 {
        let t = &self.types[kind];
        match direction {
            Direction::In => narrow(t.into.get(v + 1) - t.into.get(v)),
            Direction::Out => t.out[v as usize],
        }
    }

    /// The degree, over all edge types, of node `v` within its type, the `node_type`-th.
    pub(super) fn total(&self, node_type: usize, v: u64, direction: Direction) -> u32 {
        let end = if direction == Direction::In { 1 } else { 0 };
        let of_node = (0..self.types.len()).filter(|&k| self.types[k].ends[end] == node_type);
        of_node.fold(0, |sum, kind| sum.saturating_add(self.of(kind, v, direction)))
    }
}

impl OfType {
    fn count(
        dataset: &Dataset,
        layout: &Layout,
        (index, t): (usize, &EdgeType),
        dir: &Path,
    ) -> Result<Self> {
        let missing =
            || Error::invalid(format!("{}: {}: no csc.indptr", dataset.dir().display(), t.triple));
        let into = dataset.edge_column(&t.triple, "csc.indptr")?.ok_or_else(missing)?;
        let ends = [&t.triple.src, &t.triple.dst].map(|name| layout.type_index(name));
        let sources = &layout.types[ends[0]].ids;
        let mut degrees = vec![0u32; (sources.end - sources.start) as usize];
        for_each_edge(&mut dataset.edges_of(&t.triple)?, &mut |u, _| {
            let degree = &mut degrees[u as usize];
            *degree = degree.saturating_add(1);
        })?;
        let mut column = NamedColumn::<u32>::create(dir, &index.to_string(), "out", &[])?;
        column.push(&degrees)?;
        let out = Column::open(dir, &column.finish()?)?.values()?;
        Ok(Self { ends, into: Narrow::of(&into)?, out })
    }
}

/// A degree in 32 bits, saturating.
fn narrow(degree: u64) -> u32 {
    degree.min(u32::MAX as u64) as u32
}
