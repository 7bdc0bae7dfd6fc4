//! Large pieces of memory that are used again.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::{Buf, Error, Kind, Result};

/// A large page of most systems.
const LARGE: usize = 2 << 20;
/// A page.
const SMALL: usize = 4 << 10;

/// The size of a piece for `len` bytes: in steps of an eighth at most, so that pieces of nearly one size take each other's place.
fn size_of_piece(len: usize) -> usize {
    let step = (len.max(1).next_power_of_two() / 16).clamp(SMALL, LARGE);
    len.max(1).next_multiple_of(step)
}

/// A piece of memory by pages. It goes back to the [`SparePages`] it was taken from when it is dropped.
#[derive(Debug)]
pub struct Pages {
    /// None only while it is dropped.
    map: Option<MmapMut>,
    len: usize,
    home: Weak<SparePages>,
}

/// Pieces that are not in use.
///
/// The system zeroes each page that it hands out: for those who read gigabytes into memory, piece after piece, that is as
/// much work as to copy them. As many bytes stay as were in use together.
#[derive(Debug, Default)]
pub struct SparePages(Mutex<Vec<MmapMut>>);

impl SparePages {
    /// `len` bytes of any values, in large pages where the system has them.
    ///
    /// # Errors
    /// If the system has no memory left.
    pub fn take(self: &Arc<Self>, len: usize) -> io::Result<Pages> {
        let size = size_of_piece(len);
        let found = {
            let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |(_, map): &(usize, &MmapMut)| (size..=size + size / 4).contains(&map.len());
            let best = spare.iter().enumerate().filter(fits).min_by_key(|(_, map)| map.len());
            match best.map(|(at, _)| at) {
                Some(at) => Some(spare.swap_remove(at)),
                None => {
                    // Another size takes the place of one that was in use.
                    let largest = (0..spare.len()).max_by_key(|&at| spare[at].len());
                    largest.map(|at| spare.swap_remove(at));
                    None
                }
            }
        };
        let map = match found {
            Some(map) => map,
            None => {
                let map = MmapMut::map_anon(size)?;
                // Rows are read at random afterwards: larger pages are fewer to look up. A failure changes nothing.
                #[cfg(target_os = "linux")]
                if size >= LARGE {
                    drop(map.advise(memmap2::Advice::HugePage));
                }
                map
            }
        };
        Ok(Pages { map: Some(map), len, home: Arc::downgrade(self) })
    }

    /// A table of `len` values, any ones.
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

impl<T: Pod> From<Table<T>> for Buf<T> {
    fn from(table: Table<T>) -> Self {
        let len = table.len();
        Buf::of_pages(Arc::new(table.pages), 0, len).expect("pages begin at a multiple of any size")
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |map| &map[..self.len])
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.map.as_mut().map_or(&mut [], |map| &mut map[..self.len])
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some((home, map)) = self.home.upgrade().zip(self.map.take()) {
            home.0.lock().unwrap_or_else(PoisonError::into_inner).push(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_size_are_used_again() {
        let spare = Arc::new(SparePages::default());
        let mut pages = spare.take(5000).unwrap();
        assert_eq!(pages.len(), 5000);
        pages[4999] = 7;
        let at = pages.as_ptr();
        let other = spare.take(5000).unwrap();
        assert_ne!(other.as_ptr(), at);
        drop(pages);
        let again = spare.take(2 * SMALL).unwrap();
        assert_eq!((again.as_ptr(), again.len(), again[4999]), (at, 2 * SMALL, 7));
        drop((again, other));
        assert_eq!(spare.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn another_size_takes_the_place_of_one() {
        let spare = Arc::new(SparePages::default());
        let held = [1, 3 * LARGE].map(|len| spare.take(len).unwrap());
        drop(held);
        let large = spare.take(9 * LARGE).unwrap();
        assert_eq!(spare.0.lock().unwrap().len(), 1);
        drop(spare);
        // Its home is gone.
        drop(large);
    }

    #[test]
    fn tables_become_values() {
        let spare = Arc::new(SparePages::default());
        let mut table = spare.table::<u32>(3).unwrap();
        table.copy_from_slice(&[7, 8, 9]);
        let values = Buf::from(table);
        assert_eq!(values[..], [7, 8, 9]);
        assert!(Buf::from(spare.table::<u64>(0).unwrap()).is_empty());
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
