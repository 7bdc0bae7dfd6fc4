//! Neighbor lists in a temporary file, read sequentially.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use gnarl_common::error::{Result, ResultExt};

/// Words read at a time; longer lists get a longer buffer.
const BUFFER_WORDS: usize = 1 << 16;

/// Undirected neighbor lists, perhaps weighted, of nodes `0..lengths.len()`. Memory: 4 bytes a
/// node; the lists themselves are in an unnamed file.
///
/// A list has the ids and then, if weighted, as many weights.
pub(super) struct Lists {
    file: File,
    lengths: Vec<u32>,
    weighted: bool,
    entries: u64,
}

impl Lists {
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Neighbors of all nodes together: twice the number of edges.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Number of neighbors of each node.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Calls `visit` with every node, its neighbors, and their weights if there are any.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &[u32], &[u32])) -> Result<()> {
        let per_entry = 1 + usize::from(self.weighted);
        let longest = self.lengths.iter().max().copied().unwrap_or(0) as usize;
        let mut reader = Reader::new(&self.file, BUFFER_WORDS.max(per_entry * longest))?;
        let mut left = self.entries * per_entry as u64;
        for (node, &length) in self.lengths.iter().enumerate() {
            let words = length as usize * per_entry;
            let list = reader.take(words, left)?;
            left -= words as u64;
            let (ids, weights) = list.split_at(length as usize);
            visit(node as u32, ids, weights);
        }
        Ok(())
    }
}

/// Reads words ahead in large pieces.
struct Reader<'a> {
    file: &'a File,
    words: Vec<u32>,
    start: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn new(mut file: &'a File, words: usize) -> Result<Self> {
        file.seek(SeekFrom::Start(0)).at(Path::new(SCRATCH))?;
        Ok(Self { file, words: vec![0; words], start: 0, end: 0 })
    }

    /// The next `count` of the `left` words that are still to be read.
    fn take(&mut self, count: usize, left: u64) -> Result<&[u32]> {
        if self.end - self.start < count {
            self.words.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            let room = (self.words.len() - self.end) as u64;
            let fresh = room.min(left - self.end as u64) as usize;
            let target = &mut self.words[self.end..self.end + fresh];
            self.file.read_exact(bytemuck::cast_slice_mut(target)).at(Path::new(SCRATCH))?;
            self.end += fresh;
        }
        self.start += count;
        Ok(&self.words[self.start - count..self.start])
    }
}

/// Name of the unnamed file in errors.
const SCRATCH: &str = "temporary neighbor lists";

/// Writes lists in the order of nodes.
pub(super) struct ListsWriter {
    file: BufWriter<File>,
    lengths: Vec<u32>,
    weighted: bool,
    entries: u64,
}

impl ListsWriter {
    /// A writer of lists for `nodes` nodes, in a file that is deleted with them.
    pub fn create(scratch: &Path, nodes: usize, weighted: bool) -> Result<Self> {
        let file = tempfile::tempfile_in(scratch).at(scratch)?;
        let file = BufWriter::with_capacity(4 * BUFFER_WORDS, file);
        Ok(Self { file, lengths: Vec::with_capacity(nodes), weighted, entries: 0 })
    }

    /// Appends the next node's list.
    pub fn push(&mut self, ids: &[u32], weights: &[u32]) -> Result<()> {
        self.file.write_all(bytemuck::cast_slice(ids)).at(Path::new(SCRATCH))?;
        if self.weighted {
            self.file.write_all(bytemuck::cast_slice(weights)).at(Path::new(SCRATCH))?;
        }
        self.lengths.push(ids.len() as u32);
        self.entries += ids.len() as u64;
        Ok(())
    }

    pub fn finish(self) -> Result<Lists> {
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error);
        let file = file.at(Path::new(SCRATCH))?;
        let Self { lengths, weighted, entries, .. } = self;
        Ok(Lists { file, lengths, weighted, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_in_order() {
        let mut writer = ListsWriter::create(&std::env::temp_dir(), 3, true).unwrap();
        let long: Vec<u32> = (0..300_000).collect();
        writer.push(&[1, 2], &[5, 6]).unwrap();
        writer.push(&[], &[]).unwrap();
        writer.push(&long, &long).unwrap();
        let lists = writer.finish().unwrap();
        for _ in 0..2 {
            let mut seen = Vec::new();
            lists
                .for_each(|node, ids, weights| {
                    seen.push((node, ids.to_vec(), weights.to_vec()));
                })
                .unwrap();
            assert_eq!(seen[0], (0, vec![1, 2], vec![5, 6]));
            assert_eq!(seen[1], (1, vec![], vec![]));
            assert_eq!(seen[2], (2, long.clone(), long.clone()));
        }
    }
}
