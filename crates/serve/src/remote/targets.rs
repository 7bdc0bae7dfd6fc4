//! Target edges of a remote part.

use gnarl_common::{Context, Error, Result};
use gnarl_graph::triples::{Side, Triples};

use super::RemotePart;
use crate::codec::{found_of, keys_batch, places_batch, triples_of};
use crate::command::{Command, SPLITS, WholeSplit};
use crate::targets::{FoundTargets, STRETCH};

impl RemotePart {
    /// Begins to read the target edges at `places` of a split, as far as the part has them; the returned function waits
    /// for them. It fails if the part has no target edges, there is no such split, or the server does not reply with
    /// such edges.
    pub fn begin_targets(
        &self,
        split: usize,
        places: &[u32],
    ) -> impl FnOnce() -> Result<FoundTargets> + Send + use<> {
        let (part, count) = (self.part, places.len());
        let command = Command::Targets { part, split };
        let begun = places_batch(places).map(|about| self.client.begin(command, about));
        move || {
            let read = || {
                let found = found_of(&begun?()?, "position")?;
                match found.positions.last() {
                    Some(&last) if last as usize >= count => Err(Error::invalid(format!(
                        "expected positions below {count}, found {last}"
                    ))),
                    _ => Ok(found),
                }
            };
            read().while_doing(|| format!("reading target edges of part {part}"))
        }
    }

    /// Streams the target edges of a split that the part has, in the order of their places, into `each`. All of them
    /// are received before the first is passed on.
    ///
    /// # Errors
    /// As [`RemotePart::begin_targets`], and those of `each`.
    pub fn split_targets(
        &self,
        split: usize,
        each: &mut dyn FnMut(FoundTargets) -> Result<()>,
    ) -> Result<()> {
        let part = self.part;
        let doing = || {
            format!("reading the {} edges of part {part}", SPLITS.get(split).unwrap_or(&"target"))
        };
        let batches = self.client.whole(WholeSplit { part, targets: split }).while_doing(doing)?;
        let mut previous = None;
        for batch in batches {
            for start in (0..batch.num_rows()).step_by(STRETCH as usize) {
                let rows = (batch.num_rows() - start).min(STRETCH as usize);
                let found = found_of(&[batch.slice(start, rows)], "place").while_doing(doing)?;
                if found.positions.first().copied() <= previous && previous.is_some() {
                    return Err(Error::invalid("places do not ascend")).while_doing(doing);
                }
                previous = found.positions.last().copied().or(previous);
                each(found)?;
            }
        }
        Ok(())
    }

    /// Begins to read the part's target edges that match one of `keys`, see
    /// [`PartAccess::begin_known`](crate::PartAccess::begin_known); the returned function waits for them.
    pub fn begin_known(
        &self,
        side: Side,
        keys: &[[u32; 2]],
        train: bool,
    ) -> impl FnOnce() -> Result<Triples> + Send + use<> {
        let part = self.part;
        let command = Command::Known { part, side, train };
        let begun = keys_batch(keys).map(|about| self.client.begin(command, about));
        move || {
            let edges = begun.and_then(|reply| reply()).and_then(|batches| triples_of(&batches));
            edges.while_doing(|| format!("reading known edges of part {part}"))
        }
    }
}
