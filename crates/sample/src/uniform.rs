//! Uniform neighbour sampling without replacement (Hamilton et al., NeurIPS 2017, section 3.1).

use gnarl_graph::prefetch::item as prefetch;
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Result};

use crate::draw::draw;
use crate::graph::View;
use crate::scratch::{Hop, Scratch, add_edges};
use crate::{MiniBatch, SampleGraph, Sampler};

/// Destinations handled together: the memory accesses of one step overlap with the next step's.
const GROUP: usize = 32;
/// How many destinations ahead offsets are asked for.
const AHEAD: usize = 16;

/// For every node at every hop, a uniform sample of its in-neighbours without replacement.
///
/// The sample is a pure function of the key, the fan-out and the node's dataset id: it chooses
/// positions in the node's list, which is ordered by dataset id. Smaller fan-outs take a prefix of
/// the same draw, so a node met at several hops does not bring new neighbours each time: batches
/// stay smaller than with independent draws, and each hop's sample is uniform all the same. Time is
/// proportional to the number of edges drawn, not to degrees.
#[derive(Debug, Clone)]
pub struct UniformSampler {
    fanouts: Vec<u32>,
}

impl UniformSampler {
    /// `fanouts[0]` in-neighbours of each seed, `fanouts[1]` of each node reached so far (seeds
    /// included), and so on; -1 takes all. As many blocks as fan-outs.
    ///
    /// # Errors
    /// If there are no fan-outs, or one is neither positive nor -1.
    pub fn new(fanouts: &[i64]) -> Result<Self> {
        if fanouts.is_empty() {
            return Err(Error::usage("a neighbour sampler needs at least one fan-out"));
        }
        let parse = |&fanout: &i64| match fanout {
            -1 => Ok(u32::MAX),
            1.. => Ok(u32::try_from(fanout).unwrap_or(u32::MAX)),
            _ => Err(Error::usage(format!("fan-out {fanout}: must be positive, or -1 for all"))),
        };
        Ok(Self { fanouts: fanouts.iter().map(parse).collect::<Result<_>>()? })
    }
}

impl Sampler for UniformSampler {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn sample(
        &self,
        graph: &SampleGraph,
        seeds: &[u32],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        let view = graph.view();
        let targets = scratch.start(graph, seeds)?;
        let mut hops = Vec::with_capacity(self.fanouts.len());
        for &fanout in &self.fanouts {
            hops.push(sample_hop(view, fanout, key, scratch)?);
        }
        Ok(scratch.finish(view, hops, targets))
    }
}

/// Samples `fanout` in-neighbours of all nodes in `scratch` and adds them to it.
fn sample_hop(view: View<'_>, fanout: u32, key: Key, scratch: &mut Scratch) -> Result<Hop> {
    let indptr = find_lists(view, fanout, scratch)?;
    let num_dst = indptr.len() - 1;
    let num_edges = indptr[num_dst] as usize;
    scratch.reserve(num_edges);
    let mut indices = vec![0u32; num_edges];
    let mut weights = view.weights.map(|_| Vec::with_capacity(num_edges));
    for first in (0..num_dst).step_by(GROUP) {
        let group = first..(first + GROUP).min(num_dst);
        let base = indptr[first] as usize;
        let edges = &mut indices[base..indptr[group.end] as usize];
        let offsets = &indptr[first..=group.end];
        draw_positions(view, key, &group, offsets, edges, scratch);
        let lists = &scratch.lists[group];
        if let (Some(out), Some(values)) = (&mut weights, view.weights) {
            for (list, &(start, _)) in offsets.windows(2).zip(lists) {
                let chosen = &edges[list[0] as usize - base..list[1] as usize - base];
                out.extend(chosen.iter().map(|&p| view.weight(values, start + p as usize)));
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
        if largest as usize >= view.num_nodes() {
            return Err(view.bad_source(largest));
        }
        scratch.insert_all(edges);
    }
    Ok(Hop { num_src: scratch.nodes().len(), indptr, indices, weights })
}

/// Looks up the lists of all nodes in `scratch`; returns the block's offsets.
fn find_lists(view: View<'_>, fanout: u32, scratch: &mut Scratch) -> Result<Vec<u32>> {
    let mut lists = std::mem::take(&mut scratch.lists);
    let nodes = scratch.nodes();
    let mut indptr = Vec::with_capacity(nodes.len() + 1);
    indptr.push(0);
    lists.clear();
    lists.reserve(nodes.len());
    let mut total = 0u32;
    for (i, &node) in nodes.iter().enumerate() {
        if let Some(&later) = nodes.get(i + AHEAD) {
            prefetch(view.indptr, later as usize);
        }
        let list = view.list(node)?;
        total = add_edges(total, list.1.min(fanout))?;
        indptr.push(total);
        lists.push(list);
    }
    scratch.lists = lists;
    Ok(indptr)
}

/// Fills `edges` with the chosen positions in each destination's list.
fn draw_positions(
    view: View<'_>,
    key: Key,
    group: &std::ops::Range<usize>,
    offsets: &[u32],
    edges: &mut [u32],
    scratch: &mut Scratch,
) {
    let base = offsets[0];
    let mut seen = std::mem::take(&mut scratch.seen);
    for (i, dst) in group.clone().enumerate() {
        let chosen = &mut edges[(offsets[i] - base) as usize..(offsets[i + 1] - base) as usize];
        let (start, degree) = scratch.lists[dst];
        if chosen.len() == degree as usize {
            for (position, edge) in chosen.iter_mut().enumerate() {
                *edge = position as u32;
            }
            prefetch(view.indices, start);
        } else {
            draw(key.with(view.id(scratch.nodes()[dst])), degree, chosen, &mut seen);
            for &position in &*chosen {
                prefetch(view.indices, start + position as usize);
            }
        }
    }
    scratch.seen = seen;
}
