//! Compressed sparse columns: the sources of every destination, built within a memory budget.

use crate::column::ColumnSpec;
use crate::edges::{CHUNK_EDGES, IdReader};
use crate::manifest::EdgeFacts;
use crate::narrow::Narrow;
use crate::writer::{ColumnWriter, IdWriter};

use gnarl_common::rng::mix;
use gnarl_common::{Buf, Error, Kind, Result, prefetch};
pub(crate) use job::{CscJob, Id};
use sort::{Beside, SORT_GRAIN, sort_lists};
use weights::ListWeights;

/// In-neighbor lists of one edge type, each ascending by source id. Local ids are 32 bits: larger
/// graphs are partitioned first.
#[derive(Debug, Clone)]
pub struct Csc {
    /// `num_dst + 1` offsets into the arrays below.
    pub indptr: Narrow,
    /// Source of each edge.
    pub indices: Buf<u32>,
    /// Row of each edge in the edge columns, if edges have columns beside their endpoints.
    pub edge: Option<Narrow>,
}

impl Csc {
    /// Builds the lists in memory from edges in any order. `num_dst` bounds the destinations.
    pub fn from_edges(num_dst: usize, edges: &[(u32, u32)]) -> Self {
        let mut indptr = vec![0u64; num_dst + 1];
        for &(_, dst) in edges {
            indptr[dst as usize + 1] += 1;
        }
        for v in 0..num_dst {
            indptr[v + 1] += indptr[v];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; edges.len()];
        for &(src, dst) in edges {
            indices[next[dst as usize] as usize] = src;
            next[dst as usize] += 1;
        }
        for v in 0..num_dst {
            indices[indptr[v] as usize..indptr[v + 1] as usize].sort_unstable();
        }
        let fits = u32::try_from(edges.len()).is_ok();
        let indptr = if fits {
            indptr.iter().map(|&offset| offset as u32).collect::<Vec<_>>().into()
        } else {
            indptr.into()
        };
        Self { indptr, indices: indices.into(), edge: None }
    }

    /// Number of destination nodes.
    pub fn num_dst(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of edges.
    pub fn num_edges(&self) -> usize {
        self.indices.len()
    }

    /// Sources of `dst`, ascending.
    #[inline]
    pub fn sources(&self, dst: u32) -> &[u32] {
        let (start, end) = self.range(dst);
        &self.indices[start as usize..end as usize]
    }

    /// In-degree of `dst`.
    #[inline]
    pub fn degree(&self, dst: u32) -> u32 {
        let (start, end) = self.range(dst);
        (end - start) as u32
    }

    #[inline(always)]
    fn range(&self, dst: u32) -> (u64, u64) {
        let (indptr, dst) = (self.indptr.as_slice(), dst as usize);
        (indptr.get(dst), indptr.get(dst + 1))
    }
}

/// The columns that were built.
pub(crate) struct BuiltCsc {
    pub columns: Vec<ColumnSpec>,
    pub facts: EdgeFacts,
    pub num_edges: u64,
}

/// Upper bound of the part of the budget reserved for the program itself and file buffers.
const PROGRAM: u64 = 32 << 20;

/// Builds the CSC columns of an edge type by counting, then filling one range of destinations
/// after the other, re-reading the edges for each: memory is `8·num_dst` bytes plus one range.
pub(crate) fn build<T: Id>(job: &CscJob<'_>) -> Result<BuiltCsc> {
    let mut reader = Reader::open(job)?;
    let room = room(job)?;
    let mut indptr = count(job, &mut reader)?;
    let mut tally = Tally::default();
    let mut weights = job.weights.map(|spec| ListWeights::create(job, spec)).transpose()?;
    let beside = if job.keep_rows { 8 } else { 0 } + if weights.is_some() { 4 } else { 0 };
    let item = size_of::<T>() as u64 + beside;
    let room = job.range_bytes.map_or(room, |bytes| room.min(bytes));
    let mut indices = ColumnWriter::<T>::create(job.dir, job.stem, "csc.indices", &[])?;
    // Offsets and rows are at most the number of edges, repeated ones included.
    let narrow = |name| IdWriter::narrow(job.dir, job.stem, name, indptr[indptr.len() - 1]);
    let mut rows = if job.keep_rows { Some(narrow("csc.edge")?) } else { None };
    let mut offsets = narrow("csc.indptr")?;
    let (mut start, mut kept) = (0usize, 0u64);
    let n = job.num_dst as usize;
    while start < n {
        let end = range_end(&indptr, start, room, item);
        let mut range = Range::<T>::fill(job, &mut reader, &indptr, start..end)?;
        range.sort(&indptr[start..=end], job.order);
        tally.add(&range.sources, start as u64, &indptr[start..=end], job.square);
        // The offsets below `start` are final; this range's are rewritten as lists shrink.
        let base = indptr[start];
        for v in start..end {
            let list = (indptr[v] - base) as usize..(indptr[v + 1] - base) as usize;
            indptr[v] = kept;
            if let Some(weights) = &mut weights {
                weights.write(&range.beside.weights[list.clone()])?;
            }
            kept += range.write(list, job.coalesce, &mut indices, rows.as_mut())?;
        }
        start = end;
    }
    indptr[n] = kept;
    let facts = tally.facts(&indptr, job);
    offsets.push(&indptr)?;
    let mut columns = vec![offsets.finish()?, indices.finish()?];
    if let Some(rows) = rows {
        columns.push(rows.finish()?);
    }
    if let Some(weights) = weights {
        columns.push(weights.finish()?);
    }
    Ok(BuiltCsc { columns, facts, num_edges: kept })
}

/// Bytes left for a range of lists beside the degrees of all destinations, whose number comes from
/// a file: it is compared with the budget before anything of that size is allocated.
fn room(job: &CscJob<'_>) -> Result<u64> {
    let fixed = job.num_dst.saturating_add(1).saturating_mul(8);
    let fixed = fixed.saturating_add(PROGRAM.min(job.memory / 16));
    match job.memory.saturating_sub(fixed) {
        room if room >= 1 << 20 => Ok(room),
        _ => Err(Error::new(
            Kind::Limit,
            format!("{} nodes need {} MiB for their degrees alone", job.num_dst, fixed >> 20),
        )
        .hint("raise --memory")),
    }
}

/// The edges of the job, in chunks.
struct Reader {
    src: IdReader,
    dst: IdReader,
    weights: Option<IdReader>,
    chunk: Chunk,
}

/// Edges in the order of their rows, with the bits of their weights.
#[derive(Default)]
struct Chunk {
    src: Vec<u64>,
    dst: Vec<u64>,
    weights: Vec<u64>,
}

impl Reader {
    fn open(job: &CscJob<'_>) -> Result<Self> {
        let (src, dst) = (IdReader::open(job.dir, job.src)?, IdReader::open(job.dir, job.dst)?);
        let weights = job.weights.map(|spec| IdReader::of_bits(job.dir, spec)).transpose()?;
        Ok(Self { src, dst, weights, chunk: Chunk::default() })
    }

    /// Calls `visit` with all edges; with their weights only if `weighted`.
    fn for_each(&mut self, weighted: bool, mut visit: impl FnMut(&Chunk)) -> Result<()> {
        let Self { src, dst, weights, chunk } = self;
        let mut weights = weights.as_mut().filter(|_| weighted);
        src.rewind()?;
        dst.rewind()?;
        weights.iter_mut().try_for_each(|weights| weights.rewind())?;
        loop {
            chunk.src.clear();
            chunk.dst.clear();
            chunk.weights.clear();
            if src.read(CHUNK_EDGES, 0, &mut chunk.src)? == 0 {
                return Ok(());
            }
            dst.read(CHUNK_EDGES, 0, &mut chunk.dst)?;
            if let Some(weights) = &mut weights {
                weights.read(CHUNK_EDGES, 0, &mut chunk.weights)?;
            }
            visit(chunk);
        }
    }
}

/// Prefetch distance in edges: their lists are accessed in any order.
const AHEAD: usize = 24;

/// Counts degrees, as offsets.
fn count(job: &CscJob<'_>, reader: &mut Reader) -> Result<Vec<u64>> {
    let mut indptr = vec![0u64; job.num_dst as usize + 1];
    reader.for_each(false, |Chunk { dst, .. }| {
        for (i, &d) in dst.iter().enumerate() {
            if let Some(&next) = dst.get(i + AHEAD) {
                prefetch::item(&indptr, next as usize + 1);
            }
            indptr[d as usize + 1] += 1;
        }
    })?;
    for v in 0..job.num_dst as usize {
        indptr[v + 1] += indptr[v];
    }
    Ok(indptr)
}

/// Sums over the sorted lists from which the facts follow. Repeated edges count once towards the
/// fingerprints: an edge has its reverse or not, however often either is listed.
#[derive(Default)]
struct Tally {
    self_loops: u64,
    repeated_loops: u64,
    duplicates: u64,
    /// Sums of the hashes of all edges, and of all reversed edges.
    forward: u128,
    backward: u128,
}

impl Tally {
    /// Adds the lists between `offsets` (of which the first is the origin of `sources`), those of
    /// the destinations from `first`.
    fn add<T: Id>(&mut self, sources: &[T], first: u64, offsets: &[u64], square: bool) {
        let lists = offsets.len() - 1;
        if lists > SORT_GRAIN {
            let middle = lists / 2;
            let (left, right) = sources.split_at((offsets[middle] - offsets[0]) as usize);
            let mut other = Self::default();
            rayon::join(
                || self.add(left, first, &offsets[..=middle], square),
                || other.add(right, first + middle as u64, &offsets[middle..], square),
            );
            self.merge(&other);
            return;
        }
        for (v, w) in offsets.windows(2).enumerate() {
            let (dst, mut last) = (first + v as u64, None);
            for &source in &sources[(w[0] - offsets[0]) as usize..(w[1] - offsets[0]) as usize] {
                let src = source.wide();
                let repeated = last == Some(source);
                last = Some(source);
                self.duplicates += u64::from(repeated);
                if square {
                    self.self_loops += u64::from(src == dst);
                    self.repeated_loops += u64::from(repeated && src == dst);
                    if !repeated {
                        self.forward = self.forward.wrapping_add(fingerprint(src, dst));
                        self.backward = self.backward.wrapping_add(fingerprint(dst, src));
                    }
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.self_loops += other.self_loops;
        self.repeated_loops += other.repeated_loops;
        self.duplicates += other.duplicates;
        self.forward = self.forward.wrapping_add(other.forward);
        self.backward = self.backward.wrapping_add(other.backward);
    }

    fn facts(&self, indptr: &[u64], job: &CscJob<'_>) -> EdgeFacts {
        let dropped_loops = if job.coalesce { self.repeated_loops } else { 0 };
        let mut facts = EdgeFacts {
            self_loops: self.self_loops - dropped_loops,
            duplicates: self.duplicates,
            symmetric: job.square && self.forward == self.backward,
            ..EdgeFacts::default()
        };
        for w in indptr.windows(2) {
            facts.without_in_edges += u64::from(w[0] == w[1]);
            facts.max_in_degree = facts.max_in_degree.max(w[1] - w[0]);
        }
        facts
    }
}

/// 128 bits of hash of an ordered pair.
fn fingerprint(a: u64, b: u64) -> u128 {
    let low = mix(mix(a ^ 0x517c_c1b7_2722_0a95).wrapping_add(b.wrapping_mul(GOLDEN)));
    let high = mix(low ^ b.wrapping_mul(0xd6e8_feb8_6659_fd93));
    u128::from(high) << 64 | u128::from(low)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The largest range from `start` that fits in `room` bytes, at least one node.
fn range_end(indptr: &[u64], start: usize, room: u64, item: u64) -> usize {
    let (mut low, mut high) = (start + 1, indptr.len() - 1);
    while low < high {
        let mid = low + (high - low).div_ceil(2);
        if (indptr[mid] - indptr[start]) * item + 4 * (mid - start) as u64 <= room {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    low
}

/// The lists of a range of destinations.
struct Range<T> {
    sources: Vec<T>,
    beside: Beside,
}

impl<T: Id> Range<T> {
    fn fill(
        job: &CscJob<'_>,
        reader: &mut Reader,
        indptr: &[u64],
        nodes: std::ops::Range<usize>,
    ) -> Result<Self> {
        let (base, offsets) = (indptr[nodes.start], &indptr[nodes.start..nodes.end]);
        let count = (indptr[nodes.end] - base) as usize;
        let mut filled = vec![0u32; nodes.len()];
        let mut sources = vec![T::default(); count];
        let slots = |wanted: bool| if wanted { count } else { 0 };
        let mut rows = vec![0u64; slots(job.keep_rows)];
        let mut weights = vec![0u32; slots(job.weights.is_some())];
        let mut row = 0u64;
        let (first, span) = (nodes.start as u64, nodes.len() as u64);
        reader.for_each(true, |Chunk { src, dst, weights: bits }| {
            // For the edges ahead, first the positions of their lists, then the lists.
            let within = |i: usize| dst.get(i).map(|d| d.wrapping_sub(first)).filter(|&v| v < span);
            for (i, &s) in src.iter().enumerate() {
                if let Some(v) = within(i + 2 * AHEAD) {
                    prefetch::item(offsets, v as usize);
                    prefetch::item(&filled, v as usize);
                }
                let slot = |v: u64, filled: &[u32]| {
                    (offsets[v as usize] - base) as usize + filled[v as usize] as usize
                };
                if let Some(v) = within(i + AHEAD) {
                    prefetch::item(&sources, slot(v, &filled));
                }
                if let Some(v) = within(i) {
                    let slot = slot(v, &filled);
                    filled[v as usize] += 1;
                    sources[slot] = T::of(s);
                    if !rows.is_empty() {
                        rows[slot] = row;
                    }
                    if let Some(&bits) = bits.get(i) {
                        weights[slot] = bits as u32;
                    }
                }
                row += 1;
            }
        })?;
        Ok(Self { sources, beside: Beside { rows, weights } })
    }

    /// Sorts every list by source (or its key in `order`), then by row. `offsets` are the range's
    /// own.
    fn sort(&mut self, offsets: &[u64], order: Option<&[u64]>) {
        sort_lists(offsets, &mut self.sources, self.beside.as_mut(), order);
    }

    /// Writes a list; returns how many edges of it were kept.
    fn write(
        &mut self,
        list: std::ops::Range<usize>,
        coalesce: bool,
        indices: &mut ColumnWriter<T>,
        rows: Option<&mut IdWriter>,
    ) -> Result<u64> {
        let sources = &self.sources[list.clone()];
        if let Some(rows) = rows {
            rows.push(&self.beside.rows[list])?;
        } else if coalesce && sources.windows(2).any(|w| w[0] == w[1]) {
            let mut distinct = sources.to_vec();
            distinct.dedup();
            indices.push(&distinct)?;
            return Ok(distinct.len() as u64);
        }
        indices.push(sources)?;
        Ok(sources.len() as u64)
    }
}

mod job;
mod sort;
#[cfg(test)]
mod tests;
mod weights;
