//! Neighbor samplers: fan-outs, and hops from chosen positions in in-neighbor lists.

use std::marker::PhantomData;

use gnarl_common::prefetch::item as prefetch;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result, read_ahead};
use gnarl_graph::blocks::{EdgeRows, MiniBatch};

use crate::scratch::{Hop, Scratch, add_edges};
use crate::view::View;
use crate::{SampleGraph, Sampler};

/// Destinations per group: the memory accesses of one step overlap with the next step's.
const GROUP: usize = 32;
/// Lists that are read ahead of sampling at a time, a multiple of a group: few enough to be in memory until then.
const READ_AHEAD: usize = 128 * GROUP;
/// Entries of a list from which on few of its pages may be read.
const LONG: u32 = 4096;
/// Prefetch distance of offsets, in destinations.
const AHEAD: usize = 16;

/// Numbers of in-neighbors per hop, the seeds' first; `u32::MAX` takes all.
#[derive(Debug, Clone)]
pub(crate) struct Fanouts(Vec<u32>);

impl Fanouts {
    /// Fan-outs from configuration values, where -1 takes all.
    pub fn new(fanouts: &[i64]) -> Result<Self> {
        if fanouts.is_empty() {
            return Err(Error::usage("a neighbor sampler requires at least one fan-out"));
        }
        let parse = |&fanout: &i64| match fanout {
            -1 => Ok(u32::MAX),
            1.. => Ok(u32::try_from(fanout).unwrap_or(u32::MAX)),
            _ => Err(Error::usage(format!(
                "invalid fan-out '{fanout}': expected a positive number, or -1 for all"
            ))),
        };
        Ok(Self(fanouts.iter().map(parse).collect::<Result<_>>()?))
    }

    /// The fan-outs, the seeds' first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &u32> {
        self.0.iter()
    }
}

/// Chooses among the in-neighbors of a node that has more than the fan-out.
pub trait Choose {
    /// True if a neighbor may be chosen several times, also of a list that is no longer than the fan-out.
    const REPLACES: bool = false;

    /// Called for a group of lists before they are chosen from: the place to prefetch memory.
    fn announce(&self, view: View<'_>, list: (usize, u32));

    /// Number of edges to choose from a list of `degree` edges.
    #[inline(always)]
    fn count(&self, _: View<'_>, _: u32, degree: u32, fanout: u32) -> u32 {
        degree.min(fanout)
    }

    /// Fills `out` with positions in `node`'s list: fewer than the list has, and distinct, unless the rule replaces.
    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        list: (usize, u32),
        scratch: &mut Scratch,
        out: &mut [u32],
    );

    /// Called with the chosen positions of every list, including lists taken whole.
    #[inline(always)]
    fn chosen(&mut self, _: View<'_>, _: u32, _: (usize, u32), _: &[u32]) {}
}

/// A sampling rule for in-neighbors.
pub trait Draw: Send + Sync {
    /// The name used in configurations.
    const NAME: &'static str;
    /// The state of the rule for one batch.
    type Chooser: Choose;

    /// Builds the state from `key`; an error if the graph lacks columns that the rule needs.
    fn chooser(view: View<'_>, key: Key) -> Result<Self::Chooser>;
}

/// Samples neighborhoods of seeds, one block per fan-out, with the rule `D`.
#[derive(Debug, Clone)]
pub struct NeighborSampler<D> {
    graph: SampleGraph,
    fanouts: Fanouts,
    rule: PhantomData<D>,
}

impl<D: Draw> NeighborSampler<D> {
    /// A sampler of `graph`: `fanouts[0]` in-neighbors of each seed, `fanouts[1]` of each node
    /// reached so far (seeds included), and so on; -1 takes all. As many blocks as fan-outs.
    ///
    /// # Errors
    /// If there are no fan-outs, or one is neither positive nor -1.
    pub fn new(graph: &SampleGraph, fanouts: &[i64]) -> Result<Self> {
        let (graph, fanouts) = (graph.clone(), Fanouts::new(fanouts)?);
        Ok(Self { graph, fanouts, rule: PhantomData })
    }
}

impl<D: Draw> Sampler for NeighborSampler<D> {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let view = self.graph.view();
        let mut chooser = D::chooser(view, key)?;
        self.graph.check_seeds(seeds)?;
        let targets = scratch.start(self.graph.num_nodes(), seeds);
        let mut hops = Vec::with_capacity(self.fanouts.iter().len());
        for &fanout in self.fanouts.iter() {
            hops.push(sample_hop(view, fanout, &mut chooser, scratch)?);
        }
        Ok(scratch.finish(scratch.node_info(view), hops, targets))
    }
}

/// Samples `fanout` in-neighbors of all nodes in `scratch` and adds them to it.
pub(crate) fn sample_hop(
    view: View<'_>,
    fanout: u32,
    chooser: &mut impl Choose,
    scratch: &mut Scratch,
) -> Result<Hop> {
    let nodes = scratch.nodes().to_vec();
    sample_from(view, &nodes, fanout, chooser, scratch)
}

/// Samples `fanout` in-neighbors of `nodes` and adds them to `scratch`, which holds nodes of the
/// type of the sources.
pub(crate) fn sample_from(
    view: View<'_>,
    nodes: &[u32],
    fanout: u32,
    chooser: &mut impl Choose,
    scratch: &mut Scratch,
) -> Result<Hop> {
    let indptr = find_lists(view, nodes, fanout, chooser, &mut scratch.lists)?;
    let num_dst = nodes.len();
    let num_edges = indptr[num_dst] as usize;
    scratch.reserve(num_edges);
    let mut indices = vec![0u32; num_edges];
    let mut weights = view.weights.map(|_| Vec::with_capacity(num_edges));
    let mut edge_features =
        view.edge_features.map(|of| EdgeRows::with_capacity(num_edges, of.width()));
    for first in (0..num_dst).step_by(GROUP) {
        if view.ahead && first.is_multiple_of(READ_AHEAD) {
            let window = first..num_dst.min(first + READ_AHEAD);
            let taken = &indptr[first..=window.end];
            read_lists_ahead(view, &scratch.lists[window], taken);
        }
        let group = first..(first + GROUP).min(num_dst);
        let base = indptr[first] as usize;
        let edges = &mut indices[base..indptr[group.end] as usize];
        let offsets = &indptr[first..=group.end];
        let nodes = &nodes[group.clone()];
        choose_positions(view, chooser, nodes, first, offsets, edges, scratch);
        let lists = &scratch.lists[group];
        for ((list, &found), &node) in offsets.windows(2).zip(lists).zip(nodes) {
            let positions = &edges[list[0] as usize - base..list[1] as usize - base];
            chooser.chosen(view, node, found, positions);
        }
        if let (Some(out), Some(values)) = (&mut weights, view.weights) {
            for (list, &(start, _)) in offsets.windows(2).zip(lists) {
                let chosen = &edges[list[0] as usize - base..list[1] as usize - base];
                out.extend(chosen.iter().map(|&p| view.weight(values, start + p as usize)));
            }
        }
        if let (Some(out), Some(all)) = (&mut edge_features, view.edge_features) {
            for (list, &(start, _)) in offsets.windows(2).zip(lists) {
                for &position in &edges[list[0] as usize - base..list[1] as usize - base] {
                    all.append(view.row(start + position as usize), &mut out.values)?;
                }
            }
        }
        let mut largest = 0;
        for (list, &(start, degree)) in offsets.windows(2).zip(lists) {
            let sources = &view.indices[start..start + degree as usize];
            for edge in &mut edges[list[0] as usize - base..list[1] as usize - base] {
                *edge = sources[*edge as usize];
                largest = largest.max(*edge);
                scratch.hint(*edge);
            }
        }
        if !edges.is_empty() && largest as usize >= view.num_sources {
            return Err(view.bad_source(largest));
        }
        scratch.insert_all(edges);
    }
    Ok(Hop { num_src: scratch.nodes().len(), indptr, indices, weights, edge_features })
}

/// Brings lists into memory, many at a time; `taken` has the offsets of the edges taken of each. Long lists are left out of
/// which not all edges are taken.
fn read_lists_ahead(view: View<'_>, lists: &[(usize, u32)], taken: &[u32]) {
    let range = |i: usize| {
        let (start, degree) = lists[i];
        let is_whole = taken[i + 1] - taken[i] == degree;
        let read = if is_whole || degree <= LONG { degree as usize } else { 0 };
        start..start + read
    };
    read_ahead::bring(view.indices, lists.len(), &range);
}

/// Looks up the lists of `nodes`; returns the block's offsets.
fn find_lists(
    view: View<'_>,
    nodes: &[u32],
    fanout: u32,
    chooser: &impl Choose,
    lists: &mut Vec<(usize, u32)>,
) -> Result<Vec<u32>> {
    let mut indptr = Vec::with_capacity(nodes.len() + 1);
    indptr.push(0);
    lists.clear();
    lists.reserve(nodes.len());
    let mut total = 0u32;
    for (i, &node) in nodes.iter().enumerate() {
        if let Some(&later) = nodes.get(i + AHEAD) {
            view.indptr.prefetch(later as usize);
        }
        let list = view.list(node)?;
        total = add_edges(total, chooser.count(view, node, list.1, fanout))?;
        indptr.push(total);
        lists.push(list);
    }
    Ok(indptr)
}

/// Fills `edges` with the chosen positions in the list of each of `nodes`, destinations from
/// `first` on.
fn choose_positions<C: Choose>(
    view: View<'_>,
    chooser: &mut C,
    nodes: &[u32],
    first: usize,
    offsets: &[u32],
    edges: &mut [u32],
    scratch: &mut Scratch,
) {
    let base = offsets[0];
    for &list in &scratch.lists[first..first + nodes.len()] {
        chooser.announce(view, list);
    }
    for (i, &node) in nodes.iter().enumerate() {
        let chosen = &mut edges[(offsets[i] - base) as usize..(offsets[i + 1] - base) as usize];
        let (start, degree) = scratch.lists[first + i];
        if chosen.len() == degree as usize && !C::REPLACES {
            for (position, edge) in chosen.iter_mut().enumerate() {
                *edge = position as u32;
            }
            prefetch(view.indices, start);
        } else {
            chooser.choose(view, node, (start, degree), scratch, chosen);
        }
    }
}
