//! The undirected graph under a stream of edges, in memory.

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::{EdgeStream, for_each_edge};

/// The undirected graph: all duplicates and directions of an edge are one, with a weight. Edges are
/// numbered by lower, then higher endpoint.
pub(super) struct Graph {
    /// Start of the edges of each lower endpoint.
    first: Vec<u64>,
    /// Higher endpoint of each edge.
    high: Vec<u32>,
    /// Multiplicity of each edge in the stream; saturates.
    pub(super) weight: Vec<u32>,
    /// Start of each node's list.
    offsets: Vec<u64>,
    /// Length of each list; entries beyond, up to the next list, were dropped.
    lengths: Vec<u32>,
    /// Neighbor and edge; a self loop is in its node's list once.
    lists: Vec<(u32, u32)>,
}

impl Graph {
    /// Rejects graphs that do not fit the index types.
    pub(super) fn check(name: &str, nodes: u64, edges: u64, parts: usize) -> Result<()> {
        let limit = u32::MAX as u64;
        if nodes > limit || edges > limit {
            let what = format!("{name}: {nodes} nodes and {edges} edges exceed 32 bits");
            return Err(Error::new(Kind::Limit, what).hint("use 2ps-l or hdrf, which stream"));
        }
        if parts > u16::MAX as usize {
            return Err(Error::new(Kind::Limit, format!("{name}: {parts} parts exceed 65535")));
        }
        Ok(())
    }

    pub(super) fn read(edges: &mut dyn EdgeStream) -> Result<Self> {
        let nodes = edges.num_nodes() as usize;
        let mut first = vec![0u64; nodes + 1];
        for_each_edge(edges, &mut |u, v| first[u.min(v) as usize + 1] += 1)?;
        accumulate(&mut first);
        let mut next = first.clone();
        let mut high = vec![0u32; first[nodes] as usize];
        for_each_edge(edges, &mut |u, v| {
            let next = &mut next[u.min(v) as usize];
            high[*next as usize] = u.max(v) as u32;
            *next += 1;
        })?;
        drop(next);
        sort_lists(&first, &mut high);
        let weight = merge_copies(&mut first, &mut high);
        let (offsets, lists) = both_ends(&first, &high);
        let lengths = offsets.windows(2).map(|w| (w[1] - w[0]) as u32).collect();
        Ok(Self { first, high, weight, offsets, lengths, lists })
    }

    pub(super) fn num_nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn num_edges(&self) -> usize {
        self.high.len()
    }

    /// Neighbors of `v` and the edges to them.
    #[inline]
    pub(super) fn list(&self, v: u32) -> &[(u32, u32)] {
        let begin = self.offsets[v as usize] as usize;
        &self.lists[begin..begin + self.lengths[v as usize] as usize]
    }

    /// Drops the edges from the list of `v` that `kept` rejects, preserving order.
    pub(super) fn shorten(&mut self, v: u32, kept: impl Fn(u32) -> bool) {
        let begin = self.offsets[v as usize] as usize;
        let length = &mut self.lengths[v as usize];
        let list = &mut self.lists[begin..begin + *length as usize];
        *length = 0;
        for i in 0..list.len() {
            if kept(list[i].1) {
                list[*length as usize] = list[i];
                *length += 1;
            }
        }
    }

    /// Restores the dropped edges.
    pub(super) fn restore(&mut self) {
        self.lists = Vec::new();
        (_, self.lists) = both_ends(&self.first, &self.high);
        let length = |w: &[u64]| (w[1] - w[0]) as u32;
        self.lengths.iter_mut().zip(self.offsets.windows(2)).for_each(|(l, w)| *l = length(w));
    }

    /// The number of the edge between two nodes, which is in the graph.
    #[inline]
    pub(super) fn edge(&self, u: u64, v: u64) -> usize {
        let (low, high) = (u.min(v) as usize, u.max(v) as u32);
        let begin = self.first[low] as usize;
        let list = &self.high[begin..self.first[low + 1] as usize];
        begin + list.partition_point(|&other| other < high)
    }
}

/// Turns counts, shifted by one place, into list offsets.
fn accumulate(counts: &mut [u64]) {
    let mut total = 0;
    for count in counts {
        total += *count;
        *count = total;
    }
}

/// Sorts each list, in parallel halves.
fn sort_lists(first: &[u64], high: &mut [u32]) {
    /// Entries worth a task.
    const TASK: usize = 1 << 15;
    let lists = first.len() - 1;
    if high.len() <= TASK || lists <= 1 {
        for w in first.windows(2) {
            high[(w[0] - first[0]) as usize..(w[1] - first[0]) as usize].sort_unstable();
        }
        return;
    }
    let middle = lists / 2;
    let (left, right) = high.split_at_mut((first[middle] - first[0]) as usize);
    rayon::join(|| sort_lists(&first[..=middle], left), || sort_lists(&first[middle..], right));
}

/// Deduplicates runs of equal endpoints, in place; returns the lengths of the runs.
fn merge_copies(first: &mut [u64], high: &mut Vec<u32>) -> Vec<u32> {
    let mut weight = Vec::new();
    let mut begin = 0;
    for low in 1..first.len() {
        let end = first[low] as usize;
        let kept = weight.len();
        for i in begin..end {
            if weight.len() > kept && high[weight.len() - 1] == high[i] {
                let copies: &mut u32 = weight.last_mut().expect("a run is open");
                *copies = copies.saturating_add(1);
            } else {
                high[weight.len()] = high[i];
                weight.push(1);
            }
        }
        begin = end;
        first[low] = weight.len() as u64;
    }
    high.truncate(weight.len());
    high.shrink_to_fit();
    weight
}

/// The lists of both endpoints of every edge.
fn both_ends(first: &[u64], high: &[u32]) -> (Vec<u64>, Vec<(u32, u32)>) {
    let nodes = first.len() - 1;
    let each = |visit: &mut dyn FnMut(usize, usize, usize)| {
        for low in 0..nodes {
            for e in first[low] as usize..first[low + 1] as usize {
                visit(low, high[e] as usize, e);
            }
        }
    };
    let mut offsets = vec![0u64; nodes + 1];
    each(&mut |low, high, _| {
        offsets[low + 1] += 1;
        offsets[high + 1] += (low != high) as u64;
    });
    accumulate(&mut offsets);
    let mut next = offsets.clone();
    let mut lists = vec![(0, 0); offsets[nodes] as usize];
    each(&mut |low, high, e| {
        let mut list = |from: usize, to: usize| {
            lists[next[from] as usize] = (to as u32, e as u32);
            next[from] += 1;
        };
        list(low, high);
        if low != high {
            list(high, low);
        }
    });
    (offsets, lists)
}

#[cfg(test)]
mod tests {
    use gnarl_graph::MemoryEdges;

    use super::*;

    #[test]
    fn copies_and_directions_are_one_edge() {
        let edges = [(2, 0), (1, 1), (0, 2), (3, 1), (0, 2), (1, 3), (0, 1)];
        let mut graph = Graph::read(&mut MemoryEdges::new(5, edges).unwrap()).unwrap();
        assert_eq!(graph.high, [1, 2, 1, 3]);
        assert_eq!(graph.weight, [1, 3, 1, 2]);
        assert_eq!(graph.list(0), [(1, 0), (2, 1)]);
        assert_eq!(graph.list(1), [(0, 0), (1, 2), (3, 3)]);
        assert_eq!(graph.list(4), []);
        graph.shorten(1, |e| e != 2);
        assert_eq!(graph.list(1), [(0, 0), (3, 3)]);
        assert_eq!((graph.edge(2, 0), graph.edge(1, 1), graph.edge(1, 3)), (1, 2, 3));
    }
}
