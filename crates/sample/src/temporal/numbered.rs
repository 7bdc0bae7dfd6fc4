//! Draws by a random number of each edge.

use gnarl_common::Result;

use super::by_time::Permitted;
use super::rule::TemporalRule;
use crate::hash::Hash;
use crate::view::View;

/// Edges of a list that chance decides about: number and index of each.
#[derive(Default)]
pub struct Numbered {
    candidates: Vec<(u32, u32)>,
}

impl Numbered {
    /// Fills `out` with indices of `permitted` edges of the list from `start` on, ascending, and appends their numbers
    /// by `hash` to `numbers`. Of edges that are equally recent those with the smallest numbers are taken, or of all
    /// edges if the rule is uniform; of equal numbers the first.
    ///
    /// # Errors
    /// If a source is no node.
    pub fn choose(
        &mut self,
        (view, start): (View<'_>, usize),
        permitted: Permitted<'_>,
        (rule, hash): (TemporalRule, Hash),
        out: &mut [u32],
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        // The edges before `from` are never taken, those from `to` on always, the rest by their numbers.
        let (from, to) = match rule {
            TemporalRule::Uniform => (0, permitted.len()),
            TemporalRule::Recent => {
                let last = permitted.time(permitted.len() - out.len());
                (permitted.before(last), permitted.up_to(last))
            }
        };
        self.candidates.clear();
        let (mut before, mut repeat) = (None, 0);
        for i in from..permitted.len() {
            let source = view.source(start + permitted.position(i))?;
            let time = permitted.time(i);
            // Equal edges follow each other in a list, and so do those of them at one time.
            repeat = if before == Some((source, time)) { repeat + 1 } else { 0 };
            before = Some((source, time));
            let number = hash.of_event(view.source_id(source), time, repeat);
            self.candidates.push((number, i as u32));
        }
        let always = permitted.len() - to;
        let by_chance = out.len() - always;
        let (some, rest) = self.candidates.split_at_mut(to - from);
        if by_chance < some.len() {
            some.select_nth_unstable(by_chance);
        }
        let some = &mut some[..by_chance];
        some.sort_unstable_by_key(|&(_, i)| i);
        for (slot, &(number, i)) in out.iter_mut().zip(some.iter().chain(rest.iter())) {
            *slot = i;
            numbers.push(number);
        }
        Ok(())
    }
}
