//! Sorting of lists together with their edge columns.

use super::job::Id;

/// Lists sorted by one task before the work is split further.
pub(super) const SORT_GRAIN: usize = 4096;

/// Longest list whose keys are cached beside it.
pub(super) const LONG: usize = 1 << 16;

/// Edge columns of a list: as long as the sources, or empty.
pub(super) struct Beside {
    /// Row of each edge in the edge columns.
    pub rows: Vec<u64>,
    /// Bits of each edge's weight; only where there are rows.
    pub weights: Vec<u32>,
}

impl Beside {
    pub fn as_mut(&mut self) -> BesideMut<'_> {
        BesideMut { rows: &mut self.rows, weights: &mut self.weights }
    }
}

/// The edge columns of some of the lists.
pub(super) struct BesideMut<'a> {
    rows: &'a mut [u64],
    weights: &'a mut [u32],
}

impl<'a> BesideMut<'a> {
    fn split_at(self, edges: usize) -> (Self, Self) {
        let (left, right) = self.rows.split_at_mut(edges.min(self.rows.len()));
        let (light, heavy) = self.weights.split_at_mut(edges.min(self.weights.len()));
        (Self { rows: left, weights: light }, Self { rows: right, weights: heavy })
    }
}

/// Sorts the lists between `offsets` (of which the first is the origin of all slices) by source,
/// or its key in `order`, then by row.
pub(super) fn sort_lists<T: Id>(
    offsets: &[u64],
    sources: &mut [T],
    beside: BesideMut<'_>,
    order: Option<&[u64]>,
) {
    let lists = offsets.len() - 1;
    if lists > SORT_GRAIN {
        let middle = lists / 2;
        let cut = (offsets[middle] - offsets[0]) as usize;
        let (left, right) = sources.split_at_mut(cut);
        let (beside_left, beside_right) = beside.split_at(cut);
        rayon::join(
            || sort_lists(&offsets[..=middle], left, beside_left, order),
            || sort_lists(&offsets[middle..], right, beside_right, order),
        );
        return;
    }
    // Keys lie anywhere in memory: each is looked up once, not in every comparison.
    let key = |source: T| order.map_or(source.wide(), |keys| keys[source.wide() as usize]);
    let BesideMut { rows, weights } = beside;
    let mut keyed = Vec::new();
    for w in offsets.windows(2) {
        let list = (w[0] - offsets[0]) as usize..(w[1] - offsets[0]) as usize;
        if rows.is_empty() && order.is_none() {
            sources[list].sort_unstable();
            continue;
        }
        if rows.is_empty() && list.len() > LONG {
            // Ids ascend with their keys except at the step from a part's own nodes to its halo
            // nodes: two runs, which a stable sort merges.
            sources[list.clone()].sort_unstable();
            sources[list].sort_by_key(|&source| key(source));
            continue;
        }
        let carried =
            |i: usize| (rows.get(i).copied().unwrap_or(0), weights.get(i).copied().unwrap_or(0));
        keyed.clear();
        keyed.extend(list.clone().map(|i| (key(sources[i]), carried(i), sources[i])));
        keyed.sort_unstable_by_key(|&(key, (row, _), _)| (key, row));
        for (i, &(_, (row, weight), source)) in list.zip(&keyed) {
            sources[i] = source;
            if let Some(to) = rows.get_mut(i) {
                *to = row;
            }
            if let Some(to) = weights.get_mut(i) {
                *to = weight;
            }
        }
    }
}
