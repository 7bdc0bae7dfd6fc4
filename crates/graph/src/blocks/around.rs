//! Full neighborhoods of some nodes of a whole graph.

use std::sync::Arc;

use rayon::prelude::*;

use super::block::{Block, NodeInfo};

/// Destinations whose lists a thread makes at a time.
const LISTS: usize = 1 << 10;

/// The nodes of a whole graph that the output for some nodes depends on.
#[derive(Debug)]
pub struct Around<'a> {
    whole: &'a Block,
    /// Nodes of a hop behind those of fewer, ascending among themselves.
    nodes: Vec<u32>,
    /// `ends[h + 1]` nodes are within `h` hops; `ends[0]` is 0.
    ends: Vec<usize>,
    /// The place among the nodes of each that is.
    place: Vec<u32>,
}

impl<'a> Around<'a> {
    /// All nodes within `hops` of `seeds`, nodes of `whole` that ascend.
    ///
    /// # Panics
    /// If `whole` has fewer destinations than sources, or not all of the nodes.
    pub fn new(whole: &'a Block, seeds: &[u32], hops: usize) -> Self {
        assert_eq!(whole.num_dst(), whole.num_src(), "a whole graph");
        let mut place = vec![u32::MAX; whole.num_src()];
        let mut nodes = seeds.to_vec();
        let mut ends = vec![0];
        for hop in 0..=hops {
            let first = ends[hop];
            for (at, &node) in nodes.iter().enumerate().skip(first) {
                place[node as usize] = at as u32;
            }
            ends.push(nodes.len());
            if hop < hops {
                nodes.extend(next_hop(whole, &nodes[first..], &place));
            }
        }
        Self { whole, nodes, ends, place }
    }

    /// The nodes, by their numbers in the whole graph: those of a hop behind those of fewer, and ascending among themselves.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Destinations and edges of all blocks together.
    pub fn size(&self) -> usize {
        let hops = self.ends.len() - 2;
        let of_node = |&node: &u32| 1 + self.whole.sources(node as usize).len();
        let within = |hop: usize| self.nodes[..self.ends[hop]].iter().map(of_node).sum::<usize>();
        (1..=hops).map(within).sum()
    }

    /// A block for each hop, by places among the nodes. Destinations of the last one are the nodes asked for, and sources of
    /// the first one all; each block's destinations are the next one's sources. Lists ascend, degrees and ids are those of the
    /// whole graph, and features of edges are left out.
    pub fn blocks(&self) -> Vec<Arc<Block>> {
        let Self { whole, nodes, ends, place } = self;
        let info = Arc::new(NodeInfo {
            ids: nodes.iter().map(|&node| whole.ids()[node as usize]).collect(),
            degrees: nodes.iter().map(|&node| whole.degrees()[node as usize]).collect(),
        });
        // Hop h reaches the nodes before ends[h + 1].
        let hops = ends.len() - 2;
        let lists = lists(whole, &nodes[..ends[hops]], place);
        let inner: Vec<_> = (1..hops)
            .rev()
            .map(|hop| lists.first(ends[hop]).block(ends[hop + 1], info.clone()))
            .collect();
        let outer = (hops > 0).then(|| lists.block(ends[hops + 1], info.clone()));
        outer.into_iter().chain(inner).map(Arc::new).collect()
    }
}

/// Neighbors of `nodes` that have no place yet, ascending.
fn next_hop(whole: &Block, nodes: &[u32], place: &[u32]) -> Vec<u32> {
    let mut is_new = vec![false; place.len()];
    for &node in nodes {
        for &source in whole.sources(node as usize) {
            is_new[source as usize] |= place[source as usize] == u32::MAX;
        }
    }
    (0..place.len() as u32).filter(|&node| is_new[node as usize]).collect()
}

/// Lists of some nodes by the places of their neighbors.
struct Lists {
    indptr: Vec<u32>,
    indices: Vec<u32>,
    weights: Option<Vec<f32>>,
}

impl Lists {
    /// The first lists.
    fn first(&self, lists: usize) -> Self {
        let indptr = self.indptr[..=lists].to_vec();
        let edges = indptr[lists] as usize;
        let weights = self.weights.as_ref().map(|weights| weights[..edges].to_vec());
        Self { indptr, indices: self.indices[..edges].to_vec(), weights }
    }

    fn block(self, sources: usize, info: Arc<NodeInfo>) -> Block {
        Block::new(sources, self.indptr, self.indices, self.weights, info)
    }
}

fn lists(whole: &Block, nodes: &[u32], place: &[u32]) -> Lists {
    let mut indptr = vec![0; nodes.len() + 1];
    for (at, &node) in nodes.iter().enumerate() {
        indptr[at + 1] = indptr[at] + whole.sources(node as usize).len() as u32;
    }
    let chunk = |nodes: &[u32]| {
        let mut indices = Vec::new();
        let mut weights = Vec::new();
        let mut list: Vec<(u32, f32)> = Vec::new();
        for &node in nodes {
            let first = whole.indptr()[node as usize] as usize;
            let sources = whole.sources(node as usize);
            let weight = |entry: usize| whole.weights().map_or(1.0, |all| all[first + entry]);
            list.clear();
            list.extend(sources.iter().enumerate().map(|(e, &s)| (place[s as usize], weight(e))));
            // Parallel edges keep their order.
            list.sort_by_key(|&(source, _)| source);
            indices.extend(list.iter().map(|&(source, _)| source));
            if whole.weights().is_some() {
                weights.extend(list.iter().map(|&(_, weight)| weight));
            }
        }
        (indices, weights)
    };
    let chunks: Vec<_> = nodes.par_chunks(LISTS).map(chunk).collect();
    let mut indices = Vec::with_capacity(indptr[nodes.len()] as usize);
    let mut weights = whole.weights().map(|_| Vec::with_capacity(indices.capacity()));
    for (sources, of_sources) in chunks {
        indices.extend(sources);
        if let Some(weights) = &mut weights {
            weights.extend(of_sources);
        }
    }
    Lists { indptr, indices, weights }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of six nodes; nothing leads to 0, and 5 is reached by nothing.
    fn whole(weighted: bool) -> Block {
        let lists: [&[u32]; 6] = [&[], &[3, 0], &[1, 1, 4], &[2], &[0], &[0, 1, 2]];
        let mut indptr = vec![0];
        let mut indices = Vec::new();
        for list in lists {
            indices.extend(list);
            indptr.push(indices.len() as u32);
        }
        let info = NodeInfo { ids: (10..16).collect(), degrees: vec![7, 2, 3, 1, 1, 3] };
        let weights = weighted.then(|| (0..indices.len()).map(|edge| edge as f32).collect());
        Block::new(6, indptr, indices, weights, Arc::new(info))
    }

    #[test]
    fn hops_are_prefixes_of_each_other() {
        let whole = whole(true);
        let around = Around::new(&whole, &[2], 2);
        assert_eq!(around.nodes(), [2, 1, 4, 0, 3]);
        let blocks = around.blocks();
        let [first, last] = &blocks[..] else { panic!("two blocks") };
        assert_eq!((last.num_dst(), last.num_src()), (1, 3));
        assert_eq!((last.sources(0), last.ids()), (&[1, 1, 2][..], &[12, 11, 14][..]));
        assert_eq!(last.weights().unwrap(), [2.0, 3.0, 4.0]);
        assert_eq!((first.num_dst(), first.num_src()), (3, 5));
        assert_eq!(first.degrees(), [3, 2, 1, 7, 1]);
        assert_eq!(first.sources(1), [3, 4], "0 has a lower number than 3 among those of a hop");
        assert_eq!(first.weights().unwrap()[3..], [1.0, 0.0, 6.0]);
        assert_eq!([first.num_edges(), last.num_edges()], [6, 3]);
        assert_eq!(around.size(), 1 + 3 + 3 + 6);
    }

    #[test]
    fn neighborhoods_end_where_there_are_no_more_nodes() {
        let whole = whole(false);
        let around = Around::new(&whole, &[0, 5], 3);
        assert_eq!(around.nodes(), [0, 5, 1, 2, 3, 4]);
        let blocks = around.blocks();
        let shapes: Vec<_> = blocks.iter().map(|b| (b.num_dst(), b.num_src())).collect();
        assert_eq!(shapes, [(6, 6), (4, 6), (2, 4)]);
        assert!(blocks.iter().all(|block| block.weights().is_none()));
        let none = Around::new(&whole, &[], 2);
        assert!(none.nodes().is_empty() && none.size() == 0 && none.blocks().len() == 2);
    }
}
