//! The seeds of each batch of an epoch.

use gnarl_common::rng::Key;
use gnarl_common::threads::even_share;

use crate::options::LoaderOptions;

/// The purpose of the random numbers that order seeds, apart from those that draw neighbors.
const ORDER: u64 = 0x6f72_6465;

/// The order of the seeds of an epoch, split into steps that all ranks take part in.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Places in the list of seeds.
    order: Vec<u32>,
    step: usize,
    rank: usize,
    world_size: usize,
    batches: usize,
}

impl Schedule {
    /// That of `count` seeds in `epoch`. Each rank has the same number of batches, and of seeds but for one, and none is
    /// empty: where the last step has fewer seeds than there are ranks, it takes further ones from the epoch's start.
    pub fn new(count: usize, options: &LoaderOptions, epoch: u64) -> Self {
        let LoaderOptions { batch_size, rank, world_size, .. } = *options;
        let mut order: Vec<u32> = (0..count as u32).collect();
        if options.shuffle {
            Key::new(options.seed).with(ORDER).with(epoch).shuffle(&mut order);
        }
        let step = batch_size.saturating_mul(world_size);
        let left = count % step;
        if options.drop_last {
            order.truncate(count - left);
        } else if left > 0 && left < world_size {
            let more: Vec<u32> = order.iter().cycle().take(world_size - left).copied().collect();
            order.extend(more);
        }
        let batches = Self::batches(count, options);
        Self { order, step, rank, world_size, batches }
    }

    /// Number of batches of each rank.
    pub fn batches(count: usize, options: &LoaderOptions) -> usize {
        let step = options.batch_size.saturating_mul(options.world_size);
        match options.drop_last {
            true => count / step,
            false => count.div_ceil(step),
        }
    }

    /// Number of batches of this rank.
    pub fn len(&self) -> usize {
        self.batches
    }

    /// The seeds of this rank's batch, as places in the list of seeds.
    pub fn places(&self, batch: usize) -> &[u32] {
        let step = batch * self.step..self.order.len().min((batch + 1) * self.step);
        let step = &self.order[step];
        &step[even_share(step.len(), self.rank, self.world_size)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(batch_size: usize, rank: usize, world_size: usize) -> LoaderOptions {
        LoaderOptions { batch_size, rank, world_size, shuffle: true, ..Default::default() }
    }

    #[test]
    fn ranks_share_each_step_evenly_and_none_has_an_empty_batch() {
        for (count, world) in [(10, 3), (9, 4), (25, 4), (3, 5), (24, 4)] {
            let of = |rank| Schedule::new(count, &options(2, rank, world), 1);
            let mut all = Vec::new();
            for rank in 0..world {
                let schedule = of(rank);
                assert_eq!(schedule.len(), count.div_ceil(2 * world), "{count} by {world}");
                for batch in 0..schedule.len() {
                    let places = schedule.places(batch);
                    assert!((1..=2).contains(&places.len()), "{count} by {world}: {places:?}");
                    all.extend_from_slice(places);
                }
            }
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }

    #[test]
    fn steps_of_several_ranks_have_the_seeds_of_one_rank_with_larger_batches() {
        let alone = Schedule::new(50, &options(8, 0, 1), 3);
        for batch in 0..alone.len() {
            let ranks = (0..4).map(|rank| Schedule::new(50, &options(2, rank, 4), 3));
            let together: Vec<u32> = ranks.flat_map(|s| s.places(batch).to_vec()).collect();
            // The last step has two seeds for four ranks, which two of the first complete.
            assert!(together.starts_with(alone.places(batch)), "{together:?}");
        }
    }

    #[test]
    fn epochs_differ_in_order_and_not_in_seeds() {
        let of = |epoch| Schedule::new(100, &options(100, 0, 1), epoch).places(0).to_vec();
        let mut first = of(0);
        let mut second = of(1);
        assert_ne!(first, second);
        assert_eq!(first, of(0));
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!(first, second);
    }

    #[test]
    fn the_last_batch_may_be_left_out() {
        let options = LoaderOptions { drop_last: true, ..options(8, 0, 1) };
        let schedule = Schedule::new(50, &options, 0);
        assert_eq!((schedule.len(), schedule.places(5).len()), (6, 8));
        assert_eq!(Schedule::new(7, &options, 0).len(), 0);
    }
}
