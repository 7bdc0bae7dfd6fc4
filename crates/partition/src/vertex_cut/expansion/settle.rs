//! Rebalancing of a finished expansion.

use super::graph::Graph;

/// Upper bounds for every part.
#[derive(Debug, Clone, Copy)]
pub(in crate::vertex_cut) struct Bounds {
    /// Nodes of a part over their mean.
    pub nodes: f64,
    /// Edges of a part over their mean.
    pub edges: f64,
}

/// Passes over the parts; each pass allows moves that add one more replica.
const PASSES: i64 = 8;

/// Nodes with more edges than this in a part stay there.
const MOST_EDGES: usize = 16;

/// Per node the parts that hold it and its edges there.
struct Replicas {
    offsets: Vec<u64>,
    /// As many entries as the node may need; those without edges are free.
    entries: Vec<(u16, u32)>,
}

impl Replicas {
    fn new(graph: &Graph, owner: &[u16], parts: usize) -> Self {
        let mut offsets = vec![0u64];
        let mut end = 0;
        offsets.extend((0..graph.num_nodes() as u32).map(|v| {
            end += graph.list(v).len().min(parts) as u64;
            end
        }));
        let mut replicas = Self { offsets, entries: vec![(0, 0); end as usize] };
        for v in 0..graph.num_nodes() as u32 {
            graph.list(v).iter().for_each(|&(_, e)| _ = replicas.add(v, owner[e as usize]));
        }
        replicas
    }

    fn range(&self, v: u32) -> std::ops::Range<usize> {
        self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize
    }

    /// Parts of `v` and its edges in each.
    fn of(&self, v: u32) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.entries[self.range(v)].iter().copied().filter(|entry| entry.1 > 0)
    }

    /// Edges of `v` in a part.
    fn count(&self, v: u32, part: u16) -> u32 {
        self.of(v).find(|entry| entry.0 == part).map_or(0, |entry| entry.1)
    }

    /// Adds an edge of `v` in a part; returns whether it is the first.
    fn add(&mut self, v: u32, part: u16) -> bool {
        let range = self.range(v);
        let entries = &mut self.entries[range];
        let known = entries.iter().position(|&(p, count)| p == part && count > 0);
        let free = || entries.iter().position(|&(_, count)| count == 0);
        let at = known.or_else(free).expect("an entry for each edge or part");
        entries[at] = (part, entries[at].1 + 1);
        known.is_none()
    }

    /// Removes an edge of `v` in a part; returns whether it was the last.
    fn remove(&mut self, v: u32, part: u16) -> bool {
        let range = self.range(v);
        let mut entries = self.entries[range].iter_mut();
        let entry = entries.find(|e| e.0 == part && e.1 > 0).expect("an edge of the part");
        entry.1 -= 1;
        entry.1 == 0
    }
}

/// The state of the rebalancing.
struct Settle<'a> {
    graph: &'a Graph,
    owner: &'a mut [u16],
    replicas: Replicas,
    /// Nodes and edges of each part.
    nodes: Vec<u64>,
    edges: Vec<u64>,
}

/// Moves edges to parts that have both their endpoints, from the part with more edges to the one
/// with fewer; then nodes, with all their edges there, out of parts with too many nodes to where
/// they add the fewest replicas. Repeats until the bounds hold, or no move helps.
pub(super) fn settle(graph: &Graph, owner: &mut [u16], parts: usize, bounds: Bounds) {
    let mut edges = vec![0u64; parts];
    owner.iter().zip(&graph.weight).for_each(|(&p, &w)| edges[p as usize] += u64::from(w));
    let replicas = Replicas::new(graph, owner, parts);
    let mut nodes = vec![0u64; parts];
    for v in 0..graph.num_nodes() as u32 {
        replicas.of(v).for_each(|(p, _)| nodes[p as usize] += 1);
    }
    let mut state = Settle { graph, owner, replicas, nodes, edges };
    for pass in 0..PASSES {
        if state.within(bounds) {
            return;
        }
        state.level_edges();
        state.move_nodes(bounds, pass);
    }
}

fn bound(share: f64, counts: &[u64]) -> u64 {
    (share * counts.iter().sum::<u64>() as f64 / counts.len() as f64) as u64
}

impl Settle<'_> {
    fn within(&self, bounds: Bounds) -> bool {
        let holds = |share, counts: &[u64]| counts.iter().all(|&c| c <= bound(share, counts));
        holds(bounds.nodes, &self.nodes) && holds(bounds.edges, &self.edges)
    }

    /// Moves an edge to another part.
    fn shift(&mut self, (v, w): (u32, u32), e: u32, to: u16) {
        let from = std::mem::replace(&mut self.owner[e as usize], to);
        let weight = u64::from(self.graph.weight[e as usize]);
        self.edges[from as usize] -= weight;
        self.edges[to as usize] += weight;
        for end in [v, w].into_iter().take(1 + usize::from(v != w)) {
            self.nodes[from as usize] -= u64::from(self.replicas.remove(end, from));
            self.nodes[to as usize] += u64::from(self.replicas.add(end, to));
        }
    }

    /// Moves edges to parts that have both endpoints and fewer edges. Adds no replica.
    fn level_edges(&mut self) {
        let graph = self.graph;
        for v in 0..graph.num_nodes() as u32 {
            for &(w, e) in graph.list(v).iter().filter(|&&(w, _)| w >= v) {
                let from = self.owner[e as usize];
                let weight = u64::from(graph.weight[e as usize]);
                let most = self.edges[from as usize].saturating_sub(weight);
                let both = self.replicas.of(v).map(|entry| entry.0);
                let both = both.filter(|&p| p != from && self.replicas.count(w, p) > 0);
                let Some(to) = both.min_by_key(|&p| (self.edges[p as usize], p)) else { continue };
                if self.edges[to as usize] < most {
                    self.shift((v, w), e, to);
                }
            }
        }
    }

    /// Moves nodes out of parts that have too many, if that adds at most `cost` replicas.
    fn move_nodes(&mut self, bounds: Bounds, cost: i64) {
        let graph = self.graph;
        let most = bound(bounds.edges, &self.edges);
        let (mut moved, mut here) = (Vec::new(), vec![0i64; self.nodes.len()]);
        for v in 0..graph.num_nodes() as u32 {
            let crowd = bound(bounds.nodes, &self.nodes);
            let crowded =
                |&(p, c): &(u16, u32)| self.nodes[p as usize] > crowd && c as usize <= MOST_EDGES;
            let Some((from, _)) = self.replicas.of(v).find(crowded) else { continue };
            moved.clear();
            let list = graph.list(v).iter().copied();
            moved.extend(list.filter(|&(_, e)| self.owner[e as usize] == from));
            let Some((to, _)) = self.cheapest(v, from, &moved, &mut here, (crowd, most), cost)
            else {
                continue;
            };
            moved.iter().for_each(|&(w, e)| self.shift((v, w), e, to));
        }
    }

    /// The part with room where the edges of `v` in `from` add the fewest replicas, at most `cost`.
    fn cheapest(
        &self,
        v: u32,
        from: u16,
        moved: &[(u32, u32)],
        here: &mut [i64],
        (crowd, most): (u64, u64),
        cost: i64,
    ) -> Option<(u16, i64)> {
        here.fill(0);
        let others = moved.iter().map(|&(w, _)| w).filter(|&w| w != v);
        let (mut ends, mut freed) = (1, 1);
        self.replicas.of(v).for_each(|(p, _)| here[p as usize] += 1);
        for w in others {
            ends += 1;
            freed += i64::from(self.replicas.count(w, from) == 1);
            self.replicas.of(w).for_each(|(p, _)| here[p as usize] += 1);
        }
        let weight: u64 =
            moved.iter().map(|&(_, e)| u64::from(self.graph.weight[e as usize])).sum();
        (0..here.len() as u16)
            .filter(|&p| p != from && self.edges[p as usize] + weight <= most)
            .map(|p| (p, ends - here[p as usize]))
            .filter(|&(p, new)| self.nodes[p as usize] + new as u64 <= crowd && new - freed <= cost)
            .min_by_key(|&(p, new)| (new, self.nodes[p as usize], p))
    }
}

#[cfg(test)]
mod tests {
    use gnarl_graph::MemoryEdges;

    use super::*;

    /// Two hubs with leaves: part 0 has nearly all leaves, part 1 the copies of one edge.
    #[test]
    fn crowded_parts_give_leaves_to_where_their_hub_is() {
        let leaves = (2..22).map(|leaf| (leaf % 2, leaf));
        let between = std::iter::repeat_n((0, 1), 8);
        let mut edges = MemoryEdges::new(22, leaves.chain(between)).unwrap();
        let graph = Graph::read(&mut edges).unwrap();
        let mut owner = vec![0; graph.num_edges()];
        owner[graph.edge(0, 1)] = 1;
        settle(&graph, &mut owner, 2, Bounds { nodes: 1.3, edges: 1.1 });
        let replicas = Replicas::new(&graph, &owner, 2);
        let nodes = |p| (0..22).filter(|&v| replicas.count(v, p) > 0).count();
        assert_eq!(nodes(0) + nodes(1), 24, "no leaf is copied");
        assert!(nodes(0).max(nodes(1)) <= 15, "{} and {}", nodes(0), nodes(1));
        let weight = |p| {
            let weights = owner.iter().zip(&graph.weight);
            weights.filter(|&(&o, _)| o == p).map(|(_, &w)| w).sum::<u32>()
        };
        assert!(weight(0).max(weight(1)) <= 15);
    }
}
