//! Cache capacity: the number of rows that fit in a byte budget.

/// Slots are 32 bits wide, and policies track more keys than they keep.
const MAX_ROWS: u64 = 1 << 31;

/// The largest number of rows of `width` values that fits in `bytes` together with `notes`, the
/// bookkeeping bytes of a policy for a number of rows.
pub(super) fn capacity(bytes: u64, width: usize, notes: fn(u64) -> u64) -> usize {
    let row = (width * size_of::<f32>()) as u64;
    let (mut low, mut high) = (0, MAX_ROWS.min(bytes / row.max(1)));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if middle * row + notes(middle) <= bytes {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low as usize
}

/// Bytes of a hash table with room for `entries` of `entry` bytes: a power of two of buckets, at
/// most seven in eight taken, and a control byte per bucket.
pub(super) fn table_bytes(entries: u64, entry: usize) -> u64 {
    let buckets = (entries * 8).div_ceil(7).next_power_of_two().max(16);
    buckets * (entry as u64 + 1) + 16
}

/// Number of entries to reserve in a table that keeps `rows` entries under steady replacement.
///
/// Removed entries leave tombstones. A table that is at most half full clears them in place; a
/// fuller one grows instead.
pub(super) const fn churning(rows: u64) -> u64 {
    2 * rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashbrown::HashMap;

    #[test]
    fn tables_take_no_more_than_reckoned() {
        for rows in [1u64, 5, 14, 15, 100, 447, 448, 449, 5000] {
            let room = churning(rows) as usize;
            let mut table = HashMap::<u64, u32>::with_capacity(room);
            for key in 0..20 * rows {
                table.remove(&key.wrapping_sub(rows));
                table.insert(key, 0);
            }
            let reckoned = table_bytes(room as u64, size_of::<(u64, u32)>());
            assert!(table.allocation_size() as u64 <= reckoned, "{rows} rows");
        }
    }

    #[test]
    fn the_budget_is_used_and_kept() {
        let notes = |rows| table_bytes(rows, 16);
        for (bytes, width) in [(0, 4), (100, 4), (1000, 4), (1 << 20, 100), (1 << 20, 0)] {
            let rows = capacity(bytes, width, notes) as u64;
            let cost = |rows: u64| rows * 4 * width as u64 + notes(rows);
            assert!(rows == 0 || cost(rows) <= bytes);
            assert!(cost(rows + 1) > bytes);
        }
    }
}
