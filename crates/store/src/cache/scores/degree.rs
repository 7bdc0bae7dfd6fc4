//! Scores by degree.

use gnarl_common::Result;

use super::InLists;
use super::lists::of_source;

/// The out-degree of each of `nodes` nodes, the score of PaGraph (Lin et al., SoCC 2020). One pass
/// over the edges of the lists.
///
/// # Errors
/// If a source is not among the nodes, or those of the lists.
pub fn out_degrees(lists: &impl InLists, nodes: usize) -> Result<Vec<f32>> {
    let mut degrees = vec![0u32; nodes];
    let all: Vec<u32> = (0..lists.num_nodes() as u32).collect();
    lists.visit(&all, &mut |_, _, sources| {
        sources.iter().try_for_each(|&source| {
            let degree = of_source(&mut degrees, source)?;
            *degree = degree.saturating_add(1);
            Ok(())
        })
    })?;
    Ok(degrees.into_iter().map(|degree| degree as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::Csc;

    #[test]
    fn out_degrees_count_lists_that_name_a_node() {
        let csc = Csc::from_edges(3, &[(0, 1), (0, 2), (3, 2), (0, 2)]);
        assert_eq!(out_degrees(&csc, 5).unwrap(), [3.0, 0.0, 0.0, 1.0, 0.0]);
        let message = out_degrees(&csc, 3).unwrap_err().to_string();
        assert!(message.contains("source 3 does not exist, there are 3 nodes"), "{message}");
    }
}
