//! The deal of pairs: every two parts are in memory together once an epoch, as edges between them require. The order is
//! Marius' (Mohoney et al., "Marius: Learning Massive Graph Embeddings on a Single Machine", OSDI 2021, section 4.2, BETA),
//! over groups of parts that are drawn anew in every epoch, and pairs are trained in any of the eras that have both (MariusGNN,
//! Waleffe et al., EuroSys 2023, section 5.1, COMET).

use gnarl_common::rng::Key;

use super::Era;

/// The eras of an epoch: parts are in groups of `slots`, in an order by `key`, of which `resident` are in memory. From one era
/// to the next a group gives way to another one, until each has been in memory with each. A cell `i * parts + j` has the edges
/// from part `i` to part `j`; each is trained in one era, drawn among those that have both.
///
/// # Panics
/// If fewer than two groups are in memory and there are more.
pub(crate) fn deal(parts: usize, slots: usize, resident: usize, key: Key) -> Vec<Era> {
    let mut order: Vec<usize> = (0..parts).collect();
    key.shuffle(&mut order);
    let groups: Vec<&[usize]> = order.chunks(slots.max(1)).collect();
    assert!(resident >= 2 || groups.len() <= resident, "pairs need two groups in memory");
    let visits = visits(groups.len(), resident);
    let mut eras: Vec<Era> = Vec::with_capacity(visits.len());
    // The eras that have both of a pair of groups.
    let mut both = vec![Vec::new(); groups.len() * groups.len()];
    for (number, visit) in visits.iter().enumerate() {
        for &a in visit {
            visit.iter().for_each(|&b| both[a * groups.len() + b].push(number));
        }
        let mut parts: Vec<usize> =
            visit.iter().flat_map(|&group| groups[group]).copied().collect();
        parts.sort_unstable();
        eras.push(Era { parts, cells: Vec::new() });
    }
    let mut group_of = vec![0; parts];
    for (number, group) in groups.iter().enumerate() {
        group.iter().for_each(|&part| group_of[part] = number);
    }
    let key = key.with(1);
    for cell in 0..parts * parts {
        let (i, j) = (cell / parts, cell % parts);
        let among = &both[group_of[i] * groups.len() + group_of[j]];
        let drawn = key.below(cell as u64, among.len() as u64) as usize;
        eras[among[drawn]].cells.push(cell);
    }
    eras
}

/// The groups in memory from era to era: one of them changes until it has met all that are to come, then the others, which
/// have met all, leave for the next ones.
fn visits(groups: usize, resident: usize) -> Vec<Vec<usize>> {
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
    fn every_pair_is_trained_once_with_both_parts_in_memory() {
        for (parts, slots, resident) in [
            (16, 1, 4),
            (16, 2, 2),
            (7, 2, 2),
            (5, 1, 2),
            (3, 1, 3),
            (9, 4, 2),
            (9, 4, 3),
            (1, 1, 1),
        ] {
            let eras = deal(parts, slots, resident, Key::new(3));
            let mut trained = Vec::new();
            let mut before: Option<BTreeSet<usize>> = None;
            for era in &eras {
                let now: BTreeSet<usize> = era.parts.iter().copied().collect();
                assert!(now.len() == era.parts.len() && now.len() <= slots * resident, "{era:?}");
                for cell in &era.cells {
                    assert!(
                        now.contains(&(cell / parts)) && now.contains(&(cell % parts)),
                        "{era:?}"
                    );
                }
                let read = before.map_or(0, |before| now.difference(&before).count());
                assert!(read <= slots, "{read} parts read for {era:?}");
                trained.extend(&era.cells);
                before = Some(now);
            }
            trained.sort_unstable();
            let all: Vec<usize> = (0..parts * parts).collect();
            assert_eq!(trained, all, "{parts} parts, {slots} x {resident}");
        }
    }

    #[test]
    fn few_parts_are_read() {
        // Sixteen parts, four in memory: one meets the twelve others, three leave, and so on.
        assert_eq!(visits(16, 4).len(), 1 + 12 + 3 + 9 + 3 + 6 + 3 + 3 + 3);
        assert_eq!(visits(4, 4), [[0, 1, 2, 3]]);
        assert_eq!(visits(3, 2), [[0, 1], [0, 2], [1, 2]]);
    }

    #[test]
    fn pairs_are_spread_over_the_eras() {
        let of = |epoch: u64| deal(16, 1, 4, Key::new(7).with(epoch));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let most = of(1).iter().map(|era| era.cells.len()).max().unwrap();
        assert!(most < 16, "{most} of 256 cells in one of 43 eras");
    }
}
