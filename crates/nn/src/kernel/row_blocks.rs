//! Sums over tables larger than the caches, row block by row block.
//!
//! Read list by list, nearly each row is a miss in the caches and in those of page tables. Here a task takes thousands of
//! lists at once, and adds of each list the rows of a block of the table before those of the next. Lists are read in their
//! order all the same, so that sums are equal to the last bit; lists that do not ascend only gain nothing.

use super::chunks::ROWS;
use super::multiversion;
use super::row_source::{Offset, Own, RowSource, add_scaled};

/// Bytes of a row block, where lists are long enough for so many blocks.
const BLOCK: usize = 32 << 20;
/// Most bytes of a row block: in larger ones, rows are not near each other.
const LARGEST: usize = 256 << 20;
/// Most bytes of the sums of a task.
const SUMS: usize = 8 << 20;
/// Bytes of sums below which an entry takes no longer than a visit to its list.
const NARROW: usize = 256;
/// Mean entries of a list from which on row blocks pay: shorter ones gain on graphs without locality and lose on others.
const LONG: usize = 64;
/// Tasks a thread: few, since the more lists a task has, the nearer are the rows it reads.
const TASKS: usize = 2;
/// Lists that are looked at to know how all are.
const PROBES: usize = 64;
/// Entries of a list that are looked at.
const PROBED: usize = 1024;

/// How sums are made by row blocks.
pub(super) struct Plan {
    /// Lists of each task, of about as many entries as those of any other.
    pub tasks: Vec<usize>,
    /// Rows of the table in a block.
    pub block: usize,
}

/// Returns true where row blocks pay: for rows that are not narrow, of more than two blocks, and `lists` that have many of
/// the `entries` each.
pub(crate) fn pay(bytes: usize, cols: usize, lists: usize, entries: usize) -> bool {
    let is_large = bytes / BLOCK > 2 && cols * size_of::<f32>() >= NARROW;
    is_large && lists > 0 && entries / lists >= LONG
}

/// The plan for `lists`, given by their offsets; none where the table is small, or the lists are short, do not ascend or
/// follow each other in the table.
pub(super) fn plan(lists: &[impl Offset], indices: &[u32], table: &impl RowSource) -> Option<Plan> {
    let count = lists.len() - 1;
    let entries = lists[count].at().saturating_sub(lists[0].at());
    if !pay(table.bytes(), table.cols(), count, entries) {
        return None;
    }
    // A visit to a list takes part of the time of an entry, whether it has entries in the block or not.
    let blocks = (table.bytes() / BLOCK).min(entries / (2 * count));
    let is_sparse = table.bytes() / blocks.max(1) > LARGEST;
    if is_sparse || !overlap_and_ascend(lists, indices) {
        return None;
    }
    let most = (SUMS / (table.cols() * size_of::<f32>())).max(ROWS);
    let share = entries.div_ceil(TASKS * rayon::current_num_threads());
    let block = (table.bytes() / table.row_bytes()).div_ceil(blocks).max(1);
    Some(Plan { tasks: tasks(lists, share, most), block })
}

/// Numbers of successive lists that have `share` entries, or are `most`.
fn tasks(lists: &[impl Offset], share: usize, most: usize) -> Vec<usize> {
    let count = lists.len() - 1;
    let mut tasks = Vec::new();
    let mut first = 0;
    while first < count {
        let end = lists[first].at() + share;
        let full = lists[first + 1..count].partition_point(|list| list.at() < end) + 1;
        let rows = full.max(ROWS).min(most).min(count - first);
        tasks.push(rows);
        first += rows;
    }
    tasks
}

/// Returns true if some of the lists ascend behind their first entry, which may be the node itself, and do not all lie one
/// behind the other.
fn overlap_and_ascend(lists: &[impl Offset], indices: &[u32]) -> bool {
    let count = lists.len() - 1;
    let probes = count.min(PROBES);
    let mut last = None;
    let mut overlap = false;
    for list in (0..probes).map(|probe| probe * count / probes) {
        let entries = lists[list].at()..lists[list + 1].at();
        let Some((_, rest)) = indices.get(entries).and_then(<[u32]>::split_first) else { continue };
        let rest = &rest[..rest.len().min(PROBED)];
        if !rest.is_sorted() {
            return false;
        }
        overlap |= last.zip(rest.first()).is_some_and(|(last, first)| first < last);
        last = rest.last().or(last);
    }
    overlap
}

multiversion! {
    /// [`super::gather::gather_chunk`] of adjacent rows, row block by row block.
    pub(super) fn row_block_chunk(
        out: &mut [f32],
        first: usize,
        indptr: &[impl Offset],
        indices: &[u32],
        table: &impl RowSource,
        weight: &impl Fn(usize, usize) -> f32,
        own: Option<Own<'_>>,
        block: usize,
    ) {
        let cols = table.cols();
        let mut scratch = table.scratch();
        // The entry of each list that comes next, and the first row of all that come.
        let mut waiting = Vec::with_capacity(out.len() / cols);
        let mut least = usize::MAX;
        for (i, out) in out.chunks_exact_mut(cols).enumerate() {
            let list = first + i;
            let mut entry = indptr[list].at();
            let end = indptr[list + 1].at();
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
            if entry < end {
                least = least.min(indices[entry] as usize);
            }
            waiting.push(entry);
        }
        while least < usize::MAX {
            let limit = least + block;
            least = usize::MAX;
            for (i, out) in out.chunks_exact_mut(cols).enumerate() {
                let list = first + i;
                let begin = waiting[i];
                let end = indptr[list + 1].at();
                let mut entry = begin;
                while entry < end {
                    let row = indices[entry] as usize;
                    if row >= limit {
                        least = least.min(row);
                        break;
                    }
                    entry += 1;
                }
                if begin < entry {
                    let weight = |entry| weight(entry, list);
                    table.add_all(out, begin..entry, indices, weight, &mut scratch);
                    waiting[i] = entry;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::gather::{gather_chunk, gather_rows};
    use crate::kernel::row_source::Rows;
    use crate::kernel::widen::Widened;

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        #[test]
        fn row_blocks_change_no_bit(
            lists in prop::collection::vec(prop::collection::vec(0u32..50, 0..90), 1..40),
            ascend in any::<bool>(),
            cols in prop::sample::select(vec![3, 64, 70, 130]),
            block in 1usize..60,
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
            let data: Vec<f32> = (0..50 * 131).map(|i| (i as f32 * 0.71).sin()).collect();
            let half: Vec<f16> = data.iter().map(|&value| f16::from_f32(value)).collect();
            let table = Rows { data: &data, stride: 131, cols };
            let widened = Widened { data: &half[..50 * cols], cols };
            let weight = |entry: usize, list: usize| 0.3 + (entry * 7 + list) as f32 * 0.01;
            let own_weight = |list: usize| list as f32 - 0.4;
            let own = (own_rows > 0).then_some((table, own_rows, &own_weight as _));
            // Lists before those asked for.
            let first = (indptr.len() - 1) / 3;
            let mut plain = vec![f32::NAN; (indptr.len() - 1 - first) * cols];
            let mut blocks = plain.clone();
            gather_chunk(&mut plain, cols, first, &indptr, &indices, &table, &weight, own);
            row_block_chunk(&mut blocks, first, &indptr, &indices, &table, &weight, own, block);
            prop_assert_eq!(bits(&plain), bits(&blocks));
            gather_chunk(&mut plain, cols, first, &indptr, &indices, &widened, &weight, own);
            row_block_chunk(&mut blocks, first, &indptr, &indices, &widened, &weight, own, block);
            prop_assert_eq!(bits(&plain), bits(&blocks));
        }
    }

    #[test]
    fn large_tables_of_long_ascending_lists_are_read_by_row_blocks() {
        let rows = BLOCK / 64;
        let data = vec![0.0; 64 * rows];
        let table = Rows::new(&data, 64);
        let planned = |lists: usize, of: &[u32], table: &Rows<'_>| {
            let indptr: Vec<u32> = (0..=lists).map(|list| (list * of.len()) as u32).collect();
            plan(&indptr, &of.repeat(lists), table)
        };
        let ascending: Vec<u32> = (0..80).collect();
        let most = planned(1 << 10, &ascending, &table).unwrap();
        assert_eq!(most.block, rows.div_ceil(4), "four blocks");
        assert_eq!(most.tasks.iter().sum::<usize>(), 1 << 10);
        assert!(planned(1 << 10, &ascending[..60], &table).is_none(), "short lists");
        let first = |row: u32| [&[row][..], &ascending].concat();
        assert!(planned(1 << 10, &[&[0, 9][..], &ascending].concat(), &table).is_none());
        assert!(planned(1 << 10, &first(90), &table).is_some(), "itself first");
        assert!(planned(1 << 10, &ascending, &Rows::new(&data[..1 << 20], 64)).is_none());
        assert!(planned(1 << 10, &ascending, &Rows { cols: 8, ..table }).is_none(), "narrow");
        let behind: Vec<u32> = (0..4000).collect();
        let indptr: Vec<u32> = (0..=50).map(|list| list * 80).collect();
        assert!(plan(&indptr, &behind, &table).is_none(), "lists one behind the other");
    }

    #[test]
    fn tasks_have_equal_shares_of_entries() {
        // A hub of 10,000 entries behind 1,000 lists of 10, and 1,000 such lists behind it.
        let length = |list: u32| if list == 1000 { 10_000 } else { 10 };
        let offsets = (0..2001).scan(0, |sum, list| {
            *sum += length(list);
            Some(*sum)
        });
        let lists: Vec<u32> = [0].into_iter().chain(offsets).collect();
        assert_eq!(tasks(&lists, 7_500, usize::MAX), [750, 256, 750, 245]);
        assert_eq!(tasks(&lists, 30_000, usize::MAX), [2001]);
        assert_eq!(tasks(&lists, 30_000, 900), [900, 900, 201]);
        assert_eq!(tasks(&lists, 1, usize::MAX).len(), 8, "no fewer lists than a chunk has");
        assert!(tasks(&[0u32], 1, usize::MAX).is_empty());
    }

    #[test]
    fn a_large_table_has_the_same_sums_for_any_number_of_threads() {
        let rows = 3 * BLOCK / 256;
        let data: Vec<f32> = (0..64 * rows).map(|i| (i % 1009) as f32 * 0.37 - 180.0).collect();
        let table = Rows::new(&data, 64);
        let row =
            |list: usize, entry: usize| (entry * (rows / 72) + list * 7919 % (rows / 72)) as u32;
        let indices: Vec<u32> = (0..1200 * 72).map(|i| row(i / 72, i % 72)).collect();
        let indptr: Vec<u32> = (0..=1200).map(|list| list * 72).collect();
        assert!(plan(&indptr, &indices, &table).is_some());
        let weight = |entry: usize, _: usize| 1.0 / (entry + 1) as f32;
        let sums = |threads: usize| {
            let mut out = vec![f32::NAN; 1200 * 64];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gather_rows(&mut out, 0, (&indptr, &indices), table, weight, None));
            bits(&out)
        };
        let mut plain = vec![f32::NAN; 1200 * 64];
        gather_chunk(&mut plain, 64, 0, &indptr, &indices, &table, &weight, None);
        assert_eq!(sums(1), bits(&plain));
        assert_eq!(sums(3), bits(&plain));
    }
}
