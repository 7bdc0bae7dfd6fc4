//! Hotness scores, by which a fixed cache is filled.
//!
//! In: in-neighbor lists ([`InLists`]), wherever they are. Out: one score per node, and the nodes
//! with the highest scores.

mod access;
mod degree;
mod lists;

pub use access::access_probabilities;
pub use degree::out_degrees;
pub use lists::{InLists, Visit};

use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// The scores, by their names in configurations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Score {
    /// [`out_degrees`].
    Degree,
    /// [`access_probabilities`].
    #[default]
    Access,
}

/// The `count` nodes among `candidates` with the highest scores, best first; the lower id where
/// scores are equal. `scores` has one per node, and candidates are nodes that have one.
///
/// # Errors
/// If a candidate has no score.
pub fn highest(
    scores: &[f32],
    candidates: impl IntoIterator<Item = u32>,
    count: usize,
) -> Result<Vec<u32>> {
    let mut nodes: Vec<u32> = candidates.into_iter().collect();
    if let Some(node) = nodes.iter().find(|&&node| node as usize >= scores.len()) {
        return Err(Error::invalid(format!(
            "node {node} has no score: there are {}",
            scores.len()
        )));
    }
    let order = |a: &u32, b: &u32| {
        scores[*b as usize].total_cmp(&scores[*a as usize]).then_with(|| a.cmp(b))
    };
    if count < nodes.len() {
        nodes.select_nth_unstable_by(count, order);
        nodes.truncate(count);
    }
    nodes.sort_unstable_by(order);
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_ties_by_id() {
        let scores = [1.0, 5.0, 0.0, 5.0, 2.0];
        assert_eq!(highest(&scores, 0..5, 3).unwrap(), [1, 3, 4]);
        assert_eq!(highest(&scores, [4, 3, 2], 9).unwrap(), [3, 4, 2]);
        assert!(highest(&scores, 0..5, 0).unwrap().is_empty());
        let message = highest(&scores, [6], 1).unwrap_err().to_string();
        assert!(message.contains("node 6 has no score"), "{message}");
    }
}
