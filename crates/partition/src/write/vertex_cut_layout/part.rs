//! Reader of vertex-cut parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::Buf;
use gnarl_common::error::{Context, Error, Result};
use gnarl_graph::{Column, Narrow, NarrowSlice, Triple};

use super::manifest::{TIMES, VertexCutManifest};
use super::side::{Columns, Direction, Run, Side};

/// The edges of one part of a vertex cut, in the compact layout of GLISP §III-C, mapped.
///
/// Nodes have graph-wide ids (the types of nodes one after the other, see
/// [`Manifest::node_offsets`](gnarl_graph::Manifest::node_offsets)) and, within the part, local ids:
/// their rank among the part's nodes, found by binary search. Edges are listed by destination, type
/// and source, and their place there is their id in the part; out-neighbor lists hold edge ids, as
/// GLISP's in-neighbor lists do. (Messages come from in-neighbors: theirs are the lists that need
/// no search.) Degrees are those of the whole graph, so that a part knows its share of a node's
/// neighbors.
///
/// ```
/// use gnarl_graph::Dataset;
/// use gnarl_graph::generate::{RmatOptions, rmat};
/// use gnarl_partition::{Direction, PartLayout, PartitionConfig, Parts, partition_dataset};
///
/// let dir = tempfile::tempdir().unwrap();
/// let options = RmatOptions { nodes: 500, edges: 3000, ..Default::default() };
/// rmat(&options, &dir.path().join("graph"))?;
/// let graph = Dataset::open(dir.path().join("graph"))?;
/// let config = PartitionConfig {
///     algorithm: "adadne".into(),
///     layout: PartLayout::VertexCut,
///     parts: Parts::Count(3),
///     ..Default::default()
/// };
/// let (parts, _) = partition_dataset(&graph, &config, &dir.path().join("parts"))?;
/// let part = parts.topology(0)?;
/// let local = part.local(part.global(7)).expect("the part holds its nodes");
/// let here = part.sources(local, 0).len();
/// println!(
///     "{here} of {} in-neighbors of node {} are in part 0; it is in parts {:?}",
///     part.degree(local, Direction::In),
///     part.global(local),
///     part.parts_of(local).collect::<Vec<_>>()
/// );
/// # assert!(here as u32 <= part.degree(local, Direction::In));
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct VertexCutPart {
    dir: PathBuf,
    manifest: VertexCutManifest,
    ids: Narrow,
    /// Every [`BLOCK`]-th id, where searches begin: these stay in the cache of a processor.
    firsts: Arc<[u64]>,
    parts: Buf<u8>,
    sources: Buf<u32>,
    edges: Narrow,
    into: Side,
    out: Side,
}

/// Ids from one of those where searches begin to the next.
const BLOCK: u64 = 64;

/// The in-edges of a node over one edge type.
#[derive(Debug, Clone, Copy)]
pub struct TypeList<'a> {
    /// Local id of each source, ascending.
    pub sources: &'a [u32],
    /// In-degree over the type in the whole graph.
    pub degree: u32,
    /// Row of the first edge in the columns of the type; the others follow.
    pub row: u64,
}

/// In-neighbor lists of a [`VertexCutPart`].
#[derive(Debug, Clone, Copy)]
pub struct InLists<'a> {
    /// Offsets of each node's list, `nodes + 1` of them.
    pub indptr: NarrowSlice<'a>,
    /// Local id of each edge's source, ascending within a type's list.
    pub sources: &'a [u32],
    /// Graph-wide id of each node, ascending.
    pub ids: NarrowSlice<'a>,
    /// In-degree of each node in the whole graph.
    pub degrees: &'a [u32],
}

impl VertexCutPart {
    /// Opens the topology in `dir`.
    ///
    /// # Errors
    /// If there is none, a file is missing or truncated, or they do not fit together, naming it.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        Self::read(&dir).while_doing(|| format!("opening vertex-cut part {}", dir.display()))
    }

    fn read(dir: &Path) -> Result<Self> {
        let manifest = VertexCutManifest::read(dir)?;
        let (nodes, edges) = (manifest.nodes, manifest.edges);
        let columns = Columns(dir, &manifest.columns);
        let parts = columns.column("parts", nodes)?;
        if parts.width() != manifest.parts.div_ceil(8) {
            let (found, parts) = (8 * parts.width(), manifest.parts);
            let dir = dir.display();
            return Err(Error::invalid(format!(
                "{dir}: expected part sets of {parts} bits, found {found}"
            )));
        }
        for t in &manifest.edge_types {
            let rows = t.columns.iter().filter(|c| !c.name.contains('.'));
            let of_type = Columns(dir, &t.columns);
            rows.into_iter().try_for_each(|c| of_type.column(&c.name, t.count).map(drop))?;
        }
        let ids = Narrow::of(&columns.column("id", nodes)?)?;
        Ok(Self {
            firsts: (0..nodes).step_by(BLOCK as usize).map(|at| ids.get(at)).collect(),
            ids,
            parts: parts.values()?,
            sources: columns.values("in.src", edges)?,
            edges: Narrow::of(&columns.column("out.edge", edges)?)?,
            into: Side::open(&columns, Direction::In, nodes, edges)?,
            out: Side::open(&columns, Direction::Out, nodes, edges)?,
            dir: dir.to_path_buf(),
            manifest,
        })
    }

    /// Contents of `part.json`.
    pub fn manifest(&self) -> &VertexCutManifest {
        &self.manifest
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.manifest.nodes as usize
    }

    /// Number of edges.
    pub fn num_edges(&self) -> u64 {
        self.manifest.edges
    }

    /// Bytes of topology over edges; 0 without any. Edge columns do not count.
    pub fn bytes_per_edge(&self) -> f64 {
        match self.num_edges() {
            0 => 0.0,
            edges => self.manifest.topology_bytes() as f64 / edges as f64,
        }
    }

    /// The in-neighbor lists of all edge types as stored, for bulk reads.
    #[inline]
    pub fn in_lists(&self) -> InLists<'_> {
        InLists {
            indptr: self.into.indptr.as_slice(),
            sources: &self.sources,
            ids: self.ids.as_slice(),
            degrees: &self.into.degree,
        }
    }

    /// Graph-wide id of a node.
    #[inline]
    pub fn global(&self, local: u32) -> u64 {
        self.ids.get(local.into())
    }

    /// Local id of the node `global`, if it is in the part.
    #[inline]
    pub fn local(&self, global: u64) -> Option<u32> {
        let block = self.firsts.partition_point(|&first| first <= global) as u64;
        let from = BLOCK * block.checked_sub(1)?;
        let to = (from + BLOCK).min(self.manifest.nodes);
        let at = from + self.ids.partition_point(from..to, |id| id < global);
        (at < to && self.ids.get(at) == global).then_some(at as u32)
    }

    /// Node type, as a position in the manifest, of a local node.
    pub fn node_type(&self, local: u32) -> usize {
        self.manifest.node_types.partition_point(|t| t.local[1] <= local.into())
    }

    /// Position of an edge type in the manifest, the `edge_type` of the methods below.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn edge_type(&self, triple: &Triple) -> Result<usize> {
        let types = &self.manifest.edge_types;
        types.iter().position(|t| t.triple == *triple).ok_or_else(|| {
            let known: Vec<String> = types.iter().map(|t| t.triple.to_string()).collect();
            Error::invalid(format!("unknown edge type '{triple}'"))
                .hint(format!("there are: {}", known.join(", ")))
        })
    }

    pub(super) fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::In => &self.into,
            Direction::Out => &self.out,
        }
    }

    /// Degree of a node in the whole graph, over all edge types.
    #[inline]
    pub fn degree(&self, local: u32, direction: Direction) -> u32 {
        self.side(direction).degree[local as usize]
    }

    /// Edges of a node in this part, over all edge types.
    #[inline]
    pub fn local_degree(&self, local: u32, direction: Direction) -> u64 {
        let slots = self.side(direction).slots(local);
        slots.end - slots.start
    }

    /// Edge types that a node has in this part, ascending, and over each of them its degree in the
    /// whole graph.
    pub fn edge_types(
        &self,
        local: u32,
        direction: Direction,
    ) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.side(direction).runs(local).map(|run| (run.kind, run.degree))
    }

    /// Degree of a node over one edge type in the whole graph; 0 if there are several types and this
    /// part has no edge of this one.
    pub fn type_degree(&self, local: u32, edge_type: usize, direction: Direction) -> u32 {
        self.side(direction).run_of(local, edge_type).map_or(0, |run| run.degree)
    }

    /// The in-edges of a node over an edge type; none if the part has none of it.
    #[inline]
    pub fn in_list(&self, local: u32, edge_type: usize) -> Option<TypeList<'_>> {
        let run = self.into.run_of(local, edge_type)?;
        let sources = &self.sources[run.slots.start as usize..run.slots.end as usize];
        Some(TypeList { sources, degree: run.degree, row: run.row })
    }

    /// In-neighbors of a node over an edge type, as a slice: local ids, ascending. The edge of the
    /// `i`-th has row `i` of [`VertexCutPart::in_rows`].
    #[inline]
    pub fn sources(&self, local: u32, edge_type: usize) -> &[u32] {
        let slots = self.into.run_of(local, edge_type).map_or(0..0, |run| run.slots);
        &self.sources[slots.start as usize..slots.end as usize]
    }

    /// Rows of a node's in-edges in the columns of their type.
    pub fn in_rows(&self, local: u32, edge_type: usize) -> std::ops::Range<u64> {
        let run = self.into.run_of(local, edge_type);
        run.map_or(0..0, |run| run.row..run.row + run.slots.end - run.slots.start)
    }

    /// The source of an edge.
    #[inline]
    pub fn source(&self, edge: u64) -> u32 {
        self.sources[edge as usize]
    }

    /// The destination of an edge, by binary search.
    #[inline]
    pub fn target(&self, edge: u64) -> u32 {
        self.into.node_of(edge, self.manifest.nodes)
    }

    /// Type of an edge and its row in the type's columns: two binary searches.
    pub fn type_and_row(&self, edge: u64) -> (usize, u64) {
        let Run { kind, slots, row, .. } = self.into.run_at(self.target(edge), edge);
        (kind, row + edge - slots.start)
    }

    /// The edge at a position of the out-neighbor lists.
    #[inline]
    pub(super) fn out_edge(&self, slot: u64) -> u64 {
        self.edges.get(slot)
    }

    /// The column `name` of the edges of a type, if there is one.
    pub fn edge_column(&self, edge_type: usize, name: &str) -> Result<Option<Column>> {
        let columns = self.manifest.edge_types.get(edge_type).map_or(&[][..], |t| &t.columns);
        let spec = columns.iter().find(|c| c.name == name);
        spec.map(|spec| Column::open(&self.dir, spec)).transpose()
    }

    /// The time of each node, the earliest of all where its type has none; none if no type has times.
    ///
    /// # Errors
    /// If the file is missing or truncated.
    pub fn times_of_nodes(&self) -> Result<Option<Buf<i64>>> {
        let columns = Columns(&self.dir, &self.manifest.columns);
        let known = self.manifest.columns.iter().any(|spec| spec.name == TIMES);
        known.then(|| columns.values(TIMES, self.manifest.nodes)).transpose()
    }

    /// Parts that hold a node, ascending, this one included.
    pub fn parts_of(&self, local: u32) -> impl Iterator<Item = usize> + '_ {
        let width = self.manifest.parts.div_ceil(8);
        let set = &self.parts[local as usize * width..][..width];
        (0..self.manifest.parts).filter(|p| set[p / 8] >> (p % 8) & 1 == 1)
    }

    /// Recomputes the checksums of all files. Returns how many there are.
    ///
    /// # Errors
    /// At the first that differs, naming it.
    pub fn verify(&self) -> Result<usize> {
        let carried = self.manifest.edge_types.iter().flat_map(|t| &t.columns);
        let mut files = 0;
        for spec in self.manifest.columns.iter().chain(carried) {
            Column::open(&self.dir, spec)
                .and_then(|column| column.verify())
                .while_doing(|| format!("verifying {}", self.dir.display()))?;
            files += 1;
        }
        Ok(files)
    }
}
