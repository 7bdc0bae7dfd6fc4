//! Graphs as numpy arrays.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Result};
use serde_json::json;

use super::array::ArrayReader;
use super::columns;
use super::edge_arrays::EdgeArrays;
use super::errors::{check_count, empty_graph};
use super::extra::EdgeSink;
use super::report::{Imported, finish};
use super::reverses::Reverses;
use super::source::{Npz, Source};
use super::splits::add_split;
use super::weights::WeightType;
use crate::edges::CHUNK_EDGES;
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Files and options of [`npy`].
#[derive(Debug, Clone)]
pub struct NpyOptions {
    /// Edges `[2, E]` of integers: row 0 sources, row 1 destinations.
    pub edges: PathBuf,
    /// Features: `[N, F]` in an npy file (f32, f16 and u8 are kept, others become f32), or a
    /// scipy-style CSR npz file.
    pub features: Option<PathBuf>,
    /// Labels: `[N]` classes, -1 or NaN meaning none, or `[N, C]` of 0 and 1.
    pub labels: Option<PathBuf>,
    /// Numbers of nodes that a regression learns: `[N]`, NaN meaning none.
    pub values: Option<PathBuf>,
    /// Times of nodes: `[N]` integers.
    pub times: Option<PathBuf>,
    /// Number of classes; by default from the largest label.
    pub num_classes: Option<u64>,
    /// Named splits: vectors of ids, or of booleans.
    pub splits: Vec<(String, PathBuf)>,
    /// One number per edge, stored in the edge column `weight`.
    pub weights: Option<PathBuf>,
    /// The type of that column.
    pub weight_type: WeightType,
    /// Times of edges: `[E]` integers.
    pub edge_times: Option<PathBuf>,
    /// Features of edges: `[E, F]`, stored as f32.
    pub edge_features: Option<PathBuf>,
    /// Labels of edges: `[E]` classes, -1 or NaN meaning none, or `[E, C]` of 0 and 1.
    pub edge_labels: Option<PathBuf>,
    /// Alternatively one number per edge, to be learned by regression.
    pub edge_values: Option<PathBuf>,
    /// Splits `train`, `valid` and `test` of edges: `[E]` booleans.
    pub edge_splits: Vec<(String, PathBuf)>,
    /// Number of nodes; by default from features, labels or the largest id.
    pub num_nodes: Option<u64>,
    /// Store the reverse of every edge too (self loops once).
    pub symmetrize: bool,
    /// Drop repeated edges; by default when symmetrizing edges without columns.
    pub coalesce: Option<bool>,
    /// Memory limit in bytes.
    pub memory: u64,
}

impl NpyOptions {
    /// Only edges, 1 GiB of memory.
    pub fn new(edges: impl Into<PathBuf>) -> Self {
        Self {
            edges: edges.into(),
            features: None,
            labels: None,
            values: None,
            times: None,
            num_classes: None,
            splits: Vec::new(),
            weights: None,
            edge_times: None,
            edge_features: None,
            weight_type: WeightType::default(),
            edge_labels: None,
            edge_values: None,
            edge_splits: Vec::new(),
            num_nodes: None,
            symmetrize: false,
            coalesce: None,
            memory: 1 << 30,
        }
    }
}

/// Makes the dataset `out` from numpy arrays. Ids are kept as they are; the number of nodes comes
/// from features, labels, times or `num_nodes`, which must agree, else it is the largest id plus one.
///
/// # Errors
/// For the first bad value, with file and row; nothing is left at `out` then.
pub fn npy(options: &NpyOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing npy")
}

fn import(options: &NpyOptions, out: &Path) -> Result<Imported> {
    let edges = EdgeArray::open(Source::npy(&options.edges)?)?;
    let count = match count_nodes(options)? {
        Some(count) => count,
        None => edges.again()?.largest()?.count(),
    };
    let nodes = count.nodes;
    check_count(nodes, options.memory, || count.by.clone())?;
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(nodes))?;
    writer.origin(json!({ "importer": "npy", "edges": options.edges.display().to_string() }));
    writer.add_node_type(DEFAULT_NODE_TYPE, nodes);
    if let Some(path) = &options.features {
        write_features(&mut writer, DEFAULT_NODE_TYPE, nodes, path)?;
    }
    if let Some(path) = &options.labels {
        let array = ArrayReader::open(Source::npy(path)?)?;
        columns::labels(&mut writer, DEFAULT_NODE_TYPE, nodes, array, options.num_classes)?;
    }
    if let Some(path) = &options.values {
        let array = ArrayReader::open(Source::npy(path)?)?;
        columns::values(&mut writer, DEFAULT_NODE_TYPE, nodes, array)?;
    }
    if let Some(path) = &options.times {
        let array = ArrayReader::open(Source::npy(path)?)?;
        columns::times(&mut writer, DEFAULT_NODE_TYPE, nodes, array)?;
    }
    for (name, path) in &options.splits {
        let ids = columns::split_ids(ArrayReader::open(Source::npy(path)?)?, nodes)?;
        add_split(&mut writer, DEFAULT_NODE_TYPE, name, ids)
            .while_doing(|| path.display().to_string())?;
    }
    let mut beside = EdgeArrays::default();
    if let Some(path) = &options.weights {
        beside.weights(ArrayReader::open(Source::npy(path)?)?, options.weight_type);
    }
    if let Some(path) = &options.edge_times {
        beside.times(ArrayReader::open(Source::npy(path)?)?);
    }
    if let Some(path) = &options.edge_features {
        beside.features(ArrayReader::open(Source::npy(path)?)?)?;
    }
    let (labels, values) = (options.edge_labels.as_deref(), options.edge_values.as_deref());
    beside.answers(labels, values, &options.edge_splits)?;
    let coalesce = options.coalesce.unwrap_or(options.symmetrize && beside.is_empty());
    let triple = Triple::plain();
    let reverses = Reverses::within(options.symmetrize);
    write_edges(&mut writer, &triple, (&count, &count), edges, beside, reverses)?;
    finish(
        writer,
        FinishOptions { memory: options.memory, coalesce, ..Default::default() },
        Vec::new(),
    )
}

/// The number of nodes that features, labels and `num_nodes` state.
fn count_nodes(options: &NpyOptions) -> Result<Option<Count>> {
    let mut stated = options.num_nodes.map(Count::stated);
    let nodes = options.features.iter().chain(&options.labels).chain(&options.values);
    for path in nodes.chain(&options.times) {
        stated = Some(Count::of_rows(path, stated)?);
    }
    Ok(stated)
}

/// A number of nodes and its origin.
#[derive(Debug, Clone)]
pub(super) struct Count {
    pub nodes: u64,
    pub by: String,
}

impl Count {
    /// Stated by the user.
    pub fn stated(nodes: u64) -> Self {
        Self { nodes, by: "--num-nodes".into() }
    }

    /// Stated by files of the imported dataset.
    pub fn of_dataset(nodes: u64) -> Self {
        Self { nodes, by: "the number of nodes that the dataset states".into() }
    }

    /// Stated by the rows of an array, or by `before`.
    ///
    /// # Errors
    /// If they differ.
    pub fn of_rows(path: &Path, before: Option<Self>) -> Result<Self> {
        let (nodes, by) = (rows_of(path)?, format!("the number of rows of {}", path.display()));
        match before {
            Some(before) if before.nodes != nodes => Err(Error::invalid(format!(
                "{}: has {nodes} rows, {} is {}",
                path.display(),
                before.by,
                before.nodes
            ))),
            _ => Ok(Self { nodes, by }),
        }
    }
}

/// The largest id of an array, and its position.
#[derive(Debug, Clone, Default)]
pub(super) struct Largest {
    pub id: u64,
    place: String,
}

impl Largest {
    /// Updates from ids that a file calls `name`, of which the first is in `row`.
    pub fn see(&mut self, name: &str, row: u64, what: &str, ids: &[u64]) {
        if let Some((at, &id)) = ids.iter().enumerate().max_by_key(|(_, id)| **id)
            && (id > self.id || self.place.is_empty())
        {
            let row = row + at as u64;
            *self = Self { id, place: format!("{name}: row {row}: {what} id {id}") };
        }
    }

    /// The larger of two.
    pub fn or(self, other: Self) -> Self {
        if other.id > self.id || self.place.is_empty() { other } else { self }
    }

    /// The number of nodes implied.
    pub fn count(self) -> Count {
        Count { nodes: self.id + 1, by: self.place }
    }
}

/// Number of rows of an array or of a CSR archive.
pub(super) fn rows_of(path: &Path) -> Result<u64> {
    if is_npz(path) {
        return Ok(columns::csr_shape(&mut Npz::open(path, &std::env::temp_dir())?)?.0);
    }
    Ok(ArrayReader::open(Source::npy(path)?)?.shape().first().copied().unwrap_or(0))
}

fn is_npz(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "npz")
}

/// Writes the features in `path`, an npy file or a CSR npz archive.
pub(super) fn write_features(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    path: &Path,
) -> Result<()> {
    if is_npz(path) {
        let mut npz = Npz::open(path, writer.tmp_dir())?;
        return columns::csr_features(writer, ntype, nodes, &mut npz);
    }
    columns::dense_features(writer, ntype, nodes, ArrayReader::open(Source::npy(path)?)?)
}

/// An edge array `[2, E]`, read in chunks.
pub(super) struct EdgeArray {
    /// The first row, or all of it in column-major order.
    src: ArrayReader,
    /// The second row; unused in column-major order.
    dst: ArrayReader,
    pairs: Vec<u64>,
}

impl EdgeArray {
    /// Opens the array and checks its shape and type.
    pub fn open(source: Source) -> Result<Self> {
        let src = ArrayReader::open(source)?;
        if src.len() == 0 {
            return Err(empty_graph(Path::new(src.name())));
        }
        let [2, count] = *src.shape() else {
            return Err(src
                .error(format!("has shape {:?}, edges are [2, E]", src.shape()))
                .hint("row 0 holds the sources, row 1 the destinations; transpose it if need be"));
        };
        src.expect_integers()?;
        let mut dst = src.again()?;
        dst.seek(count)?;
        Ok(Self { src, dst, pairs: Vec::new() })
    }

    /// A second reader of the same array, at its start.
    pub fn again(&self) -> Result<Self> {
        let (src, mut dst) = (self.src.again()?, self.src.again()?);
        dst.seek(src.len() / 2)?;
        Ok(Self { src, dst, pairs: Vec::new() })
    }

    /// Number of edges.
    pub fn len(&self) -> u64 {
        self.src.len() / 2
    }

    /// Name in messages.
    pub fn name(&self) -> &str {
        self.src.name()
    }

    /// Replaces the buffers by the next edges; `false` at the end.
    pub fn read(&mut self, src: &mut Vec<u64>, dst: &mut Vec<u64>) -> Result<bool> {
        if !self.src.fortran() {
            let left = self.src.left() - self.len();
            self.src.read_ids((CHUNK_EDGES as u64).min(left) as usize, "source", 0, src)?;
            let base = self.len();
            return self.dst.read_ids(CHUNK_EDGES, "destination", base, dst);
        }
        let first = (self.src.len() - self.src.left()) / 2;
        let more = self.src.read_ids(2 * CHUNK_EDGES, "node", 0, &mut self.pairs);
        let more = more.while_doing(|| format!("edges from {first}, two ids each"))?;
        src.clear();
        dst.clear();
        for pair in self.pairs.chunks_exact(2) {
            src.push(pair[0]);
            dst.push(pair[1]);
        }
        Ok(more)
    }

    /// The largest id.
    fn largest(self) -> Result<Largest> {
        self.largest_of_ends().map(|(src, dst)| src.or(dst))
    }

    /// The largest ids of sources and of destinations.
    pub fn largest_of_ends(mut self) -> Result<(Largest, Largest)> {
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        let (mut sources, mut destinations) = (Largest::default(), Largest::default());
        let (name, mut row) = (self.name().to_string(), 0);
        while self.read(&mut src, &mut dst)? {
            sources.see(&name, row, "source", &src);
            destinations.see(&name, row, "destination", &dst);
            row += src.len() as u64;
        }
        Ok((sources, destinations))
    }
}

/// Writes an edge type from its array and its edge columns; `limits` are the numbers of source and
/// destination nodes.
pub(super) fn write_edges(
    writer: &mut DatasetWriter,
    triple: &Triple,
    limits: (&Count, &Count),
    mut edges: EdgeArray,
    mut beside: EdgeArrays,
    reverses: Reverses,
) -> Result<()> {
    beside.check_rows(edges.len())?;
    let counts = (limits.0.nodes, limits.1.nodes);
    let mut out = EdgeSink::create(writer, triple, counts, &beside.extras(), reverses)?;
    let mut src = Vec::new();
    let mut dst = Vec::new();
    let mut values = Vec::new();
    let mut row = 0u64;
    while edges.read(&mut src, &mut dst)? {
        values.clear();
        beside.read(src.len(), row, &mut values)?;
        check_ids(edges.name(), row, &src, &dst, limits)?;
        row += src.len() as u64;
        out.push(&src, &dst, &values)?;
    }
    let mut names = Vec::new();
    if let Some(numbering) = beside.numbering() {
        numbering.report(writer, &triple.to_string(), "edges");
        names = numbering.names(
            |name| writer.edge_column(triple, name, &[]),
            |name| writer.edge_column(triple, name, &[]),
        )?;
    }
    beside.splits().report(writer, &triple.to_string());
    out.finish(writer, names)?;
    writer.edge_type(triple)?.classes = beside.classes();
    Ok(())
}

/// Rejects ids that are not below the number of nodes, with file and row, and the number's origin.
pub(super) fn check_ids(
    name: &str,
    first: u64,
    src: &[u64],
    dst: &[u64],
    limits: (&Count, &Count),
) -> Result<()> {
    for (what, ids, limit) in [("source", src, limits.0), ("destination", dst, limits.1)] {
        let Some(i) = ids.iter().position(|&id| id >= limit.nodes) else { continue };
        let Count { nodes, by } = limit;
        return Err(Error::invalid(format!(
            "{name}: row {}: {what} id {} is not below the number of nodes, {nodes}",
            first + i as u64,
            ids[i]
        ))
        .hint(format!("{by} is {nodes}; ids count up from 0")));
    }
    Ok(())
}
