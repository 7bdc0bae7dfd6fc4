//! The deal of nodes: every part is in memory once an epoch (Armada §3.2, after MariusGNN).

use gnarl_common::rng::Key;

use super::Era;

/// The eras of an epoch: parts are dealt to `slots` slots in an order by `key`; a slot has `resident` of its parts in memory,
/// and from one era to the next gives up that which came first for the next one. Every part is read once.
pub(crate) fn deal((parts, slots, resident): (usize, usize, usize), key: Key) -> Vec<Era> {
    let mut order: Vec<usize> = (0..parts).collect();
    key.shuffle(&mut order);
    let dealt = |slot: usize| -> Vec<usize> {
        order.iter().skip(slot).step_by(slots.max(1)).copied().collect()
    };
    let slots: Vec<Vec<usize>> = (0..slots.max(1)).map(dealt).collect();
    let longest = slots.iter().map(Vec::len).max().unwrap_or(0);
    let eras = (longest + 1).saturating_sub(resident.max(1)).max(1);
    let era = |number: usize| {
        let mut parts = Vec::new();
        for slot in &slots {
            // A slot with a part less keeps what it has in the last era.
            let end = (resident + number).min(slot.len());
            let first = end.saturating_sub(resident);
            parts.extend(&slot[first..end]);
        }
        parts.sort_unstable();
        parts
    };
    (0..eras).map(era).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_part_comes_once() {
        for (parts, slots, resident) in [
            (16, 1, 4),
            (16, 4, 1),
            (7, 2, 2),
            (5, 1, 1),
            (3, 1, 3),
            (4, 3, 2),
            (9, 4, 2),
            (1, 1, 1),
        ] {
            let eras = deal((parts, slots, resident), Key::new(3));
            let mut before = BTreeSet::new();
            let mut read: Vec<usize> = Vec::new();
            for era in &eras {
                let now: BTreeSet<usize> = era.iter().copied().collect();
                assert_eq!(now.len(), era.len());
                assert!(now.len() <= slots * resident, "{era:?}");
                read.extend(now.difference(&before));
                before = now;
            }
            read.sort_unstable();
            let all: Vec<usize> = (0..parts).collect();
            assert_eq!(read, all, "{parts} parts, {slots} x {resident}");
        }
    }

    #[test]
    fn all_parts_in_memory_are_one_era() {
        let eras = deal((6, 2, 3), Key::new(1));
        assert_eq!(eras, [(0..6).collect::<Vec<_>>()]);
        assert_eq!(deal((6, 1, 6), Key::new(2)), eras);
    }

    #[test]
    fn the_order_is_another_in_another_epoch() {
        let of = |epoch: u64| deal((16, 1, 4), Key::new(7).with(epoch));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
