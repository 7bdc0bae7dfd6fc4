//! The eras in which examples are trained.

use gnarl_common::rng::Key;

use super::Era;
use crate::data::resident::Examples;

/// The examples of each era, ascending: each is trained in one of the eras that have its parts, drawn by `key`, and not at all
/// where none has. So every era trains a mixture of all that is in memory; MariusGNN (section 5.1) draws an era for all edges
/// between two parts together, and the examples of one part in one era would be a run of steps on little else.
pub(crate) fn spread(eras: &[Era], examples: &Examples, key: Key) -> Vec<Vec<u32>> {
    let holding = holding(eras, examples);
    let mut trained = vec![Vec::new(); eras.len()];
    for (cell, holding) in holding.iter().enumerate().filter(|(_, eras)| !eras.is_empty()) {
        for &example in examples.of(cell) {
            let drawn = key.below(example.into(), holding.len() as u64);
            trained[holding[drawn as usize] as usize].push(example);
        }
    }
    trained.iter_mut().for_each(|examples| examples.sort_unstable());
    trained
}

/// Number of examples that an epoch of these eras trains.
pub(crate) fn trainable(eras: &[Era], examples: &Examples) -> usize {
    let holding = holding(eras, examples);
    let cells = holding.iter().enumerate().filter(|(_, eras)| !eras.is_empty());
    cells.map(|(cell, _)| examples.of(cell).len()).sum()
}

/// The eras that have the parts of each cell.
fn holding(eras: &[Era], examples: &Examples) -> Vec<Vec<u32>> {
    let mut holding = vec![Vec::new(); examples.num_cells()];
    for (number, here) in eras.iter().enumerate() {
        for cell in examples.cells(here) {
            holding[cell].push(number as u32);
        }
    }
    holding
}

#[cfg(test)]
mod tests {
    use super::super::{nodes, pairs};
    use super::*;

    /// A hundred nodes in each part.
    fn of_nodes(parts: u32) -> Examples {
        Examples::Nodes((0..parts).map(|part| (100 * part..100 * (part + 1)).collect()).collect())
    }

    /// Three edges between any two parts.
    fn of_edges(parts: usize) -> Examples {
        let cell = |cell: usize| (3 * cell as u32..3 * cell as u32 + 3).collect();
        Examples::Edges { parts, by_parts: (0..parts * parts).map(cell).collect() }
    }

    /// Asserts that all examples are trained once, with their parts in memory.
    fn assert_all_once(eras: &[Era], examples: &Examples) {
        let trained = spread(eras, examples, Key::new(5));
        assert_eq!(trained.len(), eras.len());
        let parts = examples.parts();
        for (era, trained) in eras.iter().zip(&trained) {
            let here = |part: usize| era.contains(&part);
            for &example in trained {
                let there = match examples {
                    Examples::Nodes(_) => here(example as usize / 100),
                    Examples::Edges { .. } => {
                        let cell = example as usize / 3;
                        here(cell / parts) && here(cell % parts)
                    }
                };
                assert!(there, "example {example} of {era:?}");
            }
        }
        let mut all = trained.concat();
        all.sort_unstable();
        assert_eq!(all, (0..examples.len() as u32).collect::<Vec<_>>());
        assert_eq!(trainable(eras, examples), examples.len());
    }

    #[test]
    fn examples_are_trained_once_with_their_parts_in_memory() {
        for (parts, slots, resident) in [(16, 1, 4), (7, 2, 2), (5, 1, 1), (3, 1, 3), (9, 4, 2)] {
            let dealt = (parts, slots, resident);
            assert_all_once(&nodes(dealt, Key::new(3)), &of_nodes(parts as u32));
            if resident > 1 {
                assert_all_once(&pairs(dealt, Key::new(3)), &of_edges(parts));
            }
        }
    }

    #[test]
    fn an_era_trains_a_mixture_of_what_is_in_memory() {
        let eras = nodes((16, 1, 4), Key::new(3));
        let trained = spread(&eras, &of_nodes(16), Key::new(4));
        for (era, trained) in eras.iter().zip(&trained) {
            assert!((50..300).contains(&trained.len()), "{} of {era:?}", trained.len());
            for &part in era {
                let of_part = trained.iter().filter(|&&node| node as usize / 100 == part).count();
                assert!(of_part >= 10, "{of_part} of part {part} in {era:?}");
            }
        }
        assert_ne!(trained, spread(&eras, &of_nodes(16), Key::new(9)));
    }

    #[test]
    fn edges_between_parts_that_never_meet_are_not_trained() {
        let eras = vec![vec![0, 1], vec![1, 2]];
        let trained: Vec<u32> = spread(&eras, &of_edges(3), Key::new(1)).concat();
        let cells: std::collections::BTreeSet<u32> = trained.iter().map(|edge| edge / 3).collect();
        assert_eq!(cells.into_iter().collect::<Vec<_>>(), [0, 1, 3, 4, 5, 7, 8]);
        assert_eq!(trainable(&eras, &of_edges(3)), 21);
    }
}
