//! Relations of edges: their numbers and their names.

use gnarl_common::{Error, Result};
use gnarl_graph::{Dataset, Names, Triple};

/// Number of relations, each of which must occur.
///
/// # Errors
/// If there are gaps between their numbers.
pub(crate) fn count(relations: &[u32]) -> Result<usize> {
    let most = relations.iter().max().map_or(0, |&last| last as usize + 1);
    if most > relations.len() {
        return Err(gaps(most, "most of them do not occur".into()));
    }
    let mut seen = vec![false; most];
    relations.iter().for_each(|&relation| seen[relation as usize] = true);
    match seen.iter().position(|seen| !seen) {
        None => Ok(most),
        Some(missing) => Err(gaps(most, format!("{missing} does not occur"))),
    }
}

fn gaps(most: usize, what: String) -> Error {
    Error::invalid(format!("relation ids have gaps: they go up to {}, and {what}", most - 1))
        .hint("number relations from 0 without gaps, or import their names")
}

/// Names of relations; none if they are numbers.
///
/// # Errors
/// If their columns are damaged.
pub(super) fn names(dataset: &Dataset, triple: &Triple) -> Result<Vec<String>> {
    let names = Names::of_edges(dataset, triple, "relation_name")?;
    Ok(names.map_or_else(Vec::new, |names| names.iter().map(String::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_numbered_without_gaps() {
        assert_eq!(count(&[0, 2, 1, 2]).unwrap(), 3);
        let error = count(&[0, 3, 1, 3]).unwrap_err().to_string();
        assert!(error.contains("up to 3, and 2 does not occur"), "{error}");
        let error = count(&[4_000_000_000]).unwrap_err().to_string();
        assert!(error.contains("relation ids have gaps"), "{error}");
    }
}
