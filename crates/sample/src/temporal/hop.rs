//! One hop over the edges that are there at a time.

use gnarl_common::Result;
use gnarl_common::rng::Key;

use super::by_time::{ByTime, Permitted};
use super::numbered::Numbered;
use super::pairs::Pairs;
use super::rule::TemporalDraw;
use crate::hash::Hash;
use crate::scratch::{Hop, add_edges};
use crate::view::View;

/// The lists of an edge type, and their order by time; without it all edges are always there.
#[derive(Clone, Copy)]
pub struct TimedLists<'a> {
    pub view: View<'a>,
    pub by_time: Option<&'a ByTime>,
    pub draw: TemporalDraw,
}

/// The edges of a hop.
pub struct TimedHop {
    pub hop: Hop,
    /// The time of each edge.
    pub times: Vec<i64>,
    /// Permitted in-neighbors of each destination.
    pub degrees: Vec<u32>,
    /// The random number of each edge, if it was drawn by one.
    pub numbers: Vec<u32>,
}

impl TimedLists<'_> {
    /// The number of edges of `node` that are there at `time`.
    ///
    /// # Errors
    /// If the list is not inside the graph.
    pub fn degree(&self, node: u32, time: i64) -> Result<u32> {
        let list = self.view.list(node)?;
        Ok(self.by_time.map_or(list.1, |order| order.until(list, time).len() as u32))
    }

    /// Samples in-neighbors of nodes at times and adds them to `sources`.
    ///
    /// # Errors
    /// If a list is not inside the graph, or the hop exceeds 32-bit offsets.
    pub fn hop(
        &self,
        (nodes, times): (&[u32], &[i64]),
        fanout: u32,
        key: Key,
        sources: &mut Pairs,
        seen: &mut Vec<u32>,
    ) -> Result<TimedHop> {
        let view = self.view;
        let (mut indptr, mut indices, mut positions) = (vec![0], Vec::new(), Vec::new());
        let (mut edge_times, mut degrees) = (Vec::new(), Vec::with_capacity(nodes.len()));
        let mut weights = view.weights.map(|_| Vec::new());
        let (mut total, mut chosen) = (0, Vec::new());
        let (mut numbered, mut numbers) = (Numbered::default(), Vec::new());
        let rule = self.draw.rule;
        for (&node, &time) in nodes.iter().zip(times) {
            let list @ (start, degree) = view.list(node)?;
            let permitted = match self.by_time {
                Some(order) => order.until(list, time),
                None => Permitted::all(degree),
            };
            degrees.push(permitted.len() as u32);
            chosen.clear();
            chosen.resize(permitted.len().min(fanout as usize), 0);
            let key = key.with(view.id(node)).with(time as u64);
            if self.draw.exact {
                let by = (rule, Hash::new(key));
                numbered.choose((view, start), permitted, by, &mut chosen, &mut numbers)?;
            } else {
                rule.choose(permitted, key, seen, &mut chosen);
            }
            total = add_edges(total, chosen.len() as u32)?;
            indptr.push(total);
            for &i in &chosen {
                let edge = start + permitted.position(i as usize);
                indices.push(sources.insert(view.source(edge)?, time));
                edge_times.push(permitted.time(i as usize));
                positions.push(edge);
                if let (Some(out), Some(values)) = (&mut weights, view.weights) {
                    out.push(view.weight(values, edge));
                }
            }
        }
        let edge_features = view.rows_of(positions.into_iter())?;
        let num_src = sources.nodes.len();
        let hop = Hop { num_src, indptr, indices, weights, edge_features };
        Ok(TimedHop { hop, times: edge_times, degrees, numbers })
    }
}
