//! Maps from the ids of the input to nodes 0..N-1, and back.

use std::collections::BTreeMap;

use gnarl_common::rng::mix;
use gnarl_common::{Error, Result};

use super::errors::over_budget;
use crate::writer::{ColumnWriter, DatasetWriter};

/// A set of non-negative integers, one bit each up to the largest, with ranks.
#[derive(Debug, Default)]
pub(super) struct BitRanks {
    words: Vec<u64>,
    /// Members before every eighth word.
    before: Vec<u64>,
    count: u64,
}

impl BitRanks {
    #[inline]
    fn insert(&mut self, id: u64) {
        let word = (id / 64) as usize;
        if word >= self.words.len() {
            self.words.resize((word + 1).next_multiple_of(1024), 0);
        }
        self.words[word] |= 1 << (id % 64);
    }

    fn seal(&mut self) {
        self.before.clear();
        self.count = 0;
        for block in self.words.chunks(8) {
            self.before.push(self.count);
            self.count += block.iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
        }
    }

    #[inline]
    fn rank(&self, id: u64) -> Option<u64> {
        let word = (id / 64) as usize;
        let bits = *self.words.get(word)?;
        if bits >> (id % 64) & 1 == 0 {
            return None;
        }
        let mut rank = self.before[word / 8];
        for w in &self.words[word / 8 * 8..word] {
            rank += u64::from(w.count_ones());
        }
        Some(rank + u64::from((bits & ((1 << (id % 64)) - 1)).count_ones()))
    }

    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| i as u64 * 64 + b)
        })
    }
}

/// Integer ids collected so far: one bit each while they are non-negative and not too large, else a
/// sorted list.
#[derive(Debug, Default)]
pub(super) struct Collector {
    bits: BitRanks,
    sorted: Vec<i64>,
    pending: Vec<i64>,
}

impl Collector {
    /// Adds ids, holding at most `memory` bytes.
    pub fn add(&mut self, ids: &[i64], memory: u64) -> Result<()> {
        let limit = memory / 4 * 8;
        for &id in ids {
            match u64::try_from(id) {
                Ok(id) if id < limit => self.bits.insert(id),
                _ => self.pending.push(id),
            }
        }
        if self.pending.len() > self.sorted.len().max(1 << 16) {
            self.merge();
        }
        let held = self.bits.words.len() * 9 + self.sorted.len() * 16 + self.pending.len() * 8;
        if held as u64 > memory { Err(over_budget(memory, "the map of ids")) } else { Ok(()) }
    }

    fn merge(&mut self) {
        self.sorted.append(&mut self.pending);
        self.sorted.sort_unstable();
        self.sorted.dedup();
    }

    /// Nodes in ascending order of their ids; ids that are 0..N-1 already are kept.
    pub fn seal(mut self, memory: u64) -> Result<Ids> {
        self.merge();
        self.bits.seal();
        if self.sorted.is_empty() {
            // N members are 0..N-1 exactly when the rank of N-1 is N-1.
            let last = self.bits.count.saturating_sub(1);
            let kept = self.bits.rank(last) == Some(last);
            return Ok(match kept {
                true => Ids::Kept(self.bits.count),
                false => Ids::Ranked(self.bits),
            });
        }
        if 8 * (self.bits.count + self.sorted.len() as u64) > memory {
            return Err(over_budget(memory, "the map of ids"));
        }
        self.sorted.extend(self.bits.iter().map(|id| id as i64));
        self.sorted.sort_unstable();
        Ok(Ids::Sorted { keys: self.sorted, nodes: None })
    }
}

/// Strings numbered in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct StringIds {
    bytes: Vec<u8>,
    ends: Vec<u64>,
    /// Open addressing: node plus one, below the upper bits of its text's hash; 0 is free.
    table: Vec<u64>,
}

/// The bits of an entry that have the node plus one: more than there is memory for.
const NODE: u64 = (1 << 40) - 1;

impl StringIds {
    pub fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    pub fn get(&self, node: u64) -> &[u8] {
        let start = if node == 0 { 0 } else { self.ends[node as usize - 1] };
        &self.bytes[start as usize..self.ends[node as usize] as usize]
    }

    /// Writes all texts one after the other, and their offsets.
    pub fn write(
        &self,
        offsets: &mut ColumnWriter<u64>,
        bytes: &mut ColumnWriter<u8>,
    ) -> Result<()> {
        let mut end = 0;
        offsets.push(&[end])?;
        for node in 0..self.len() {
            let text = self.get(node);
            end += text.len() as u64;
            offsets.push(&[end])?;
            bytes.push(text)?;
        }
        Ok(())
    }

    /// The slot of `text`, free if it is new, and the bits of its hash for the entry.
    fn slot(&self, text: &[u8]) -> (usize, u64) {
        let mut hash = text.len() as u64;
        for chunk in text.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash ^ u64::from_le_bytes(word));
        }
        let (mask, tag) = (self.table.len() - 1, hash & !NODE);
        let mut slot = hash as usize & mask;
        loop {
            let entry = self.table[slot];
            // Texts are scattered in memory: comparing hashes avoids reading those of other
            // entries.
            if entry == 0 || entry & !NODE == tag && self.get((entry & NODE) - 1) == text {
                return (slot, tag);
            }
            slot = (slot + 1) & mask;
        }
    }

    pub fn find(&self, text: &[u8]) -> Option<u64> {
        if self.table.is_empty() {
            return None;
        }
        let (slot, _) = self.slot(text);
        (self.table[slot] & NODE).checked_sub(1)
    }

    /// The node of `text`; a new one, with `true`, if it is new.
    pub fn insert(&mut self, text: &[u8], memory: u64) -> Result<(u64, bool)> {
        if self.ends.len() * 2 >= self.table.len() {
            self.grow(memory)?;
        }
        let (slot, tag) = self.slot(text);
        if let Some(node) = (self.table[slot] & NODE).checked_sub(1) {
            return Ok((node, false));
        }
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u64);
        self.table[slot] = tag | self.len();
        Ok((self.len() - 1, true))
    }

    fn grow(&mut self, memory: u64) -> Result<()> {
        let slots = (self.table.len() * 2).max(1024);
        let held = self.bytes.capacity() + self.ends.capacity() * 8 + slots * 8;
        if held as u64 > memory {
            return Err(over_budget(memory, "the map of string ids"));
        }
        self.table = vec![0; slots];
        for node in 0..self.len() {
            let (slot, tag) = self.slot(self.get(node));
            self.table[slot] = tag | (node + 1);
        }
        Ok(())
    }
}

/// The map from ids of a node type to nodes.
#[derive(Debug)]
pub(super) enum Ids {
    /// Ids are nodes already; so many.
    Kept(u64),
    /// Still being collected from edges.
    Open(Collector),
    /// Nodes are ranks.
    Ranked(BitRanks),
    /// Nodes are positions in the sorted keys, or the entries of `nodes` there.
    Sorted { keys: Vec<i64>, nodes: Option<Vec<u64>> },
    /// Strings; closed when a nodes table listed them all.
    Strings { ids: StringIds, closed: bool },
}

impl Ids {
    /// The map of a nodes table's integer ids in row order. Ids that count up from 0 are kept,
    /// else rows are nodes.
    ///
    /// With the row of a repeated id.
    /// Gives the row of an id that appeared before.
    pub fn from_rows(rows: Vec<i64>) -> std::result::Result<Self, usize> {
        if rows.iter().enumerate().all(|(row, &id)| row as i64 == id) {
            return Ok(Self::Kept(rows.len() as u64));
        }
        let mut nodes: Vec<u64> = (0..rows.len() as u64).collect();
        nodes.sort_unstable_by_key(|&row| (rows[row as usize], row));
        let keys: Vec<i64> = nodes.iter().map(|&row| rows[row as usize]).collect();
        match keys.windows(2).position(|w| w[0] == w[1]) {
            Some(twice) => Err(nodes[twice + 1] as usize),
            None => Ok(Self::Sorted { keys, nodes: Some(nodes) }),
        }
    }

    /// Number of nodes.
    pub fn count(&self) -> u64 {
        match self {
            Self::Kept(count) => *count,
            Self::Open(_) => 0,
            Self::Ranked(bits) => bits.count,
            Self::Sorted { keys, .. } => keys.len() as u64,
            Self::Strings { ids, .. } => ids.len(),
        }
    }

    /// The node of an integer id.
    #[inline]
    pub fn find(&self, id: i64) -> Option<u64> {
        match self {
            Self::Kept(count) => u64::try_from(id).ok().filter(|id| id < count),
            Self::Ranked(bits) => bits.rank(u64::try_from(id).ok()?),
            Self::Sorted { keys, nodes } => {
                let at = keys.binary_search(&id).ok()?;
                Some(nodes.as_ref().map_or(at as u64, |nodes| nodes[at]))
            }
            Self::Open(_) | Self::Strings { .. } => None,
        }
    }

    /// Writes the inverse map, unless ids were kept; returns whether there is one.
    pub fn write(&self, writer: &mut DatasetWriter, ntype: &str) -> Result<bool> {
        match self {
            Self::Kept(_) | Self::Open(_) => return Ok(false),
            Self::Strings { ids, .. } => write_strings(writer, ntype, ids)?,
            Self::Ranked(bits) => write_integers(writer, ntype, bits.iter().map(|id| id as i64))?,
            Self::Sorted { keys, nodes: None } => {
                write_integers(writer, ntype, keys.iter().copied())?;
            }
            Self::Sorted { keys, nodes: Some(nodes) } => {
                let mut rows = vec![0; keys.len()];
                for (&key, &node) in keys.iter().zip(nodes) {
                    rows[node as usize] = key;
                }
                write_integers(writer, ntype, rows.into_iter())?;
            }
        }
        Ok(true)
    }
}

fn write_integers(
    writer: &mut DatasetWriter,
    ntype: &str,
    ids: impl Iterator<Item = i64>,
) -> Result<()> {
    let mut user = writer.node_column::<i64>(ntype, "user_id", &[])?;
    for id in ids {
        user.push(&[id])?;
    }
    let spec = user.finish()?;
    writer.node_type(ntype)?.columns.push(spec);
    Ok(())
}

/// Writes strings as the `user_id` of a node type.
pub(super) fn write_strings(
    writer: &mut DatasetWriter,
    ntype: &str,
    ids: &StringIds,
) -> Result<()> {
    let mut offsets = writer.node_column::<u64>(ntype, "user_id.offsets", &[])?;
    let mut bytes = writer.node_column::<u8>(ntype, "user_id.bytes", &[])?;
    offsets.push(&[0])?;
    offsets.push(&ids.ends)?;
    bytes.push(&ids.bytes)?;
    let specs = [offsets.finish()?, bytes.finish()?];
    writer.node_type(ntype)?.columns.extend(specs);
    Ok(())
}

/// The id maps of all node types.
pub(super) type IdMaps = BTreeMap<String, Ids>;

/// The error of an id that no nodes table lists.
pub(super) fn unknown(place: &str, id: &str, ntype: &str, ids: &Ids) -> Error {
    match ids {
        Ids::Kept(count) if id.starts_with('-') => {
            Error::invalid(format!("{place}: id {id} is negative ({count} {ntype} nodes)"))
        }
        Ids::Kept(count) => Error::invalid(format!(
            "{place}: id {id} is not below the number of {ntype} nodes, {count}"
        )),
        _ => Error::invalid(format!("{place}: the nodes table of {ntype} has no id '{id}'")),
    }
}
