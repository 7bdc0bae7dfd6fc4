//! Large pieces of memory that are used again.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::{Error, Kind, Result};

/// A large page of most systems.
const LARGE: usize = 2 << 20;
/// A page, and the step of sizes of small pieces.
const SMALL: usize = 4 << 10;
/// Below so many bytes a piece is of the heap: systems bound the number of mappings, and those are of whole pages.
const LEAST: usize = 64 << 10;

/// Looks for the pieces before one does without them.
const TRIES: usize = 10_000;

/// The size of a piece for `len` bytes: in steps of an eighth at most, so that pieces of nearly one size take each other's place.
fn size_of_piece(len: usize) -> usize {
    let step = (len.max(1).next_power_of_two() / 16).clamp(SMALL, LARGE);
    len.max(1).next_multiple_of(step)
}

/// A piece of memory. A large one goes back to the [`SparePages`] it was taken from when it is dropped.
#[derive(Debug)]
pub struct Pages {
    memory: Memory,
    len: usize,
    home: Weak<SparePages>,
}

#[derive(Debug)]
enum Memory {
    /// None only while it is dropped.
    Mapped(Option<MmapMut>),
    Heap(Vec<u64>),
}

/// Pieces that are not in use.
///
/// The system zeroes each page that it hands out: for those who read gigabytes into memory, piece after piece, that is as
/// much work as to copy them. Pieces in use and others are never more bytes together than were in use at a time.
#[derive(Debug, Default)]
pub struct SparePages(Mutex<Pieces>);

#[derive(Debug, Default)]
struct Pieces {
    spare: Vec<MmapMut>,
    /// Bytes of those.
    unused: usize,
    /// Bytes of the pieces in use, and the most that were.
    used: usize,
    most: usize,
}

impl Pieces {
    /// A spare piece of `size` bytes or up to a quarter more.
    fn find(&mut self, size: usize) -> Option<MmapMut> {
        let fits = |(_, map): &(usize, &MmapMut)| (size..=size + size / 4).contains(&map.len());
        let best = self.spare.iter().enumerate().filter(fits).min_by_key(|(_, map)| map.len());
        let map = self.spare.swap_remove(best?.0);
        self.unused -= map.len();
        self.used += map.len();
        Some(map)
    }

    /// The pieces that leave for a new one of `size` bytes: those of the nearest sizes, which it replaces.
    fn leaving(&mut self, size: usize) -> Vec<MmapMut> {
        self.used += size;
        self.most = self.most.max(self.used);
        let mut leaving = Vec::new();
        while self.used + self.unused > self.most {
            let nearest =
                (0..self.spare.len()).min_by_key(|&at| self.spare[at].len().abs_diff(size));
            let Some(nearest) = nearest else { break };
            let map = self.spare.swap_remove(nearest);
            self.unused -= map.len();
            leaving.push(map);
        }
        leaving
    }
}

impl SparePages {
    /// The pieces; none if somebody holds them without end: a thread that is missing in a process that was forked off.
    fn lock(&self) -> Option<MutexGuard<'_, Pieces>> {
        let look = || match self.0.try_lock() {
            Ok(pieces) => Some(pieces),
            Err(TryLockError::Poisoned(pieces)) => Some(pieces.into_inner()),
            Err(TryLockError::WouldBlock) => {
                std::thread::yield_now();
                None
            }
        };
        std::iter::repeat_with(look).take(TRIES).find_map(|found| found)
    }

    /// `len` bytes of any values, in large pages where the system has them.
    ///
    /// # Errors
    /// If the system has no memory left.
    pub fn take(self: &Arc<Self>, len: usize) -> io::Result<Pages> {
        if len < LEAST {
            let memory = Memory::Heap(vec![0; len.div_ceil(size_of::<u64>())]);
            return Ok(Pages { memory, len, home: Weak::new() });
        }
        let size = size_of_piece(len);
        let found = self.lock().and_then(|mut pieces| pieces.find(size));
        let map = match found {
            Some(map) => map,
            None => {
                let leaving = self.lock().map(|mut pieces| pieces.leaving(size));
                // The system takes its time for pieces of gigabytes.
                drop(leaving);
                let map = MmapMut::map_anon(size).inspect_err(|_| {
                    if let Some(mut pieces) = self.lock() {
                        pieces.used = pieces.used.saturating_sub(size);
                    }
                })?;
                // Rows are read at random afterwards: larger pages are fewer to look up. A failure changes nothing.
                #[cfg(target_os = "linux")]
                if size >= LARGE {
                    drop(map.advise(memmap2::Advice::HugePage));
                }
                map
            }
        };
        Ok(Pages { memory: Memory::Mapped(Some(map)), len, home: Arc::downgrade(self) })
    }

    /// A table of `len` values of 8 bytes at most, any ones.
    ///
    /// # Errors
    /// As [`Self::take`], as [`Kind::Limit`].
    pub fn table<T: Pod>(self: &Arc<Self>, len: usize) -> Result<Table<T>> {
        let bytes = len * size_of::<T>();
        let no_room = |e| Error::new(Kind::Limit, format!("{bytes} bytes of memory: {e}"));
        Ok(Table { pages: self.take(bytes).map_err(no_room)?, of: PhantomData })
    }
}

/// Values in pages.
#[derive(Debug)]
pub struct Table<T> {
    pages: Pages,
    of: PhantomData<T>,
}

impl<T: Pod> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.pages)
    }
}

impl<T: Pod> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.pages)
    }
}

impl<T> Table<T> {
    /// The pages of the values.
    pub fn into_pages(self) -> Pages {
        self.pages
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Mapped(map) => map.as_ref().map_or(&[], |map| &map[..self.len]),
            Memory::Heap(values) => &bytemuck::cast_slice(values)[..self.len],
        }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Mapped(map) => map.as_mut().map_or(&mut [], |map| &mut map[..self.len]),
            Memory::Heap(values) => &mut bytemuck::cast_slice_mut(values)[..self.len],
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Memory::Mapped(map) = &mut self.memory
            && let Some((home, map)) = self.home.upgrade().zip(map.take())
            && let Some(mut pieces) = home.lock()
        {
            pieces.used = pieces.used.saturating_sub(map.len());
            pieces.unused += map.len();
            pieces.spare.push(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_size_are_used_again() {
        let spare = Arc::new(SparePages::default());
        let mut pages = spare.take(LEAST + 5).unwrap();
        assert_eq!(pages.len(), LEAST + 5);
        pages[LEAST] = 7;
        let at = pages.as_ptr();
        let other = spare.take(LEAST).unwrap();
        assert_ne!(other.as_ptr(), at);
        drop(pages);
        let again = spare.take(LEAST + 1).unwrap();
        assert_eq!((again.as_ptr(), again.len(), again[LEAST]), (at, LEAST + 1, 7));
        drop((again, other));
        assert_eq!(spare.lock().unwrap().spare.len(), 2);
        // Little ones are not kept.
        let little = spare.take(1000).unwrap();
        assert_eq!(little[..], [0; 1000]);
        drop(little);
        assert_eq!(spare.lock().unwrap().spare.len(), 2);
    }

    #[test]
    fn no_more_bytes_stay_than_were_in_use_together() {
        let spare = Arc::new(SparePages::default());
        let take = |megabytes: usize| spare.take(megabytes << 20).unwrap();
        let held = [100, 10, 10].map(take);
        drop(held);
        // The nearest sizes leave, the large one stays.
        let held = [take(16), take(100)];
        assert_eq!(spare.lock().unwrap().spare.len(), 0);
        drop(held);
        let small: Vec<Pages> = (0..12).map(|_| take(10)).collect();
        let pieces = spare.lock().unwrap();
        assert!(pieces.used + pieces.unused <= 120 << 20 && pieces.spare.is_empty());
        drop(pieces);
        drop(spare);
        // Their home is gone.
        drop(small);
    }

    #[test]
    fn little_is_left_over() {
        for len in [0, 1, 4096, 100_000, 5 << 20, (1 << 30) + 1] {
            let size = size_of_piece(len);
            assert!(size >= len && size <= len + len / 8 + SMALL, "{size} for {len}");
        }
        assert_eq!(size_of_piece(64_000_000), size_of_piece(63_000_000));
    }
}
