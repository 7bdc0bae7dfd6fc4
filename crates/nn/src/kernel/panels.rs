//! Sums over tables larger than the caches, panel by panel.
//!
//! Read list by list, nearly each row is a miss in the caches and in those of page tables. Here a task takes many lists
//! at once, whose sums stay in its cache, and adds of each list the rows of a panel of the table before those of the
//! next. Lists that ascend are read in their order all the same, so that sums are equal to the last bit.

use super::gather::{Offset, Own, ROWS, add_scaled};
use super::multiversion;
use super::table::Table;

/// Bytes of a panel.
const PANEL: usize = 32 << 20;
/// Most bytes of the sums of a task.
const SUMS: usize = 16 << 20;
/// Bytes of sums below which an entry takes no longer than a visit to its list.
const NARROW: usize = 256;
/// Lists that are looked at to know whether all ascend.
const PROBES: usize = 64;

/// How sums are made by panels.
pub(super) struct Plan {
    /// Lists of a task.
    pub rows: usize,
    /// Rows of the table in a panel.
    pub panel: usize,
}

/// The plan for `lists`, given by their offsets; none where the table is small, lists are short or do not ascend.
pub(super) fn plan(lists: &[impl Offset], indices: &[u32], table: &impl Table) -> Option<Plan> {
    let count = lists.len() - 1;
    let entries = lists[count].at() - lists[0].at();
    // A visit to a list takes part of the time of an entry, whether it has entries in the panel or not.
    let panels = (table.bytes() / PANEL).min(entries / (2 * count.max(1)));
    let is_narrow = table.cols() * size_of::<f32>() < NARROW;
    let mut probes = lists[..=count.min(PROBES)].windows(2);
    if panels <= 2 || is_narrow || !probes.all(|ends| ascends(ends, indices)) {
        return None;
    }
    let share = count.div_ceil(2 * rayon::current_num_threads());
    let rows = (SUMS / (table.cols() * size_of::<f32>())).min(share).max(ROWS);
    let panel = (table.bytes() / table.row_bytes()).div_ceil(panels);
    Some(Plan { rows, panel })
}

/// Whether a list ascends behind its first entry, which may be the node itself.
fn ascends(ends: &[impl Offset], indices: &[u32]) -> bool {
    indices[ends[0].at()..ends[1].at()].get(1..).is_none_or(<[u32]>::is_sorted)
}

multiversion! {
    /// [`super::gather::gather_chunk`] of adjacent rows, panel by panel.
    pub(super) fn panel_chunk(
        out: &mut [f32],
        first: usize,
        indptr: &[impl Offset],
        indices: &[u32],
        table: &impl Table,
        weight: &impl Fn(usize, usize) -> f32,
        own: Option<Own<'_>>,
        panel: usize,
    ) {
        let cols = table.cols();
        let mut scratch = table.scratch();
        // The entry of each list that comes next.
        let mut waiting = Vec::with_capacity(out.len() / cols);
        for (i, out) in out.chunks_exact_mut(cols).enumerate() {
            let list = first + i;
            let (mut entry, end) = (indptr[list].at(), indptr[list + 1].at());
            match own {
                Some((rows, count, weight)) if list < count => {
                    add_scaled(out, rows.get(list), weight(list), true);
                }
                _ if entry < end => {
                    let row = indices[entry] as usize;
                    table.add(out, row, weight(entry, list), true, &mut scratch);
                    entry += 1;
                }
                _ => out.fill(0.0),
            }
            waiting.push(entry);
        }
        let mut limit = panel;
        loop {
            let mut least = usize::MAX;
            for (i, out) in out.chunks_exact_mut(cols).enumerate() {
                let list = first + i;
                let (mut entry, end) = (waiting[i], indptr[list + 1].at());
                let run = entry;
                while entry < end {
                    let row = indices[entry] as usize;
                    if row >= limit {
                        least = least.min(row);
                        break;
                    }
                    entry += 1;
                }
                table.add_all(out, run..entry, indices, |entry| weight(entry, list), &mut scratch);
                waiting[i] = entry;
            }
            if least == usize::MAX {
                break;
            }
            limit = least + panel;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::gather::{Rows, gather_chunk};

    proptest! {
        #[test]
        fn panels_change_no_bit(
            lists in prop::collection::vec(prop::collection::vec(0u32..50, 0..12), 1..40),
            ascend in any::<bool>(),
            panel in 1usize..60,
            own_rows in 0usize..10,
        ) {
            let mut indptr = vec![0u32];
            let mut indices = Vec::new();
            for mut list in lists {
                if ascend {
                    list.sort_unstable();
                }
                indices.extend(list);
                indptr.push(indices.len() as u32);
            }
            let data: Vec<f32> = (0..50 * 5).map(|i| (i as f32 * 0.71).sin()).collect();
            let table = Rows { data: &data, stride: 5, cols: 3 };
            let weight = |entry: usize, list: usize| 0.3 + (entry * 7 + list) as f32 * 0.01;
            let own_weight = |list: usize| list as f32 - 0.4;
            let own = (own_rows > 0).then_some((table, own_rows, &own_weight as _));
            // Lists before those asked for.
            let first = (indptr.len() - 1) / 3;
            let mut plain = vec![f32::NAN; (indptr.len() - 1 - first) * 3];
            let mut panels = plain.clone();
            gather_chunk(&mut plain, 3, first, &indptr, &indices, &table, &weight, own);
            panel_chunk(&mut panels, first, &indptr, &indices, &table, &weight, own, panel);
            prop_assert_eq!(plain, panels);
        }
    }

    #[test]
    fn large_tables_of_long_ascending_lists_are_read_by_panels() {
        let data = vec![0.0; 64 * (PANEL / 64)];
        let table = Rows::new(&data, 64);
        let planned = |lists: usize, of: &[u32], table: &Rows<'_>| {
            let indptr: Vec<u32> = (0..=lists).map(|list| (list * of.len()) as u32).collect();
            plan(&indptr, &of.repeat(lists), table)
        };
        let ascending: Vec<u32> = (0..20).collect();
        let most = planned(1 << 16, &ascending, &table).unwrap();
        assert_eq!(most.panel, (PANEL / 64).div_ceil(4), "four panels");
        assert!(most.rows <= 1 << 16);
        assert!(planned(1 << 16, &ascending[..4], &table).is_none(), "short lists");
        assert!(planned(1 << 16, &[0, 9, 3, 4, 5, 6, 7, 8], &table).is_none());
        assert!(planned(1 << 16, &[9, 0, 1, 2, 3, 4, 5, 6], &table).is_some(), "itself first");
        assert!(planned(1 << 16, &ascending, &Rows::new(&data[..1 << 20], 64)).is_none());
        assert!(planned(1 << 16, &ascending, &Rows { cols: 8, ..table }).is_none(), "narrow");
    }
}
