//! Adjacency lists by destination, over which edge operations run.

use std::sync::OnceLock;

use gnarl_graph::blocks::{Block, Transpose};

/// Edges in one list per destination. Edge operations take a [`Block`] or any other adjacency
/// lists, such as those of single edge types (see [`RelBlock`](crate::RelBlock)).
pub trait Lists: Sync {
    /// Number of lists.
    fn num_dst(&self) -> usize;

    /// Number of sources.
    fn num_src(&self) -> usize;

    /// Offsets of each list, `num_dst + 1` values.
    fn indptr(&self) -> &[u32];

    /// Source of each edge.
    fn indices(&self) -> &[u32];

    /// The edges grouped by source.
    fn transpose(&self) -> &Transpose;

    /// Number of edges.
    fn num_edges(&self) -> usize {
        self.indices().len()
    }

    /// The sources of list `dst`.
    #[inline]
    fn sources(&self, dst: usize) -> &[u32] {
        &self.indices()[self.indptr()[dst] as usize..self.indptr()[dst + 1] as usize]
    }
}

impl Lists for Block {
    fn num_dst(&self) -> usize {
        self.num_dst()
    }

    fn num_src(&self) -> usize {
        self.num_src()
    }

    fn indptr(&self) -> &[u32] {
        self.indptr()
    }

    fn indices(&self) -> &[u32] {
        self.indices()
    }

    fn transpose(&self) -> &Transpose {
        self.transpose()
    }
}

/// Lists whose destinations are not among their sources.
#[derive(Debug)]
pub struct EdgeLists {
    num_src: usize,
    indptr: Vec<u32>,
    indices: Vec<u32>,
    transpose: OnceLock<Transpose>,
}

impl EdgeLists {
    /// Lists at the offsets `indptr` of `indices`, which are below `num_src`.
    pub(crate) fn new(num_src: usize, indptr: Vec<u32>, indices: Vec<u32>) -> Self {
        debug_assert_eq!(indptr.last().map(|&end| end as usize), Some(indices.len()));
        Self { num_src, indptr, indices, transpose: OnceLock::new() }
    }
}

impl Lists for EdgeLists {
    fn num_dst(&self) -> usize {
        self.indptr.len() - 1
    }

    fn num_src(&self) -> usize {
        self.num_src
    }

    fn indptr(&self) -> &[u32] {
        &self.indptr
    }

    fn indices(&self) -> &[u32] {
        &self.indices
    }

    fn transpose(&self) -> &Transpose {
        self.transpose.get_or_init(|| Transpose::of(self.num_src, &self.indptr, &self.indices))
    }
}
