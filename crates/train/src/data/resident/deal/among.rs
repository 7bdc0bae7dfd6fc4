//! The eras in which edges are trained.

use gnarl_common::rng::Key;

use super::Era;

/// Eras with `in_memory` of `parts` parts: the edges from part `i` to part `j`, cell `i * parts + j`, are trained in one of those
/// that have both, drawn by `key` (MariusGNN, section 5.1), and not at all where no era has.
pub(crate) fn among(in_memory: Vec<Vec<usize>>, parts: usize, key: Key) -> Vec<Era> {
    let mut both = vec![Vec::new(); parts * parts];
    for (number, here) in in_memory.iter().enumerate() {
        for &i in here {
            here.iter().for_each(|&j| both[i * parts + j].push(number as u32));
        }
    }
    let mut eras: Vec<Era> =
        in_memory.into_iter().map(|parts| Era { parts, cells: Vec::new() }).collect();
    for (cell, numbers) in both.iter().enumerate().filter(|(_, numbers)| !numbers.is_empty()) {
        let drawn = key.below(cell as u64, numbers.len() as u64);
        eras[numbers[drawn as usize] as usize].cells.push(cell);
    }
    eras
}

#[cfg(test)]
mod tests {
    use super::super::pairs;
    use super::*;

    #[test]
    fn cells_are_trained_once_with_both_parts_in_memory() {
        let eras = among(pairs((16, 1, 4), Key::new(3)), 16, Key::new(4));
        for era in &eras {
            let here = |part: usize| era.parts.contains(&part);
            assert!(era.cells.iter().all(|cell| here(cell / 16) && here(cell % 16)), "{era:?}");
        }
        let mut trained: Vec<usize> = eras.iter().flat_map(|era| &era.cells).copied().collect();
        trained.sort_unstable();
        assert_eq!(trained, (0..256).collect::<Vec<_>>());
        // The first era has seen 16 pairs and later ones 7 each: drawing spreads them.
        let most = eras.iter().map(|era| era.cells.len()).max().unwrap();
        assert!(most < 16, "{most} cells in one of {} eras", eras.len());
    }

    #[test]
    fn parts_that_never_meet_train_no_edges() {
        let eras = among(vec![vec![0, 1], vec![1, 2]], 3, Key::new(1));
        let mut trained: Vec<usize> = eras.iter().flat_map(|era| &era.cells).copied().collect();
        trained.sort_unstable();
        assert_eq!(trained, [0, 1, 3, 4, 5, 7, 8]);
    }
}
