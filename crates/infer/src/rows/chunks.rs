//! Rows in chunks of a file, some of which a cache keeps in memory.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;
use gnarl_store::cache::Policy;
use rayon::prelude::*;

use super::cache::{Cache, ChunkReads};
use super::file::{Ended, failed};

/// Rows copied per task.
const TASK_ROWS: usize = 256;
/// The number of no read.
const NOWHERE: u32 = u32::MAX;

/// Rows of one width, in chunks.
pub(super) struct Rows {
    file: Ended,
    chunk_rows: usize,
    state: Mutex<State>,
}

struct State {
    policy: Box<dyn Policy>,
    /// The chunk of each slot.
    slots: Vec<Vec<f32>>,
    reads: ChunkReads,
    /// True if the next gather reads the last chunk first.
    backwards: bool,
}

/// A chunk and what a gather reads of it: indices of places.
struct Read<'p> {
    chunk: usize,
    entries: &'p [u32],
    /// Its slot, and whether the chunk is in it.
    slot: Option<(usize, bool)>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Rows {
    /// The rows of `file`, behind `cache`.
    pub fn new(file: Ended, cache: &Cache) -> Self {
        let chunk_rows = cache.chunk_rows.get();
        let rows = file.values / file.width.max(1);
        let bytes = 4 * (chunk_rows * file.width) as u64;
        let slots = cache.slots(rows.div_ceil(chunk_rows), bytes);
        let policy = cache.policy.slots(slots);
        let slots = vec![Vec::new(); policy.slots()];
        let state = State { policy, slots, reads: ChunkReads::default(), backwards: false };
        Self { file, chunk_rows, state: Mutex::new(state) }
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.file.width
    }

    /// The chunks read so far.
    pub fn reads(&self) -> ChunkReads {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).reads
    }

    /// Some columns of the rows at `places`. Each of their chunks is read once.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn gather(&self, places: &[usize], columns: Range<usize>) -> Result<Tensor> {
        let mut out = vec![0.0; places.len() * columns.len()];
        let mut sorted: Vec<u32> = (0..places.len() as u32).collect();
        sorted.par_sort_unstable_by_key(|&entry| places[entry as usize]);
        let chunk_of = |entry: u32| places[entry as usize] / self.chunk_rows;
        // Held while threads of the pool read and copy: none of them gathers rows itself.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let mut used = vec![false; state.slots.len()];
        let mut batch = Vec::new();
        let mut chunks: Vec<&[u32]> =
            sorted.chunk_by(|&a, &b| chunk_of(a) == chunk_of(b)).collect();
        // Ranges read about the same chunks: the next one begins with those that the last one left in the cache.
        if state.backwards {
            chunks.reverse();
        }
        state.backwards = !state.backwards;
        for entries in chunks {
            let chunk = chunk_of(entries[0]);
            let slot = match state.policy.get(chunk as u64) {
                Some(slot) => {
                    state.reads.hits += 1;
                    Some((slot as usize, true))
                }
                None => {
                    state.reads.misses += 1;
                    state.policy.insert(chunk as u64).map(|slot| (slot as usize, false))
                }
            };
            // A chunk that is about to be replaced is copied first.
            if let Some((slot, _)) = slot {
                if used[slot] {
                    self.copy(&mut state.slots, &batch, (places, &columns), &mut out)?;
                    batch.clear();
                    used.fill(false);
                }
                used[slot] = true;
            }
            batch.push(Read { chunk, entries, slot });
        }
        self.copy(&mut state.slots, &batch, (places, &columns), &mut out)?;
        Ok(Tensor::from_vec(places.len(), columns.len(), out))
    }

    /// Reads the chunks that are in no slot, and copies rows of all of them, in parallel.
    fn copy(
        &self,
        slots: &mut [Vec<f32>],
        batch: &[Read<'_>],
        (places, columns): (&[usize], &Range<usize>),
        out: &mut [f32],
    ) -> Result<()> {
        // Each slot belongs to one read of a batch, and is lent to it.
        let lent = batch.iter().map(|read| {
            read.slot.map_or_else(Vec::new, |(slot, _)| std::mem::take(&mut slots[slot]))
        });
        let mut chunks: Vec<Vec<f32>> = lent.collect();
        let missing = batch.par_iter().zip(&mut chunks);
        let missing = missing.filter(|(read, _)| !matches!(read.slot, Some((_, true))));
        missing.try_for_each(|(read, values)| self.read(read.chunk, values))?;
        let mut from = vec![NOWHERE; places.len()];
        for (number, read) in batch.iter().enumerate() {
            read.entries.iter().for_each(|&entry| from[entry as usize] = number as u32);
        }
        let (width, wide) = (self.file.width, columns.len().max(1));
        let rows = out.par_chunks_exact_mut(wide).zip(&from).zip(places);
        let rows = rows.with_min_len(TASK_ROWS).filter(|((_, from), _)| **from != NOWHERE);
        rows.try_for_each(|((out, &from), place)| {
            let (read, values) = (&batch[from as usize], &chunks[from as usize]);
            let first = (place - read.chunk * self.chunk_rows) * width;
            let row = values.get(first + columns.start..first + columns.end);
            let row = row.ok_or_else(|| Error::invalid("a chunk of rows is too short"))?;
            out.copy_from_slice(row);
            Ok(())
        })?;
        for (read, values) in batch.iter().zip(chunks) {
            if let Some((slot, _)) = read.slot {
                slots[slot] = values;
            }
        }
        Ok(())
    }

    /// Reads a chunk.
    fn read(&self, chunk: usize, values: &mut Vec<f32>) -> Result<()> {
        let first = chunk * self.chunk_rows * self.file.width;
        let count = (self.chunk_rows * self.file.width).min(self.file.values - first);
        values.resize(count, 0.0);
        let bytes = bytemuck::cast_slice_mut(values);
        let read = self.file.file.read_exact_at(bytes, 4 * first as u64);
        read.map_err(|e| failed(&self.file.place, e))
    }
}
