//! Neighbor lists in a temporary file, read a piece at a time by all threads.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use gnarl_common::error::{Result, ResultExt};
use rayon::prelude::*;

/// Bounds of the words of a piece, unless one list is longer.
const PIECE_WORDS: [u64; 2] = [1 << 12, 1 << 16];
/// Pieces of all lists, within these bounds.
const PIECES: u64 = 1 << 10;
/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 18;
/// Name of the unnamed file in errors.
const SCRATCH: &str = "temporary neighbor lists";

/// Undirected neighbor lists, perhaps weighted, of nodes `0..lengths.len()`. Memory: 4 bytes a
/// node; the lists themselves are in an unnamed file.
///
/// A list has the ids and then, if weighted, as many weights.
pub(super) struct Lists {
    file: File,
    lengths: Vec<u32>,
    weighted: bool,
    entries: u64,
    pieces: Vec<Start>,
}

/// The beginning of a piece.
#[derive(Clone, Copy)]
struct Start {
    node: u32,
    word: u64,
}

/// Some consecutive nodes and their lists.
pub(super) struct Piece<'a> {
    first: u32,
    lengths: &'a [u32],
    weighted: bool,
    words: &'a [u32],
}

impl Piece<'_> {
    /// The nodes.
    pub fn nodes(&self) -> Range<u32> {
        self.first..self.first + self.lengths.len() as u32
    }

    /// Calls `visit` with every node, its neighbors, and their weights if there are any.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &[u32], &[u32])) {
        let mut rest = self.words;
        for (node, &length) in self.nodes().zip(self.lengths) {
            let (ids, after) = rest.split_at(length as usize);
            let (weights, after) = after.split_at(if self.weighted { ids.len() } else { 0 });
            visit(node, ids, weights);
            rest = after;
        }
    }

    /// Calls `visit` as [`Piece::for_each`] does, with some of the nodes, which ascend.
    pub fn for_some(&self, nodes: &[u32], mut visit: impl FnMut(u32, &[u32], &[u32])) {
        if nodes.is_empty() {
            return;
        }
        let mut nodes = nodes.iter().peekable();
        self.for_each(|node, ids, weights| {
            if nodes.next_if(|&&next| next == node).is_some() {
                visit(node, ids, weights);
            }
        });
    }
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
        let mut words = Vec::new();
        (0..self.pieces()).try_for_each(|piece| {
            self.read(piece, &mut words)?.for_each(&mut visit);
            Ok(())
        })
    }

    /// The sum of what `of_piece` gives for each piece.
    pub fn sum(&self, of_piece: impl Fn(&Piece) -> u64 + Sync) -> Result<u64> {
        let of_piece = |words: &mut Vec<u32>, piece| Ok(of_piece(&self.read(piece, words)?));
        (0..self.pieces()).into_par_iter().map_init(Vec::new, of_piece).sum()
    }

    /// Words of all lists in the file.
    pub fn words(&self) -> u64 {
        self.pieces[self.pieces()].word
    }

    /// Number of pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len() - 1
    }

    /// Nodes of a piece.
    pub fn nodes(&self, piece: usize) -> Range<u32> {
        self.pieces[piece].node..self.pieces[piece + 1].node
    }

    /// Reads a piece into `words`.
    pub fn read<'a>(&'a self, piece: usize, words: &'a mut Vec<u32>) -> Result<Piece<'a>> {
        let nodes = self.nodes(piece);
        let [start, end] = [piece, piece + 1].map(|p| self.pieces[p].word);
        let count = (end - start) as usize;
        if words.len() < count {
            words.resize(count, 0);
        }
        let words = &mut words[..count];
        self.file
            .read_exact_at(bytemuck::cast_slice_mut(words), 4 * start)
            .at(Path::new(SCRATCH))?;
        let lengths = &self.lengths[nodes.start as usize..nodes.end as usize];
        Ok(Piece { first: nodes.start, lengths, weighted: self.weighted, words })
    }
}

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
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
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
        let per_entry = if weighted { 2 } else { 1 };
        let pieces = pieces(&lengths, per_entry, entries * per_entry);
        Ok(Lists { file, lengths, weighted, entries, pieces })
    }
}

/// The starts of the pieces of lists of `words` words in all, and the end of the last.
fn pieces(lengths: &[u32], per_entry: u64, words: u64) -> Vec<Start> {
    let most = (words / PIECES).clamp(PIECE_WORDS[0], PIECE_WORDS[1]);
    let mut pieces = vec![Start { node: 0, word: 0 }];
    let mut word = 0;
    for (node, &length) in (0..).zip(lengths) {
        let length = u64::from(length) * per_entry;
        let last = pieces[pieces.len() - 1];
        if word + length > last.word + most && node > last.node {
            pieces.push(Start { node, word });
        }
        word += length;
    }
    pieces.push(Start { node: lengths.len() as u32, word });
    pieces
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
