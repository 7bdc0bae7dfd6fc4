//! The neighbour lists of a chunk of edges.

use super::shuffle::Pair;

/// Not met in this chunk.
const NONE: u32 = u32::MAX;

/// The nodes of a chunk in the order they are first met in, with their neighbours there. An edge
/// counts for both of its ends, as often as it is there.
///
/// Memory: 4 bytes a node of the graph, at most 24 an edge of the chunk.
pub(super) struct Lists {
    /// Place in `nodes` of each node of the graph.
    place: Vec<u32>,
    nodes: Vec<u32>,
    /// Where each node's neighbours begin.
    start: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Lists {
    pub(super) fn new(num_nodes: usize) -> Self {
        let (nodes, start, neighbours) = (Vec::new(), vec![0], Vec::new());
        Self { place: vec![NONE; num_nodes], nodes, start, neighbours }
    }

    /// Replaces the lists by those of the edges for which `keep` holds.
    pub(super) fn fill(&mut self, edges: &[Pair], keep: impl Fn(u32, u32) -> bool) {
        self.nodes.iter().for_each(|&v| self.place[v as usize] = NONE);
        self.nodes.clear();
        self.start.clear();
        let kept = || edges.iter().filter(|&&[u, v]| u != v && keep(u, v));
        for &v in kept().flatten() {
            let place = &mut self.place[v as usize];
            if *place == NONE {
                *place = self.nodes.len() as u32;
                self.nodes.push(v);
                self.start.push(0);
            }
            self.start[*place as usize] += 1;
        }
        let mut end = 0;
        for start in &mut self.start {
            end += *start;
            *start = end;
        }
        self.start.push(end);
        self.neighbours.clear();
        self.neighbours.resize(end as usize, 0);
        for &[u, v] in kept() {
            for (of, neighbour) in [(u, v), (v, u)] {
                let start = &mut self.start[self.place[of as usize] as usize];
                *start -= 1;
                self.neighbours[*start as usize] = neighbour;
            }
        }
    }

    /// The nodes.
    pub(super) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The neighbours of the `i`-th node.
    pub(super) fn neighbours(&self, i: usize) -> &[u32] {
        &self.neighbours[self.start[i] as usize..self.start[i + 1] as usize]
    }

    /// The place of `v` among the nodes; it must be one of them.
    pub(super) fn place(&self, v: u32) -> usize {
        self.place[v as usize] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_an_edge_are_neighbours() {
        let mut lists = Lists::new(6);
        lists.fill(&[[5, 0], [5, 1]], |_, _| true);
        lists.fill(&[[4, 2], [2, 2], [2, 1], [0, 3], [4, 2]], |u, _| u != 0);
        assert_eq!(lists.nodes(), [4, 2, 1]);
        assert_eq!([0, 1, 2].map(|i| lists.neighbours(i).len()), [2, 3, 1]);
        assert_eq!((lists.place(1), lists.neighbours(2)), (2, [2].as_slice()));
    }
}
