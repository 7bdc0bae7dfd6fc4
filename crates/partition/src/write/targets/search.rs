//! Search for a number among ascending ones.

use std::cmp::Ordering;

/// Position of `wanted` among ascending values. A split's edges are spread over parts, so that interpolation is near
/// after few steps; a binary search does the rest.
pub(super) fn search(values: &[u32], wanted: u32) -> Option<usize> {
    /// Most interpolation steps: skewed values need more of them than a binary search has.
    const STEPS: usize = 6;
    let mut range = 0..values.len();
    for _ in 0..STEPS {
        let (&first, &last) = (values.get(range.start)?, values[..range.end].last()?);
        if range.is_empty() || wanted < first || wanted > last {
            return None;
        }
        let share = u64::from(wanted - first) * (range.len() as u64 - 1);
        let at = range.start + (share / u64::from(last - first).max(1)) as usize;
        match values[at].cmp(&wanted) {
            Ordering::Equal => return Some(at),
            Ordering::Less => range.start = at + 1,
            Ordering::Greater => range.end = at,
        }
    }
    let found = values.get(range.clone())?.binary_search(&wanted).ok()?;
    Some(range.start + found)
}
