//! Arrays that are made one after the other piece, and may exceed the memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::error::{Context, Error, Result, ResultExt};
use crate::{Buf, Kind};

/// Bytes written at a time.
const BUFFER: usize = 1 << 20;

/// Values appended in pieces: in memory while they are few, then in a file without a name, by default in the folder for
/// temporary files, which the system deletes with the process. Pages of the file can be written back and read again, so that the
/// values take no memory that others need.
///
/// ```
/// use gnarl_common::Spool;
///
/// let mut spool = Spool::new(16);
/// spool.append(&[1.0f32, 2.0])?;
/// spool.append(&[3.0, 4.0, 5.0])?;
/// assert_eq!(*spool.finish()?, [1.0, 2.0, 3.0, 4.0, 5.0]);
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug)]
pub struct Spool<T> {
    /// Bytes kept in memory at most.
    most: usize,
    memory: Vec<T>,
    file: Option<BufWriter<File>>,
    folder: PathBuf,
    /// Values in the file.
    written: usize,
}

impl<T: Pod> Spool<T> {
    /// An empty spool that keeps so many bytes in memory.
    pub fn new(most: usize) -> Self {
        Self::in_folder(most, &std::env::temp_dir())
    }

    /// An empty spool that keeps so many bytes in memory, and has its file in `folder`.
    pub fn in_folder(most: usize, folder: &Path) -> Self {
        Self { most, memory: Vec::new(), file: None, folder: folder.into(), written: 0 }
    }

    /// Appends values.
    ///
    /// # Errors
    /// If the folder of the file is full, or fails.
    pub fn append(&mut self, values: &[T]) -> Result<()> {
        let bytes = (self.memory.len() + values.len()) * size_of::<T>();
        if self.file.is_none() && bytes <= self.most {
            self.memory.extend_from_slice(values);
            return Ok(());
        }
        self.write(values).while_doing(|| "writing a temporary file")
    }

    fn write(&mut self, values: &[T]) -> Result<()> {
        let folder = self.folder.clone();
        let mut file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(&folder).at(&folder)?),
        };
        let memory = std::mem::take(&mut self.memory);
        for values in [&memory, values] {
            file.write_all(bytemuck::cast_slice(values)).at(&folder)?;
            self.written += values.len();
        }
        self.file = Some(file);
        Ok(())
    }

    /// The values, in memory or mapped.
    ///
    /// # Errors
    /// As [`Spool::append`].
    pub fn finish(self) -> Result<Buf<T>> {
        let Some(file) = self.file else { return Ok(self.memory.into()) };
        let folder = self.folder;
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error).at(&folder)?;
        // Benefit: the values are read where they are, and their pages can be taken back at any time.
        // SAFETY: the file has no name, so that nobody else changes it; it is written no more. The mapping is
        // read-only plain data.
        let map = Arc::new(unsafe { Mmap::map(&file) }.at(&folder)?);
        Buf::mapped(map, 0, self.written).ok_or_else(|| {
            Error::new(Kind::Io, format!("{}: a file is cut short", folder.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_in_memory_and_in_a_file() {
        for most in [0, 100, 1 << 20] {
            let mut spool = Spool::new(most);
            let mut all = Vec::new();
            for piece in 0..50u32 {
                let values: Vec<u32> = (0..piece).map(|i| piece * 1000 + i).collect();
                spool.append(&values).unwrap();
                all.extend(values);
            }
            assert_eq!(spool.file.is_some(), most < 1 << 20);
            assert_eq!(*spool.finish().unwrap(), all);
        }
        assert!(Spool::<f32>::new(0).finish().unwrap().is_empty());
    }
}
