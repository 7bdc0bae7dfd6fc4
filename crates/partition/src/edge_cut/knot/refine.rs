//! Moves nodes between parts: first to restore the balance, then to reduce the cut.

use gnarl_common::error::Result;
use gnarl_common::rng::Key;

use super::cluster::Tally;
use super::level::{Level, Load};

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
        self.loads.iter().map(|load| excess(*load, &self.caps)).sum()
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
        let mut loss_allowed = 0.0;
        for round in 0..12u64 {
            if self.excess() == 0.0 {
                return Ok(());
            }
            let mut tally = Tally::new(self.loads.len());
            let draw = key.with(round);
            level.lists.for_each(|node, near, weights| {
                let own = self.of[node as usize] as usize;
                if excess(self.loads[own], &self.caps) == 0.0 {
                    return;
                }
                let load = level.loads.of(node);
                self.count(near, weights, &mut tally);
                let kept = tally.sum(own as u32);
                let mut best = None;
                for part in (0..self.loads.len()).filter(|&part| part != own) {
                    let sum = tally.sum(part as u32);
                    let loss = (f64::from(kept) - f64::from(sum)) / load[1].max(1) as f64;
                    let change = self.excess_change(load, own, part);
                    if loss <= loss_allowed && change < 0.0 {
                        let rank = (sum, draw.with(node.into()).u64(part as u64));
                        if best.is_none_or(|(other, _)| rank > other) {
                            best = Some((rank, part));
                        }
                    }
                }
                tally.clear();
                if let Some((_, part)) = best {
                    self.shift(node, load, part as u16);
                }
            })?;
            loss_allowed = if round < 6 { loss_allowed * 1.5 + 0.1 } else { f64::INFINITY };
        }
        Ok(())
    }

    /// Moves each node to the part most of its edges lead to, as far as the caps allow, until a
    /// round gains little. Returns the weight of the edges that are no longer cut.
    pub fn refine(&mut self, level: &Level, rounds: usize, key: Key) -> Result<u64> {
        let mut tally = Tally::new(self.loads.len());
        let mut active = vec![true; level.len()];
        let mut total = 0u64;
        for round in 0..rounds as u64 {
            let draw = key.with(round);
            let (mut gained, mut cut) = (0u64, 0u64);
            level.lists.for_each(|node, near, weights| {
                if !std::mem::replace(&mut active[node as usize], false) {
                    return;
                }
                self.count(near, weights, &mut tally);
                let own = self.of[node as usize] as u32;
                let load = level.loads.of(node);
                let rank = |part: u32| (tally.sum(part), draw.with(node.into()).u64(part.into()));
                let mut best = (own, rank(own));
                for &part in tally.touched() {
                    cut += u64::from(if part == own { 0 } else { tally.sum(part) });
                    if part != own && tally.sum(part) >= best.1.0 {
                        let rank = rank(part);
                        let change = self.excess_change(load, own as usize, part as usize);
                        if rank > best.1 && change <= 0.0 {
                            best = (part, rank);
                        }
                    }
                }
                let gain = best.1.0 - tally.sum(own);
                tally.clear();
                if best.0 != own {
                    gained += u64::from(gain);
                    self.shift(node, load, best.0 as u16);
                    near.iter().for_each(|&v| active[v as usize] = true);
                }
            })?;
            total += gained;
            if gained * 1000 < cut {
                break;
            }
        }
        Ok(total)
    }

    /// Weight of the edges between parts, counted from both endpoints.
    pub fn cut(&self, level: &Level) -> Result<u64> {
        let mut cut = 0;
        level.lists.for_each(|node, near, weights| {
            let own = self.of[node as usize];
            for (i, &neighbor) in near.iter().enumerate() {
                if self.of[neighbor as usize] != own {
                    cut += u64::from(weights.get(i).copied().unwrap_or(1));
                }
            }
        })?;
        Ok(cut)
    }

    #[inline]
    fn count(&self, near: &[u32], weights: &[u32], tally: &mut Tally) {
        for (i, &neighbor) in near.iter().enumerate() {
            let part = self.of[neighbor as usize];
            tally.add(part.into(), weights.get(i).copied().unwrap_or(1));
        }
    }
}

fn add(sum: &mut Load, load: Load) {
    sum.iter_mut().zip(load).for_each(|(s, l)| *s += l);
}

fn sub(sum: &mut Load, load: Load) {
    sum.iter_mut().zip(load).for_each(|(s, l)| *s -= l);
}

fn excess(load: Load, caps: &Load) -> f64 {
    let over = |(&l, &c): (&u64, &u64)| l.saturating_sub(c) as f64 / c.max(1) as f64;
    load.iter().zip(caps).map(over).sum()
}
