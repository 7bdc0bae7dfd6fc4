//! The deal of pairs: every two parts are in memory together once an epoch, as edges between them require. The order is
//! Marius' (Mohoney et al., "Marius: Learning Massive Graph Embeddings on a Single Machine", OSDI 2021, section 4.2, BETA),
//! over groups of parts that are drawn anew in every epoch (MariusGNN, Waleffe et al., EuroSys 2023, section 5.1, COMET).

use gnarl_common::rng::Key;

use super::Era;

/// The parts in memory in the eras of an epoch: parts are in groups of `slots`, in an order by `key`, of which `resident` are
/// in memory. From one era to the next a group gives way to another one, until each has been in memory with each.
///
/// # Panics
/// If fewer than two groups are in memory and there are more.
pub(crate) fn deal((parts, slots, resident): (usize, usize, usize), key: Key) -> Vec<Era> {
    let mut order: Vec<usize> = (0..parts).collect();
    key.shuffle(&mut order);
    let groups: Vec<&[usize]> = order.chunks(slots.max(1)).collect();
    assert!(resident >= 2 || groups.len() <= resident, "pairs need two groups in memory");
    let in_memory = |visit: Vec<usize>| {
        let mut parts: Vec<usize> =
            visit.iter().flat_map(|&group| groups[group]).copied().collect();
        parts.sort_unstable();
        parts
    };
    visits(groups.len(), resident).into_iter().map(in_memory).collect()
}

/// The groups in memory from era to era: one of them changes until it has met all that are to come, then the others, which
/// have met all, leave for the next ones.
pub(crate) fn visits(groups: usize, resident: usize) -> Vec<Vec<usize>> {
    let mut here: Vec<usize> = (0..groups.min(resident)).collect();
    let mut coming: Vec<usize> = (here.len()..groups).collect();
    let mut visits = vec![here.clone()];
    while !coming.is_empty() {
        let last = here.len() - 1;
        for other in &mut coming {
            std::mem::swap(&mut here[last], other);
            visits.push(here.clone());
        }
        let leave = last.min(coming.len());
        for (place, group) in coming.drain(..leave).enumerate() {
            here[place] = group;
            visits.push(here.clone());
        }
    }
    visits
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_pair_of_parts_is_in_memory_together() {
        let cases = [
            (16, 1, 4),
            (16, 2, 2),
            (7, 2, 2),
            (5, 1, 2),
            (3, 1, 3),
            (9, 4, 2),
            (9, 4, 3),
            (1, 1, 1),
        ];
        for (parts, slots, resident) in cases {
            let mut met = BTreeSet::new();
            let mut before: Option<BTreeSet<usize>> = None;
            for era in deal((parts, slots, resident), Key::new(3)) {
                let now: BTreeSet<usize> = era.iter().copied().collect();
                assert!(now.len() == era.len() && now.len() <= slots * resident, "{era:?}");
                let read = before.map_or(0, |before| now.difference(&before).count());
                assert!(read <= slots, "{read} parts read for {era:?}");
                met.extend(era.iter().flat_map(|&i| era.iter().map(move |&j| (i, j))));
                before = Some(now);
            }
            assert_eq!(met.len(), parts * parts, "{parts} parts, {slots} x {resident}");
        }
    }

    #[test]
    fn few_parts_are_read() {
        // Sixteen parts, four in memory: one meets the twelve others, three leave, and so on.
        assert_eq!(visits(16, 4).len(), 1 + 12 + 3 + 9 + 3 + 6 + 3 + 3 + 3);
        assert_eq!(visits(4, 4), [[0, 1, 2, 3]]);
        assert_eq!(visits(3, 2), [[0, 1], [0, 2], [1, 2]]);
        assert!(visits(0, 4).len() == 1);
    }

    #[test]
    fn groups_are_others_in_another_epoch() {
        let of = |epoch: u64| deal((16, 2, 4), Key::new(7).with(epoch));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
