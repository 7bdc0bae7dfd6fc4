//! Hints at the start of a run, for settings that are likely to help on its data.

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_graph::{Dataset, Features};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize, Rows};

/// Number of sampled feature rows, spread evenly over the nodes.
const SAMPLE: usize = 256;
/// Rows in memory at a time.
const AT_ONCE: usize = 16;
/// Least number of nonzero rows for a hint.
const LEAST: usize = 32;
/// Largest share of nonzero values of sparse features, such as bags of words.
const SPARSE: f64 = 0.25;
/// The ratio of the sum of a large row to that of a small one (the ninth decile over the first)
/// from which rows are called uneven. Word counts of papers have 2 to 8, TF-IDF 1.3, one-hot rows
/// 1.
const UNEVEN: f64 = 2.0;

/// Logs that `dataset.normalize = "row"` may help, where features look like word counts.
///
/// # Errors
/// If features cannot be read.
pub(crate) fn on_features(config: &RunConfig, dataset: Option<&Dataset>) -> Result<()> {
    let Some(dataset) = dataset else { return Ok(()) };
    if config.dataset.normalize != Normalize::None || config.model.name == "none" {
        return Ok(());
    }
    for node_type in &dataset.manifest().node_types {
        let Some(features) = dataset.features(&node_type.name)? else { continue };
        if let Some(ratio) = uneven(features)? {
            tracing::info!(
                "features of {} are sparse and not negative, and the sums of their rows differ {ratio:.0}-fold: \
                 dataset.normalize = 'row' may help",
                node_type.name
            );
            return Ok(());
        }
    }
    Ok(())
}

/// The ratio of sums of large rows to small ones, where features are sparse, have no negative
/// value, and differ by enough to matter.
fn uneven(features: Features) -> Result<Option<f64>> {
    let (rows, width) = (features.rows(), features.width());
    let count = rows.min(SAMPLE);
    // Evenly spread, since nodes near each other in a file are often alike.
    let ids: Vec<u32> = (0..count).map(|i| (i * rows / count) as u32).collect();
    let store = MappedFeatures::new(features, Normalize::None)?;
    let mut starts = vec![0];
    let mut values: Vec<f32> = Vec::new();
    for ids in ids.chunks(AT_ONCE) {
        let before = values.len();
        match store.gather(ids)? {
            Rows::Dense(rows) => {
                starts.extend((1..=ids.len()).map(|i| before + i * width));
                values.extend(rows);
            }
            Rows::Sparse { indptr, values: rows, .. } => {
                starts.extend(indptr[1..].iter().map(|end| before + *end as usize));
                values.extend(rows);
            }
        }
        // Each row brought its page along, which would count as memory of a run with a budget.
        store.forget(0..rows);
    }
    let present = values.iter().filter(|value| **value != 0.0).count();
    let is_sparse = present as f64 <= SPARSE * (count * width) as f64;
    let is_negative = values.iter().any(|value| *value < 0.0);
    let row_sum = |ends: &[usize]| values[ends[0]..ends[1]].iter().map(|v| f64::from(*v)).sum();
    let mut sums: Vec<f64> = starts.windows(2).map(row_sum).collect();
    sums.retain(|sum| *sum > 0.0);
    if sums.len() < LEAST || !is_sparse || is_negative {
        return Ok(None);
    }
    sums.sort_by(f64::total_cmp);
    let ratio = sums[sums.len() * 9 / 10] / sums[sums.len() / 10];
    Ok((ratio >= UNEVEN).then_some(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sparse features of 100 nodes and 50 columns; `row` has the values of each.
    fn sparse(row: impl Fn(usize) -> Vec<f32>) -> Features {
        let mut indptr = vec![0u64];
        let (mut indices, mut values) = (Vec::<u32>::new(), Vec::<f32>::new());
        for node in 0..100 {
            let own = row(node);
            indices.extend(0..own.len() as u32);
            values.extend(own);
            indptr.push(values.len() as u64);
        }
        let indptr = indptr.into();
        let indices = indices.into();
        let values = values.into();
        Features::Csr { indptr, indices, values, width: 50 }
    }

    #[test]
    fn counts_in_rows_of_uneven_sums_are_found() {
        let ratio = uneven(sparse(|node| vec![1.0; 1 + node % 9])).unwrap();
        assert!(ratio.is_some_and(|ratio| ratio >= 4.0), "{ratio:?}");
    }

    #[test]
    fn rows_of_like_sums_are_left_in_peace() {
        assert_eq!(uneven(sparse(|_| vec![1.0])).unwrap(), None);
        assert_eq!(uneven(sparse(|node| vec![1.0; 5 + node % 3])).unwrap(), None);
    }

    #[test]
    fn negative_values_are_no_counts() {
        let row = |node: usize| vec![if node == 50 { -1.0 } else { 1.0 }; 1 + node % 9];
        assert_eq!(uneven(sparse(row)).unwrap(), None);
    }

    #[test]
    fn rows_with_many_values_are_no_bags_of_words() {
        assert_eq!(uneven(sparse(|node| vec![1.0 + node as f32; 40])).unwrap(), None);
    }

    #[test]
    fn few_rows_with_values_say_nothing() {
        let row = |node: usize| if node < 20 { vec![1.0; 1 + node % 9] } else { Vec::new() };
        assert_eq!(uneven(sparse(row)).unwrap(), None);
    }
}
