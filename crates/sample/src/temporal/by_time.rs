//! In-neighbor lists in the order of time.

use std::sync::Arc;

use gnarl_common::Result;
use rayon::prelude::*;

use crate::view::View;

/// Every list in the order of time: positions, four bytes an edge, where lists themselves ascend by dataset id, and times,
/// four bytes an edge, or eight if they span more than 32 bits. The edges permitted at a time are then found by binary search
/// in consecutive memory. Edges of equal time keep the order of the list. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ByTime(Arc<Ordered>);

#[derive(Debug)]
struct Ordered {
    positions: Vec<u32>,
    times: Times,
}

/// Times in the order of `positions`.
#[derive(Debug)]
enum Times {
    /// Those since the earliest of all.
    Since(i64, Vec<u32>),
    Wide(Vec<i64>),
}

/// The edges of a list that are there at a time, the earliest first.
#[derive(Clone, Copy)]
pub struct Permitted<'a> {
    len: usize,
    /// None if times are not known: all edges of the list are always there.
    of: Option<(&'a Ordered, usize)>,
}

/// Nodes sorted at a time by one thread.
const NODES: u32 = 4096;

impl ByTime {
    /// Sorts every list, on all threads.
    ///
    /// # Errors
    /// If edges have no times, or a list is not inside the graph.
    pub fn new(view: View<'_>) -> Result<Self> {
        view.needs_times()?;
        let (first, last) = span(view)?;
        let ordered = match u32::try_from(i128::from(last) - i128::from(first)) {
            Ok(_) => {
                let (positions, times) = sorted(view, |time| (time - first) as u32)?;
                Ordered { positions, times: Times::Since(first, times) }
            }
            Err(_) => {
                let (positions, times) = sorted(view, |time| time)?;
                Ordered { positions, times: Times::Wide(times) }
            }
        };
        Ok(Self(Arc::new(ordered)))
    }

    /// The edges of a list no later than `time`.
    pub fn until(&self, (start, degree): (usize, u32), time: i64) -> Permitted<'_> {
        let range = start..start + degree as usize;
        let len = match &self.0.times {
            Times::Wide(times) => times[range].partition_point(|&other| other <= time),
            Times::Since(first, times) => match i128::from(time) - i128::from(*first) {
                since if since < 0 => 0,
                since => times[range].partition_point(|&other| i128::from(other) <= since),
            },
        };
        Permitted { len, of: Some((&self.0, start)) }
    }
}

impl Permitted<'_> {
    /// All edges of a list of which no times are known.
    pub fn all(degree: u32) -> Self {
        Self { len: degree as usize, of: None }
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of edges before `time`.
    pub fn before(&self, time: i64) -> usize {
        self.count(|other| other < time)
    }

    /// Number of edges no later than `time`.
    pub fn up_to(&self, time: i64) -> usize {
        self.count(|other| other <= time)
    }

    /// Number of the first edges whose times are `early`.
    fn count(&self, early: impl Fn(i64) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if early(self.time(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The position in the list of the `i`-th edge.
    pub fn position(&self, i: usize) -> usize {
        self.of.map_or(i, |(ordered, start)| ordered.positions[start + i] as usize)
    }

    /// The time of the `i`-th edge; the earliest of all times if it is not known.
    pub fn time(&self, i: usize) -> i64 {
        match self.of {
            None => i64::MIN,
            Some((Ordered { times: Times::Wide(times), .. }, start)) => times[start + i],
            Some((Ordered { times: Times::Since(first, times), .. }, start)) => {
                first.wrapping_add(times[start + i].into())
            }
        }
    }
}

/// The earliest and the latest time of all edges.
fn span(view: View<'_>) -> Result<(i64, i64)> {
    let nodes = view.num_nodes() as u32;
    let of_some = |first: u32| {
        let mut span = (i64::MAX, i64::MIN);
        for node in first..(first + NODES).min(nodes) {
            let (start, degree) = view.list(node)?;
            for edge in start..start + degree as usize {
                // Times of sources are read by their ids.
                view.source(edge)?;
                let time = view.time(edge);
                span = (span.0.min(time), span.1.max(time));
            }
        }
        Ok(span)
    };
    let starts = (0..nodes).into_par_iter().step_by(NODES as usize);
    let span = starts.map(of_some).try_reduce(
        || (i64::MAX, i64::MIN),
        |a: (i64, i64), b: (i64, i64)| Ok((a.0.min(b.0), a.1.max(b.1))),
    )?;
    Ok(if span.0 > span.1 { (0, 0) } else { span })
}

/// Positions and times of all lists in the order of time; `store` makes what is kept of a time.
fn sorted<T: Copy + Default + Send>(
    view: View<'_>,
    store: impl Fn(i64) -> T + Sync,
) -> Result<(Vec<u32>, Vec<T>)> {
    let mut positions = vec![0u32; view.indices.len()];
    let mut times = vec![T::default(); view.indices.len()];
    let mut ranges = Vec::new();
    let (mut rest, nodes) = ((&mut positions[..], &mut times[..]), view.num_nodes() as u32);
    for first in (0..nodes).step_by(NODES as usize) {
        let last = (first + NODES).min(nodes);
        let mut count = 0;
        for node in first..last {
            count += view.list(node)?.1 as usize;
        }
        let (own, later) = rest.0.split_at_mut(count);
        let (own_times, later_times) = rest.1.split_at_mut(count);
        ranges.push((first..last, own, own_times));
        rest = (later, later_times);
    }
    ranges.into_par_iter().try_for_each(|(nodes, mut positions, mut times)| -> Result<()> {
        let mut pairs = Vec::new();
        for node in nodes {
            let (start, degree) = view.list(node)?;
            pairs.clear();
            pairs.extend((0..degree).map(|at| (view.time(start + at as usize), at)));
            if !pairs.is_sorted() {
                pairs.sort_unstable();
            }
            let (own, later) = positions.split_at_mut(degree as usize);
            let (own_times, later_times) = times.split_at_mut(degree as usize);
            for (i, &(time, position)) in pairs.iter().enumerate() {
                own[i] = position;
                own_times[i] = store(time);
            }
            (positions, times) = (later, later_times);
        }
        Ok(())
    })?;
    Ok((positions, times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleGraph;
    use gnarl_graph::Csc;

    #[test]
    fn permitted_edges_are_those_up_to_a_time_however_far_apart() {
        for spread in [1, 1 << 20, 1 << 40] {
            let edges: Vec<(u32, u32)> = (0..6).map(|source| (source, 6)).collect();
            let times = [4i64, -2, 7, -2, 0, 9].map(|time| time * spread);
            let graph = SampleGraph::new(Csc::from_edges(7, &edges)).unwrap();
            let graph = graph.with_times(times.to_vec().into()).unwrap();
            let order = ByTime::new(graph.view()).unwrap();
            let list = graph.view().list(6).unwrap();
            let until = |time: i64| -> Vec<(usize, i64)> {
                let permitted = order.until(list, time);
                (0..permitted.len()).map(|i| (permitted.position(i), permitted.time(i))).collect()
            };
            assert_eq!(until(i64::MIN), []);
            assert_eq!(until(-2 * spread - 1), []);
            assert_eq!(until(-2 * spread), [(1, -2 * spread), (3, -2 * spread)]);
            assert_eq!(until(4 * spread)[2..], [(4, 0), (0, 4 * spread)]);
            assert_eq!(until(i64::MAX).len(), 6);
        }
    }
}
