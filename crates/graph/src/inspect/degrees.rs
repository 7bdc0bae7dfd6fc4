//! Degree statistics from offsets.

use serde::Serialize;

use crate::narrow::NarrowSlice;

/// Degrees of the nodes of one edge type.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Degrees {
    /// Edges over nodes.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
    /// Number of nodes of degree 0, 1, 2–3, 4–7, 8–15 and so on to the largest.
    pub histogram: Vec<u64>,
}

/// Degrees below this are counted one by one, those above are listed.
const COUNTED: usize = 1 << 16;

impl Degrees {
    /// The statistics of the degrees between `offsets`; all zero without nodes.
    pub fn of(offsets: NarrowSlice<'_>) -> Self {
        let nodes = offsets.len().saturating_sub(1);
        if nodes == 0 {
            return Self::default();
        }
        let mut counts = vec![0u64; COUNTED];
        let mut large = Vec::new();
        let mut histogram = Vec::new();
        for v in 0..nodes {
            let degree = offsets.get(v + 1).saturating_sub(offsets.get(v));
            match counts.get_mut(degree as usize) {
                Some(count) => *count += 1,
                None => large.push(degree),
            }
            let bin = (u64::BITS - degree.leading_zeros()) as usize;
            histogram.resize(histogram.len().max(bin + 1), 0);
            histogram[bin] += 1;
        }
        large.sort_unstable();
        let quantile = |share: f64| {
            let mut left = ((share * nodes as f64).ceil() as u64).max(1);
            for (degree, &count) in counts.iter().enumerate() {
                if left <= count {
                    return degree as u64;
                }
                left -= count;
            }
            large[left as usize - 1]
        };
        Self {
            mean: offsets.get(nodes).saturating_sub(offsets.get(0)) as f64 / nodes as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: quantile(1.0),
            histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_degrees() {
        let degrees: Vec<u64> = (0..1000).map(|i| (i * i) % 777 + (i / 990) * 100_000).collect();
        let mut offsets = vec![0];
        for d in &degrees {
            offsets.push(offsets[offsets.len() - 1] + d);
        }
        let mut sorted = degrees.clone();
        sorted.sort_unstable();
        let found = Degrees::of(NarrowSlice::U64(&offsets));
        let expected = [sorted[499], sorted[899], sorted[989], sorted[999]];
        assert_eq!([found.p50, found.p90, found.p99, found.max], expected);
        assert_eq!(found.histogram.iter().sum::<u64>(), 1000);
        assert_eq!(found.histogram[0], sorted.iter().filter(|&&d| d == 0).count() as u64);
        assert_eq!(found.mean, degrees.iter().sum::<u64>() as f64 / 1000.0);
    }

    #[test]
    fn no_nodes_have_no_degrees() {
        assert_eq!(Degrees::of(NarrowSlice::U32(&[])), Degrees::default());
        assert_eq!(Degrees::of(NarrowSlice::U32(&[0])), Degrees::default());
    }

    #[test]
    fn damaged_offsets_are_no_panic() {
        let found = Degrees::of(NarrowSlice::U32(&[9, 3, 3, 5, 1]));
        assert_eq!((found.mean, found.max), (0.0, 2));
    }
}
