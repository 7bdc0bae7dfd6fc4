//! Nodes without edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::level::{Level, Load};
use super::refine::Parts;

/// Assigns nodes without edges to parts with room: training nodes first, to the parts with fewest
/// of them, then the others.
pub(super) fn place(graph: &Level, train: &[u64], parts: Parts) -> Vec<u16> {
    let Parts { mut of, mut loads, caps } = parts;
    let lengths = graph.lists.lengths();
    let mut left: Vec<bool> = lengths.iter().map(|&length| length == 0).collect();
    let mut place = |nodes: &mut dyn Iterator<Item = usize>, c: usize| {
        let key = |load: &Load| (load[c], load[0]);
        let parts = loads.iter().enumerate().map(|(p, load)| Reverse((key(load), p)));
        let mut emptiest: BinaryHeap<_> = parts.collect();
        for v in nodes.filter(|&v| std::mem::replace(&mut left[v], false)) {
            // A part that is full stays so; the caps of nodes have room for all of them.
            while let Some(Reverse((_, part))) = emptiest.pop() {
                if loads[part][0] < caps[0] {
                    of[v] = part as u16;
                    loads[part][0] += 1;
                    loads[part][c] += u64::from(c > 0);
                    emptiest.push(Reverse((key(&loads[part]), part)));
                    break;
                }
            }
        }
    };
    place(&mut train.iter().map(|&v| v as usize), 2);
    place(&mut (0..lengths.len()), 0);
    of
}
