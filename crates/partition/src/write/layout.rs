//! New ids: each part's core nodes of a type are one contiguous range.

use std::ops::Range;

use gnarl_common::prefetch;
use gnarl_graph::Manifest;

use crate::edge_cut::partitioner::Assignment;
use crate::read::bitmap::Bitmap;
use crate::write::halo::Halo;

/// A node type in the graph-wide id space.
#[derive(Debug, Clone)]
pub(crate) struct TypeSpan {
    pub(crate) name: String,
    /// Graph-wide ids of its nodes.
    pub(crate) ids: Range<u64>,
    /// First new id (within the type) of each part's core nodes, and the end: `parts + 1` values.
    pub(crate) starts: Vec<u64>,
}

impl TypeSpan {
    /// Core nodes of this type in `part`.
    pub(crate) fn core(&self, part: usize) -> u64 {
        self.starts[part + 1] - self.starts[part]
    }

    /// HALO nodes of this type in `part`.
    pub(crate) fn halo(&self, halo: &Bitmap) -> u64 {
        halo.rank(self.ids.end) - halo.rank(self.ids.start)
    }
}

/// The location of every node. Memory: 4 bytes a node beside the assignment and the HALO sets.
pub(crate) struct Layout {
    pub(crate) parts: usize,
    pub(crate) of: Vec<u16>,
    pub(crate) types: Vec<TypeSpan>,
    /// Position of each node among the core nodes of its part and type.
    rank: Vec<u32>,
    pub(crate) halo: Halo,
}

impl Layout {
    pub(crate) fn new(manifest: &Manifest, assignment: Assignment, halo: Halo) -> Self {
        let Assignment { parts, of } = assignment;
        let mut rank = vec![0u32; of.len()];
        let mut types = Vec::new();
        let mut first = 0;
        for t in &manifest.node_types {
            let ids = first..first + t.count;
            first = ids.end;
            let mut counts = vec![0u64; parts];
            for v in ids.start as usize..ids.end as usize {
                let count = &mut counts[of[v] as usize];
                rank[v] = *count as u32;
                *count += 1;
            }
            let mut starts = vec![0];
            starts.extend(counts.iter().scan(0, |end, c| {
                *end += c;
                Some(*end)
            }));
            types.push(TypeSpan { name: t.name.clone(), ids, starts });
        }
        Self { parts, of, types, rank, halo }
    }

    /// Bytes of the tables of all nodes: assignment, ranks, and HALO sets with their ranks.
    pub(crate) fn bytes(&self) -> u64 {
        let nodes = self.of.len() as u64;
        6 * nodes + self.halo.sets() * nodes / 7
    }

    /// The position of the node type `name`.
    pub(crate) fn type_index(&self, name: &str) -> usize {
        self.types.iter().position(|t| t.name == name).expect("edge types name known node types")
    }

    /// The new id, within its type `t`, of the graph-wide node `v`.
    pub(crate) fn new_id(&self, t: &TypeSpan, v: u64) -> u64 {
        t.starts[self.of[v as usize] as usize] + self.rank[v as usize] as u64
    }

    /// Prefetches the location of `v`.
    #[inline(always)]
    pub(crate) fn ask(&self, v: u64) {
        prefetch::item(&self.of, v as usize);
        prefetch::item(&self.rank, v as usize);
    }

    /// Local id of `v`, of type `t`, in a part that holds it: core nodes first, each group
    /// ascending by dataset id.
    pub(crate) fn local(&self, part: usize, t: &TypeSpan, v: u64) -> u64 {
        if self.of[v as usize] as usize == part {
            return self.rank[v as usize] as u64;
        }
        let halo = &self.halo.nodes[part];
        t.core(part) + halo.rank(v) - halo.rank(t.ids.start)
    }

    /// The row of `v` among the core nodes of its part and type.
    pub(crate) fn core_row(&self, v: u64) -> u32 {
        self.rank[v as usize]
    }

    /// Dataset ids within type `t` of the nodes of `part`, in local order.
    pub(crate) fn members(&self, part: usize, t: &TypeSpan) -> Vec<u64> {
        let count = t.core(part) + t.halo(&self.halo.nodes[part]);
        let mut members = Vec::with_capacity(count as usize);
        let core = t.ids.clone().filter(|&v| self.of[v as usize] as usize == part);
        members.extend(core.map(|v| v - t.ids.start));
        let halo = self.halo.nodes[part].iter(t.ids.clone());
        members.extend(halo.map(|v| v - t.ids.start));
        members
    }

    /// Nodes of all types in `part`, HALO nodes included.
    pub(crate) fn part_nodes(&self, part: usize) -> u64 {
        self.types.iter().map(|t| t.core(part) + t.halo(&self.halo.nodes[part])).sum()
    }
}
