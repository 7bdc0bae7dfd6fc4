//! Rebalancing of parts by moving and swapping single nodes.

use std::collections::BTreeMap;

use crate::balance::quota::Quota;

/// Moves nodes out of parts that exceed a quota, or swaps them for others, while that lowers the
/// sum of all excesses. The first quota, that of nodes, is never violated by it.
///
/// Nodes of few edges move first, except to even out degrees, where the heaviest do. Memory: 4
/// bytes a node if anything is out of balance.
pub(crate) fn level(of: &mut [u16], parts: usize, quotas: &[Quota], degree: &dyn Fn(usize) -> u32) {
    if quotas.len() == 1 {
        return;
    }
    let mut loads = vec![vec![0; parts]; quotas.len()];
    for (v, &p) in of.iter().enumerate() {
        let weights = loads.iter_mut().zip(quotas);
        weights.for_each(|(load, quota)| load[p as usize] += quota.of(v, degree(v)));
    }
    let over = |(load, quota): (&Vec<u64>, &Quota)| load.iter().any(|&l| l > quota.cap);
    if !loads.iter().zip(quotas).any(over) {
        return;
    }
    let mut pools = BTreeMap::<Class, Vec<u32>>::new();
    for (v, &p) in of.iter().enumerate() {
        pools.entry(Class::of(p, v, quotas, degree(v))).or_default().push(v as u32);
    }
    Level { of, quotas, degree, loads, pools }.run();
}

/// Interchangeable nodes: of one part, in the same splits and types, of similar degree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    part: u16,
    bits: u8,
    marks: u64,
}

impl Class {
    fn of(part: u16, v: usize, quotas: &[Quota], degree: u32) -> Self {
        let marked = |(i, q): (usize, &Quota)| ((q.of(v, 0) != 0) as u64) << i.min(63);
        let marks = quotas.iter().enumerate().map(marked).fold(0, |all, mark| all | mark);
        Self { part, bits: (u32::BITS - degree.leading_zeros()) as u8, marks }
    }
}

struct Level<'a> {
    of: &'a mut [u16],
    quotas: &'a [Quota],
    degree: &'a dyn Fn(usize) -> u32,
    /// Load of each part under each quota.
    loads: Vec<Vec<u64>>,
    pools: BTreeMap<Class, Vec<u32>>,
}

impl Level<'_> {
    fn run(&mut self) {
        for quota in 0..self.quotas.len() {
            let excess = |p: &u16| self.loads[quota][*p as usize] > self.quotas[quota].cap;
            let parts = 0..=(self.loads[quota].len() - 1) as u16;
            for part in parts.filter(excess).collect::<Vec<_>>() {
                self.relieve(part, quota);
            }
        }
    }

    /// Moves nodes with load under `quota` out of `part` until it meets the quota.
    fn relieve(&mut self, part: u16, quota: usize) {
        let within = |c: &Class| c.part == part;
        let mut giving: Vec<Class> = self.pools.keys().copied().filter(within).collect();
        // Degrees are the only quota under which nodes of a split differ in weight.
        if giving.iter().any(|c| self.weight(c, quota) > 1) {
            giving.reverse();
        }
        for from in giving {
            if self.weight(&from, quota) == 0 {
                continue;
            }
            let mut takers: Vec<u16> = (0..=(self.loads[quota].len() - 1) as u16).collect();
            takers.sort_by_key(|&p| self.loads[quota][p as usize]);
            for to in takers.into_iter().filter(|&p| p != part) {
                while self.trade(from, to, None) {}
                let theirs = |c: &Class| c.part == to;
                let offered: Vec<Class> = self.pools.keys().copied().filter(theirs).collect();
                for back in offered {
                    while self.trade(from, to, Some(back)) {}
                }
                if self.loads[quota][part as usize] <= self.quotas[quota].cap {
                    return;
                }
            }
        }
    }

    /// The load of a node of the class under the quota; one of them stands for all.
    fn weight(&self, class: &Class, quota: usize) -> u64 {
        let first = self.pools.get(class).and_then(|pool| pool.last());
        first.map_or(0, |&v| self.quotas[quota].of(v as usize, (self.degree)(v as usize)))
    }

    /// Moves a node of class `from` to part `to`, in exchange for one of class `back` if given,
    /// only if that lowers the sum of all excesses; returns whether it did.
    fn trade(&mut self, from: Class, to: u16, back: Option<Class>) -> bool {
        let last = |class: &Class| self.pools.get(class).and_then(|pool| pool.last().copied());
        let Some(v) = last(&from) else { return false };
        let w = back.as_ref().and_then(last);
        if back.is_some() != w.is_some() || !self.pays(v, from.part, to, w) {
            return false;
        }
        // Both leave their pools first: `v` may go where `w` comes from.
        let leaving = [Some((v, from, to)), w.zip(back).map(|(w, back)| (w, back, from.part))];
        for (_, class, _) in leaving.into_iter().flatten() {
            self.pools.entry(class).or_default().pop();
        }
        for (v, class, to) in leaving.into_iter().flatten() {
            self.shift(v, class, to);
        }
        true
    }

    fn pays(&self, v: u32, from: u16, to: u16, back: Option<u32>) -> bool {
        let (mut before, mut after) = (0, 0);
        for (i, (quota, load)) in self.quotas.iter().zip(&self.loads).enumerate() {
            let weight = |v: u32| quota.of(v as usize, (self.degree)(v as usize));
            let (give, take) = (weight(v), back.map_or(0, weight));
            let (source, target) = (load[from as usize], load[to as usize]);
            let (less, more) = (source - give + take, target + give - take);
            if i == 0 && more > target && more > quota.cap {
                return false;
            }
            let excess = |load: u64| quota.fill(load.saturating_sub(quota.cap));
            before += excess(source) + excess(target);
            after += excess(less) + excess(more);
        }
        after < before
    }

    fn shift(&mut self, v: u32, class: Class, to: u16) {
        self.pools.entry(Class { part: to, ..class }).or_default().push(v);
        self.of[v as usize] = to;
        for (quota, load) in self.quotas.iter().zip(&mut self.loads) {
            let weight = quota.of(v as usize, (self.degree)(v as usize));
            load[class.part as usize] -= weight;
            load[to as usize] += weight;
        }
    }
}
