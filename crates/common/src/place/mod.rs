//! Folders of files that are read by ranges, on this host or elsewhere.

mod folder;
mod uncached;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;

pub use folder::Folder;

/// A range of a file, and the memory that it is read into.
#[derive(Debug)]
pub struct FileRange<'a> {
    /// Name of the file in its place, with slashes.
    pub file: &'a str,
    /// First byte.
    pub start: u64,
    /// Memory for the bytes.
    pub out: &'a mut [u8],
}

/// A folder of files that do not change, read by ranges: of this host ([`Folder`]), or of an object store.
pub trait Place: Debug + Send + Sync {
    /// The path or the address of a file, for messages.
    fn path_of(&self, file: &str) -> String;

    /// Bytes of a file.
    ///
    /// # Errors
    /// If there is none, or the place cannot be reached.
    fn size(&self, file: &str) -> Result<u64>;

    /// Fills all `ranges`, several at a time; returns the CRC-32 of each.
    ///
    /// # Errors
    /// If a file is missing or ends before, naming it, or the place cannot be reached.
    fn read(&self, ranges: &mut [FileRange<'_>]) -> Result<Vec<u32>>;

    /// Begins to read some bytes of a file that are soon asked for, where that is of use; nothing waits for them.
    fn expect(&self, _file: &str, _bytes: Range<u64>) {}

    /// The place with files read past the system's cache as far as that is possible, for those who read more than it holds;
    /// none where files are in no such cache.
    fn uncached(&self) -> Option<Arc<dyn Place>> {
        None
    }
}

/// A folder within a place.
#[derive(Debug, Clone)]
pub struct Subfolder {
    place: Arc<dyn Place>,
    name: String,
}

impl Subfolder {
    /// The folder `name` of `place`.
    pub fn new(place: Arc<dyn Place>, name: &str) -> Self {
        Self { place, name: name.to_string() }
    }

    fn full(&self, file: &str) -> String {
        format!("{}/{file}", self.name)
    }
}

impl Place for Subfolder {
    fn path_of(&self, file: &str) -> String {
        self.place.path_of(&self.full(file))
    }

    fn size(&self, file: &str) -> Result<u64> {
        self.place.size(&self.full(file))
    }

    fn read(&self, ranges: &mut [FileRange<'_>]) -> Result<Vec<u32>> {
        let names: Vec<String> = ranges.iter().map(|range| self.full(range.file)).collect();
        let full = names.iter().zip(ranges).map(|(file, range)| FileRange {
            file,
            start: range.start,
            out: &mut *range.out,
        });
        self.place.read(&mut full.collect::<Vec<_>>())
    }

    fn expect(&self, file: &str, bytes: Range<u64>) {
        self.place.expect(&self.full(file), bytes);
    }

    fn uncached(&self) -> Option<Arc<dyn Place>> {
        let place = self.place.uncached()?;
        Some(Arc::new(Self { place, name: self.name.clone() }))
    }
}
