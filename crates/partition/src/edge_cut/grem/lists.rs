//! The neighbor lists of a chunk of edges.

use super::shuffle::Pair;

/// Most ranges of ids that endpoints are distributed to before they are sorted by id: more would
/// exceed the second-level cache and its address translation.
const MOST_RANGES: usize = 1 << 11;

/// Fewest ids of a range: the first-level cache holds their counters, and fewer ranges
/// are distributed to faster.
const LEAST_WIDTH: usize = 1 << 12;

/// Neighbors processed together.
pub(super) const TOGETHER: usize = 4;
/// Prefetch distance in neighbors.
const AHEAD: usize = 48;
/// Padding behind the last neighbor, read without effect.
const PADDING: usize = AHEAD + TOGETHER;

/// The nodes of a chunk, ascending, with their neighbors there. An edge counts for both of its
/// endpoints, with its multiplicity.
///
/// Memory: at most 24 bytes an edge of the largest chunk.
#[derive(Debug, Default)]
pub(super) struct Lists {
    nodes: Vec<u32>,
    /// Start of each node's neighbors, and the end of the last one's.
    start: Vec<u32>,
    neighbors: Vec<u32>,
}

/// Sorts endpoints into lists, in two passes of counting: first by range of ids, then within a
/// range. Both touch only as much memory as caches hold, wherever the graph's ids lie.
///
/// Memory: 16 bytes an edge of the chunk.
pub(super) struct Sorter {
    /// Ids of a range.
    width: usize,
    /// Start of each range of endpoints.
    begin: Vec<u32>,
    /// Endpoints by range: a node and its neighbor.
    ends: Vec<Pair>,
    /// Next free position of each node of a range.
    next: Vec<u32>,
    /// One bit per node of a range: whether it has neighbors. In a small chunk few have, and a
    /// comparison of 64 bits skips the others.
    present: Vec<u64>,
    /// Upper bounds of the numbers of endpoints and of distinct nodes.
    most: [usize; 2],
}

impl Sorter {
    /// A sorter for chunks of up to `edges` edges: its buffers never grow beyond that.
    pub(super) fn new(num_nodes: usize, edges: usize) -> Self {
        let width = num_nodes.div_ceil(MOST_RANGES).next_power_of_two().max(LEAST_WIDTH);
        let begin = vec![0; num_nodes.div_ceil(width) + 1];
        let most = [2 * edges, num_nodes.min(2 * edges) + 1];
        let (next, present) = (vec![0; width], vec![0; width / 64]);
        Self { width, begin, ends: Vec::new(), next, present, most }
    }

    /// Replaces `lists` by those of the edges that `keep` accepts.
    pub(super) fn fill(
        &mut self,
        lists: &mut Lists,
        edges: &[Pair],
        keep: impl Fn(u32, u32) -> bool,
    ) {
        self.deal(edges, keep);
        lists.nodes.clear();
        lists.start.clear();
        lists.nodes.reserve_exact(self.most[1]);
        lists.start.reserve_exact(self.most[1]);
        let most = self.most[0] + PADDING;
        lists.neighbors.reserve_exact(most.saturating_sub(lists.neighbors.len()));
        lists.neighbors.resize(self.ends.len() + PADDING, 0);
        let mut from = 0;
        for range in 0..self.begin.len() - 1 {
            // Distribution has moved the start of every range to its end.
            let to = self.begin[range] as usize;
            self.sort(range, from, to, lists);
            from = to;
        }
        lists.start.push(from as u32);
    }

    /// Distributes the endpoints of edges to ranges.
    fn deal(&mut self, edges: &[Pair], keep: impl Fn(u32, u32) -> bool) {
        let shift = self.width.trailing_zeros();
        self.begin.fill(0);
        let kept = || edges.iter().filter(|&&[u, v]| keep(u, v));
        for &[u, v] in kept() {
            self.begin[(u >> shift) as usize] += 1;
            self.begin[(v >> shift) as usize] += 1;
        }
        let mut sum = 0;
        for begin in &mut self.begin {
            sum += std::mem::replace(begin, sum);
        }
        // Overwrites the entries of earlier chunks.
        self.ends.reserve_exact(self.most[0].saturating_sub(self.ends.len()));
        self.ends.resize(sum as usize, [0; 2]);
        for &[u, v] in kept() {
            for end in [[u, v], [v, u]] {
                let next = &mut self.begin[(end[0] >> shift) as usize];
                self.ends[*next as usize] = end;
                *next += 1;
            }
        }
    }

    /// Sorts the endpoints of one range into lists.
    fn sort(&mut self, range: usize, from: usize, to: usize, lists: &mut Lists) {
        let ends = &self.ends[from..to];
        if ends.is_empty() {
            return;
        }
        let mask = self.width - 1;
        self.next.fill(0);
        for end in ends {
            let i = end[0] as usize & mask;
            self.next[i] += 1;
            self.present[i / 64] |= 1 << (i % 64);
        }
        let mut sum = from as u32;
        for (word, first) in self.present.iter_mut().zip((range * self.width..).step_by(64)) {
            let mut left = std::mem::take(word);
            while left != 0 {
                let v = first + left.trailing_zeros() as usize;
                left &= left - 1;
                lists.nodes.push(v as u32);
                lists.start.push(sum);
                sum += std::mem::replace(&mut self.next[v & mask], sum);
            }
        }
        for end in ends {
            let next = &mut self.next[end[0] as usize & mask];
            lists.neighbors[*next as usize] = end[1];
            *next += 1;
        }
    }
}

impl Lists {
    /// The nodes.
    pub(super) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Start of the neighbors of the `i`-th node.
    pub(super) fn start(&self, i: usize) -> usize {
        self.start[i] as usize
    }

    /// The neighbors of the `i`-th node.
    pub(super) fn neighbors(&self, i: usize) -> &[u32] {
        &self.neighbors[self.start[i] as usize..self.start[i + 1] as usize]
    }

    /// [`TOGETHER`] neighbors from position `at` on, of one node or several; beyond the last,
    /// arbitrary nodes.
    #[inline(always)]
    pub(super) fn together(&self, at: usize) -> &[u32; TOGETHER] {
        self.neighbors[at..].first_chunk().expect("padded")
    }

    /// The neighbors [`AHEAD`] positions later.
    #[inline(always)]
    pub(super) fn ahead(&self, at: usize) -> &[u32; TOGETHER] {
        self.together(at + AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_an_edge_are_neighbors() {
        let mut lists = Lists::default();
        let mut sorter = Sorter::new(6, 4);
        sorter.fill(&mut lists, &[[5, 0], [5, 1]], |_, _| true);
        sorter.fill(&mut lists, &[[4, 2], [2, 1], [0, 3], [4, 2]], |u, _| u != 0);
        assert_eq!(lists.nodes(), [1, 2, 4]);
        assert_eq!([0, 1, 2].map(|i| lists.neighbors(i)), [&[2][..], &[4, 1, 4], &[2, 2]]);
        assert_eq!(lists.together(lists.start(0)), &[2, 4, 1, 4]);
        assert_eq!(lists.ahead(lists.start(3) - 1).len(), TOGETHER);
    }

    #[test]
    fn ranges_of_many_ids_are_sorted() {
        let nodes = 10 * LEAST_WIDTH as u32;
        let edges: Vec<Pair> = (0..nodes / 7).map(|i| [7 * i, nodes - 1 - i]).collect();
        let mut lists = Lists::default();
        Sorter::new(nodes as usize, edges.len()).fill(&mut lists, &edges, |_, _| true);
        assert!(lists.nodes().is_sorted());
        let mut ends: Vec<Pair> = Vec::new();
        for (i, &v) in lists.nodes().iter().enumerate() {
            ends.extend(lists.neighbors(i).iter().map(|&n| [v, n]));
        }
        let mut wanted: Vec<Pair> = edges.iter().flat_map(|&[u, v]| [[u, v], [v, u]]).collect();
        ends.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(ends, wanted);
    }
}
