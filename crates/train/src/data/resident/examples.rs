//! The training examples of a run by the parts that they need in memory.

use gnarl_common::{IdMap, Result};

use crate::data::target_edges::TargetEdges;

/// Training examples by cells.
#[derive(Debug, Clone)]
pub(crate) enum Examples {
    /// Nodes, in dataset ids: a cell per part.
    Nodes(Vec<Vec<u32>>),
    /// Numbers of edges: a cell `i * parts + j` for those from part `i` to part `j`.
    Edges { parts: usize, by_parts: Vec<Vec<u32>> },
}

impl Examples {
    /// The nodes `train`, ascending, by their part in `owner`.
    pub fn of_nodes(owner: &IdMap, train: &[u32]) -> Self {
        let mut by_part = vec![Vec::new(); owner.parts()];
        train.iter().for_each(|&node| by_part[owner.part(node as usize)].push(node));
        Self::Nodes(by_part)
    }

    /// Training edges by the parts of their heads and of their tails, of which the first has the number `first_tail`.
    ///
    /// # Errors
    /// If a part does not reply.
    pub fn of_edges(
        [heads, tails]: [&IdMap; 2],
        edges: &dyn TargetEdges,
        first_tail: u32,
    ) -> Result<Self> {
        let parts = heads.parts();
        let mut by_parts = vec![Vec::new(); parts * parts];
        edges.scan(&mut |numbers, some| {
            for (&number, (&head, &tail)) in numbers.iter().zip(some.heads.iter().zip(&some.tails))
            {
                let i = heads.part(head as usize);
                let j = tails.part((tail - first_tail) as usize);
                by_parts[i * parts + j].push(number);
            }
            Ok(())
        })?;
        by_parts.iter_mut().for_each(|cell| cell.sort_unstable());
        Ok(Self::Edges { parts, by_parts })
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        match self {
            Self::Nodes(by_part) => by_part.len(),
            Self::Edges { parts, .. } => *parts,
        }
    }

    /// Number of cells.
    pub fn num_cells(&self) -> usize {
        let (Self::Nodes(cells) | Self::Edges { by_parts: cells, .. }) = self;
        cells.len()
    }

    /// The cells whose parts are among `here`.
    pub fn cells(&self, here: &[usize]) -> Vec<usize> {
        match self {
            Self::Nodes(_) => here.to_vec(),
            Self::Edges { parts, .. } => {
                here.iter().flat_map(|i| here.iter().map(move |j| i * parts + j)).collect()
            }
        }
    }

    /// Number of all examples.
    pub fn len(&self) -> usize {
        let (Self::Nodes(cells) | Self::Edges { by_parts: cells, .. }) = self;
        cells.iter().map(Vec::len).sum()
    }

    /// The examples of a cell, ascending.
    pub fn of(&self, cell: usize) -> &[u32] {
        let (Self::Nodes(cells) | Self::Edges { by_parts: cells, .. }) = self;
        &cells[cell]
    }
}
