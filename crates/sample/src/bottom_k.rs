//! Bottom-k sampling: the edges with the smallest random numbers, which for a list shared by
//! several parts are found by merging the candidates of each part.

use gnarl_common::prefetch::item as prefetch;

use crate::Scratch;
use crate::lanes::{LANES, Lanes};
use crate::neighbors::Choose;
use crate::view::View;

/// A random number for each edge of a list.
pub trait Numbers: Send {
    /// Called before the edges of `node`, a dataset id, are numbered.
    fn turn_to(&mut self, node: u64);

    /// Prefetches a list, without its sources.
    #[inline(always)]
    fn announce(&self, _: View<'_>, _: (usize, u32)) {}

    /// Numbers the edges `from..from + LANES` (or fewer, at the end) of the list of `degree` edges
    /// that begins at `start`; returns those whose numbers are at most `limit`. The numbers of the
    /// others may be anything.
    fn fill(
        &self,
        view: View<'_>,
        list: (usize, u32),
        from: usize,
        limit: u32,
        numbers: &mut [u32; LANES],
    ) -> Lanes;

    /// A limit that probably a few more than `wanted` numbers of a list do not exceed.
    fn likely_limit(&self, view: View<'_>, list: (usize, u32), wanted: usize) -> u32;

    /// A limit that exactly `wanted` of `numbers` do not exceed, if there is one and it is found
    /// faster than by selection. All are at most `limit`, and there are more than `wanted`.
    #[inline(always)]
    fn exact_limit(&self, _numbers: &[u32], _limit: u32, _wanted: usize) -> Option<u32> {
        None
    }
}

/// Chooses the edges with the smallest numbers. Ties are broken by the order of the list.
pub struct Smallest<N> {
    rule: N,
    /// The small numbers of a list, in its order, with spare room behind them.
    numbers: Vec<u32>,
    positions: Vec<u32>,
    order: Vec<u32>,
}

impl<N: Numbers> Smallest<N> {
    pub fn new(rule: N) -> Self {
        Self { rule, numbers: Vec::new(), positions: Vec::new(), order: Vec::new() }
    }

    /// Fills `out` with positions in `list`, ascending.
    fn select(&mut self, view: View<'_>, list: (usize, u32), out: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the processor has the features the function is compiled for.
            return unsafe { self.select_avx2(view, list, out) };
        }
        self.select_here(view, list, out);
    }

    /// As [`Smallest::select`] with vectors of eight lanes: the default build targets baseline
    /// x86-64, which has four and multiplies two of them at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn select_avx2(&mut self, view: View<'_>, list: (usize, u32), out: &mut [u32]) {
        self.select_here(view, list, out);
    }

    #[inline(always)]
    fn select_here(&mut self, view: View<'_>, list: (usize, u32), out: &mut [u32]) {
        let wanted = out.len();
        let limit = self.rule.likely_limit(view, list, wanted);
        let (mut found, mut limit) = self.scan(view, list, limit, wanted);
        if found < wanted {
            (found, limit) = self.scan(view, list, u32::MAX, wanted);
        }
        if found > wanted {
            if let Some(limit) = self.rule.exact_limit(&self.numbers[..found], limit, wanted) {
                return self.take(found, limit, out);
            }
            self.keep_smallest(found, wanted);
        }
        out.copy_from_slice(&self.positions[..wanted]);
    }

    /// Finds numbers that are at most `limit`: all of them, or the `wanted` smallest and perhaps
    /// some more. Returns their number and the limit that they do not exceed.
    #[inline(always)]
    fn scan(
        &mut self,
        view: View<'_>,
        list: (usize, u32),
        mut limit: u32,
        wanted: usize,
    ) -> (usize, u32) {
        let most = 2 * wanted + LANES;
        if self.numbers.len() < most + LANES {
            self.numbers.resize(most + LANES, 0);
            self.positions.resize(most + LANES, 0);
        }
        let (mut found, mut largest) = (0, limit);
        let mut fresh = [0u32; LANES];
        for from in (0..list.1 as usize).step_by(LANES) {
            let small = self.rule.fill(view, list, from, limit, &mut fresh);
            if small.is_empty() {
                continue;
            }
            let room = found..found + LANES;
            let (numbers, positions) = (&mut self.numbers[room.clone()], &mut self.positions[room]);
            found += keep(small, &fresh, from as u32, numbers, positions);
            if found > most {
                (found, largest) = (wanted, self.keep_smallest(found, wanted));
                // An equal later number would lose the tie, so only strictly smaller ones are of
                // interest.
                let Some(smaller) = largest.checked_sub(1) else { break };
                limit = smaller;
            }
        }
        (found, largest)
    }

    /// Drops all but the `wanted` smallest of `found` numbers; returns the largest of them.
    #[inline(never)]
    fn keep_smallest(&mut self, found: usize, wanted: usize) -> u32 {
        let (numbers, positions) = (&mut self.numbers[..found], &mut self.positions[..found]);
        self.order.clear();
        self.order.extend_from_slice(numbers);
        let (before, &mut largest, _) = self.order.select_nth_unstable(wanted - 1);
        let mut equal = wanted - before.iter().filter(|&&number| number < largest).count();
        let mut kept = 0;
        for i in 0..found {
            let (number, ties) = (numbers[i], numbers[i] == largest && equal > 0);
            (numbers[kept], positions[kept]) = (number, positions[i]);
            equal -= usize::from(ties);
            kept += usize::from(ties | (number < largest));
        }
        largest
    }

    /// The first `out.len()` positions whose numbers are at most `limit`.
    #[inline(always)]
    fn take(&self, found: usize, limit: u32, out: &mut [u32]) {
        let mut taken = 0;
        for (&number, &position) in self.numbers[..found].iter().zip(&self.positions[..found]) {
            if taken == out.len() {
                break;
            }
            out[taken] = position;
            taken += usize::from(number <= limit);
        }
    }
}

/// Copies the numbers in `lanes` and their positions, `from` being the first lane's; returns their
/// number.
#[inline(always)]
fn keep(
    lanes: Lanes,
    fresh: &[u32; LANES],
    from: u32,
    numbers: &mut [u32],
    positions: &mut [u32],
) -> usize {
    if lanes.are_few() {
        for ((number, position), lane) in numbers.iter_mut().zip(positions).zip(lanes) {
            (*number, *position) = (fresh[lane], from + lane as u32);
        }
        return lanes.count();
    }
    // Each is written first and kept or overwritten after: a branch would be mispredicted at every
    // other edge of a short list.
    let mut kept = 0;
    for lane in 0..LANES {
        numbers[kept & (LANES - 1)] = fresh[lane];
        positions[kept & (LANES - 1)] = from + lane as u32;
        kept += usize::from(lanes.has(lane));
    }
    kept
}

impl<N: Numbers> Choose for Smallest<N> {
    #[inline]
    fn announce(&self, view: View<'_>, (start, degree): (usize, u32)) {
        for line in (0..degree.min(128) as usize).step_by(16) {
            prefetch(view.indices, start + line);
        }
        self.rule.announce(view, (start, degree));
    }

    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        list: (usize, u32),
        _: &mut Scratch,
        out: &mut [u32],
    ) {
        if !out.is_empty() {
            self.rule.turn_to(view.id(node));
            self.select(view, list, out);
        }
    }
}

/// Chooses as [`Smallest`] does, and keeps the number of every edge chosen.
pub struct Numbered<N> {
    chooser: Smallest<N>,
    pub numbers: Vec<u32>,
}

impl<N: Numbers> Numbered<N> {
    pub fn new(chooser: Smallest<N>) -> Self {
        Self { chooser, numbers: Vec::new() }
    }
}

impl<N: Numbers> Choose for Numbered<N> {
    fn announce(&self, view: View<'_>, list: (usize, u32)) {
        self.chooser.announce(view, list);
    }

    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        list: (usize, u32),
        scratch: &mut Scratch,
        out: &mut [u32],
    ) {
        self.chooser.choose(view, node, list, scratch, out);
    }

    fn chosen(&mut self, view: View<'_>, node: u32, list: (usize, u32), positions: &[u32]) {
        let rule = &mut self.chooser.rule;
        rule.turn_to(view.id(node));
        let (mut from, mut numbers) = (usize::MAX, [0; LANES]);
        for &position in positions {
            let lane = position as usize % LANES;
            if from != position as usize - lane {
                from = position as usize - lane;
                rule.fill(view, list, from, u32::MAX, &mut numbers);
            }
            self.numbers.push(numbers[lane]);
        }
    }
}

/// `wanted` plus a margin: of uniform numbers below a limit set for that many, fewer than `wanted`
/// are seldom found.
#[inline(always)]
pub(crate) fn with_spare(wanted: usize) -> f64 {
    let wanted = wanted as f64;
    wanted + 2.0 * wanted.sqrt() + 2.0
}

/// [`Numbers::likely_limit`] of numbers that are uniform.
#[inline(always)]
pub(crate) fn likely_limit(wanted: usize, degree: u32) -> u32 {
    (with_spare(wanted) / f64::from(degree) * f64::from(u32::MAX)) as u32
}

/// [`Numbers::exact_limit`] of numbers that are uniform: interpolation finds it in a few passes
/// without branches, where a sort would mispredict most of its own.
#[inline(always)]
pub(crate) fn exact_limit(numbers: &[u32], limit: u32, wanted: usize) -> Option<u32> {
    let (mut low, mut high) = ((0u32, 0usize), (limit, numbers.len()));
    for _ in 0..16 {
        let share = (wanted as f32 - low.1 as f32 + 0.5) / (high.1 as f32 - low.1 as f32 + 1.0);
        let middle = low.0 + ((high.0 - low.0) as f32 * share) as u32;
        let count = numbers.iter().map(|&number| u32::from(number <= middle)).sum::<u32>();
        match (count as usize).cmp(&wanted) {
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Less => low = (middle, count as usize),
            std::cmp::Ordering::Greater => high = (middle.min(high.0), count as usize),
        }
    }
    None
}
