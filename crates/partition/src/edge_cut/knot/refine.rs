//! Moves nodes between parts: first to restore the balance, then to reduce the cut.

use std::ops::Range;

use gnarl_common::error::Result;
use gnarl_common::prefetch;
use gnarl_common::rng::Key;

use super::level::{Level, Load};
use super::lists::Piece;
use super::pass::Pass;
use super::tally::Tally;

/// Rounds that restore the balance, and how many of them limit what a move may cost.
const BALANCE_ROUNDS: u64 = 12;
const PATIENT_ROUNDS: u64 = 6;
/// Prefetch distance in neighbors.
const AHEAD: usize = 16;

/// A partition of a level's nodes, and the weights of the parts.
pub(super) struct Parts {
    pub of: Vec<u16>,
    pub loads: Vec<Load>,
    /// Upper bounds of the parts.
    pub caps: Load,
}

impl Parts {
    pub fn new(level: &Level, of: Vec<u16>, parts: usize, caps: Load) -> Self {
        let mut loads = vec![[0; 3]; parts];
        for (node, &part) in of.iter().enumerate() {
            add(&mut loads[part as usize], level.loads.of(node as u32));
        }
        Self { of, loads, caps }
    }

    /// Total excess over the caps, as a sum of shares of the caps.
    pub fn excess(&self) -> f64 {
        self.excesses().iter().sum()
    }

    /// Excess of all parts over each cap, as shares of it.
    pub fn excesses(&self) -> [f64; 3] {
        std::array::from_fn(|c| self.loads.iter().map(|load| over(load[c], self.caps[c])).sum())
    }

    /// Change of the excess if a node of `load` moves.
    fn excess_change(&self, load: Load, from: usize, to: usize) -> f64 {
        let (mut less, mut more) = (self.loads[from], self.loads[to]);
        let before = excess(less, &self.caps) + excess(more, &self.caps);
        sub(&mut less, load);
        add(&mut more, load);
        excess(less, &self.caps) + excess(more, &self.caps) - before
    }

    fn shift(&mut self, node: u32, load: Load, to: u16) {
        let from = std::mem::replace(&mut self.of[node as usize], to);
        sub(&mut self.loads[from as usize], load);
        add(&mut self.loads[to as usize], load);
    }

    /// Moves nodes out of parts above the caps, in the order of smallest loss.
    pub fn balance(&mut self, level: &Level, key: Key) -> Result<()> {
        let mut allowed = 0.0;
        for round in 0..BALANCE_ROUNDS {
            if self.excess() == 0.0 {
                return Ok(());
            }
            let draw = key.with(round);
            level.lists.run(&mut Balance { parts: self, level, allowed, draw })?;
            allowed = if round < PATIENT_ROUNDS { allowed * 1.5 + 0.1 } else { f64::INFINITY };
        }
        Ok(())
    }

    /// Moves each node to the part most of its edges lead to, as far as the caps allow, until a
    /// round gains little.
    pub fn refine(&mut self, level: &Level, rounds: usize, key: Key) -> Result<()> {
        let active = vec![true; level.len()];
        let mut pass = Refine { parts: self, level, active, draw: key, gained: 0, cut: 0 };
        for round in 0..rounds as u64 {
            pass.draw = key.with(round);
            (pass.gained, pass.cut) = (0, 0);
            level.lists.run(&mut pass)?;
            if pass.gained * 1000 < pass.cut {
                break;
            }
        }
        Ok(())
    }

    /// Weight of the edges between parts, counted from both endpoints.
    pub fn cut(&self, level: &Level) -> Result<u64> {
        level.lists.sum(|piece| {
            let mut cut = 0;
            piece.for_each(|node, near, weights| {
                let own = self.of[node as usize];
                for (i, &neighbor) in near.iter().enumerate() {
                    if self.of[neighbor as usize] != own {
                        cut += u64::from(weights.get(i).copied().unwrap_or(1));
                    }
                }
            });
            cut
        })
    }

    #[inline]
    fn count(&self, near: &[u32], weights: &[u32], tally: &mut Tally) {
        tally.clear(near.len(), self.loads.len());
        for (i, &neighbor) in near.iter().enumerate() {
            if let Some(&next) = near.get(i + AHEAD) {
                prefetch::item(&self.of, next as usize);
            }
            let part = self.of[neighbor as usize];
            tally.add(part.into(), weights.get(i).copied().unwrap_or(1));
        }
    }
}

/// A round that moves nodes out of parts above the caps.
struct Balance<'a> {
    parts: &'a mut Parts,
    level: &'a Level,
    /// The weight of edges that a move may add to the cut, for each in-edge of the node.
    allowed: f64,
    draw: Key,
}

impl Pass for Balance<'_> {
    type Decided = Vec<u32>;

    fn decide(&self, piece: &Piece) -> Vec<u32> {
        let mut tally = Tally::default();
        let mut leaving = Vec::new();
        piece.for_each(|node, near, weights| {
            if self.target(node, near, weights, &mut tally).is_some() {
                leaving.push(node);
            }
        });
        leaving
    }

    fn apply(&mut self, block: &[(Piece, Vec<u32>)]) {
        let mut tally = Tally::default();
        for (piece, leaving) in block {
            piece.for_some(leaving, |node, near, weights| {
                if let Some(part) = self.target(node, near, weights, &mut tally) {
                    self.parts.shift(node, self.level.loads.of(node), part);
                }
            });
        }
    }
}

impl Balance<'_> {
    /// The part that a node leaves its own for.
    fn target(&self, node: u32, near: &[u32], weights: &[u32], tally: &mut Tally) -> Option<u16> {
        let parts = &*self.parts;
        let own = parts.of[node as usize] as usize;
        if excess(parts.loads[own], &parts.caps) == 0.0 {
            return None;
        }
        let load = self.level.loads.of(node);
        if load == [0; 3] {
            return None;
        }
        let draw = self.draw.with(node.into());
        parts.count(near, weights, tally);
        let kept = tally.sum(own as u32);
        let mut best = None;
        for part in (0..parts.loads.len()).filter(|&part| part != own) {
            let sum = tally.sum(part as u32);
            let loss = (f64::from(kept) - f64::from(sum)) / load[1].max(1) as f64;
            if loss <= self.allowed && parts.excess_change(load, own, part) < 0.0 {
                let rank = (sum, draw.u64(part as u64));
                if best.is_none_or(|(other, _)| rank > other) {
                    best = Some((rank, part as u16));
                }
            }
        }
        best.map(|(_, part)| part)
    }
}

/// A round that moves nodes to the parts most of their edges lead to.
struct Refine<'a> {
    parts: &'a mut Parts,
    level: &'a Level,
    /// Nodes not looked at since a neighbor moved, and at first all.
    active: Vec<bool>,
    draw: Key,
    /// Weight of the edges that are no longer cut, and that of those found cut.
    gained: u64,
    cut: u64,
}

impl Pass for Refine<'_> {
    type Decided = (Vec<u32>, u64);

    fn wants(&self, nodes: Range<u32>) -> bool {
        self.active[nodes.start as usize..nodes.end as usize].contains(&true)
    }

    fn decide(&self, piece: &Piece) -> Self::Decided {
        let mut tally = Tally::default();
        let mut moving = Vec::new();
        let mut cut = 0;
        piece.for_each(|node, near, weights| {
            if self.active[node as usize] {
                if self.target(node, near, weights, &mut tally).is_some() {
                    moving.push(node);
                }
                let own = u32::from(self.parts.of[node as usize]);
                let others = tally.sums().filter(|&(part, _)| part != own);
                cut += others.map(|(_, sum)| u64::from(sum)).sum::<u64>();
            }
        });
        (moving, cut)
    }

    fn apply(&mut self, block: &[(Piece, Self::Decided)]) {
        for (piece, (_, cut)) in block {
            let nodes = piece.nodes();
            self.active[nodes.start as usize..nodes.end as usize].fill(false);
            self.cut += cut;
        }
        let mut tally = Tally::default();
        for (piece, (moving, _)) in block {
            // Others of the block have moved since: all look again, so that neighbors do not swap.
            piece.for_some(moving, |node, near, weights| {
                if let Some((part, gain)) = self.target(node, near, weights, &mut tally) {
                    self.gained += u64::from(gain);
                    self.parts.shift(node, self.level.loads.of(node), part);
                    near.iter().for_each(|&v| self.active[v as usize] = true);
                }
            });
        }
    }
}

impl Refine<'_> {
    /// The part that a node leaves its own for, and the weight of the edges no longer cut.
    fn target(
        &self,
        node: u32,
        near: &[u32],
        weights: &[u32],
        tally: &mut Tally,
    ) -> Option<(u16, u32)> {
        let parts = &*self.parts;
        parts.count(near, weights, tally);
        let own = u32::from(parts.of[node as usize]);
        let kept = tally.sum(own);
        let load = self.level.loads.of(node);
        let draw = self.draw.with(node.into());
        let rank = |part: u32, sum: u32| (sum, draw.u64(part.into()));
        let mut best = (own, rank(own, kept));
        for (part, sum) in tally.sums() {
            if part != own && sum >= best.1.0 {
                let rank = rank(part, sum);
                let change = parts.excess_change(load, own as usize, part as usize);
                if rank > best.1 && change <= 0.0 {
                    best = (part, rank);
                }
            }
        }
        (best.0 != own).then(|| (best.0 as u16, best.1.0 - kept))
    }
}

fn add(sum: &mut Load, load: Load) {
    sum.iter_mut().zip(load).for_each(|(s, l)| *s += l);
}

fn sub(sum: &mut Load, load: Load) {
    sum.iter_mut().zip(load).for_each(|(s, l)| *s -= l);
}

fn excess(load: Load, caps: &Load) -> f64 {
    load.iter().zip(caps).map(|(&load, &cap)| over(load, cap)).sum()
}

fn over(load: u64, cap: u64) -> f64 {
    load.saturating_sub(cap) as f64 / cap.max(1) as f64
}
