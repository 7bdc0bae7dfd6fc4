//! Partitioned datasets on disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::error::{Context, Error, Result};
use gnarl_common::memory::SparePages;
use gnarl_common::{Buf, Folder, IdMap, Place, Subfolder, sealed_json};
use gnarl_graph::blocks::Schema;
use gnarl_graph::{Column, ColumnSpec, Dataset, Triple, check_columns};
use serde::{Deserialize, Serialize};

use crate::edge_cut::partitioner::MAX_PARTS;
use crate::part_layout::PartLayout;
use crate::report::PartitionReport;
use crate::write::buckets::{BUCKETS, BucketFiles, EdgeBuckets};
use crate::write::catalog::CATALOG;
use crate::write::targets::{PartTargets, TARGETS, TargetsManifest};
use crate::write::vertex_cut_layout::{TOPOLOGY, VertexCutPart};

/// File name of the manifest.
pub const PARTITION: &str = "partition.json";
/// Version written and read by this build.
pub const PARTITION_VERSION: u32 = 1;

/// Contents of `partition.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionManifest {
    /// Always `gnarl-partition`.
    pub format: String,
    /// Format version, see [`PARTITION_VERSION`].
    pub version: u32,
    /// The dataset that was partitioned.
    pub source: SourceInfo,
    /// Name of the partitioner.
    pub algorithm: String,
    /// Its parameters.
    pub parameters: serde_json::Value,
    /// Seed of every random choice.
    pub seed: u64,
    /// Number of parts.
    pub parts: usize,
    /// Layout of the parts.
    #[serde(default)]
    pub layout: PartLayout,
    /// Hops of halo nodes, see [`PartitionConfig::hops`](crate::PartitionConfig::hops).
    pub hops: u32,
    /// Node types in the order of the source.
    pub node_types: Vec<PartitionedType>,
    /// Edge types in the order of the source; empty in partitions written before they were recorded.
    #[serde(default)]
    pub edge_types: Vec<PartitionedEdges>,
    /// Sizes of each part.
    pub part_counts: Vec<PartCounts>,
    /// Edges from part (row) to part (column).
    pub cut: Vec<Vec<u64>>,
    /// Quality and cost.
    pub report: PartitionReport,
    /// The target edges of a task, if the partition was made for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetsManifest>,
}

/// The dataset that was partitioned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Its directory when it was partitioned.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// A fingerprint of its counts and column checksums, 16 hexadecimal digits.
    pub fingerprint: String,
}

/// A node type and its id map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionedType {
    /// Name.
    pub name: String,
    /// Number of nodes.
    pub count: u64,
    /// `parts + 1` ascending new ids: part `i` owns the nodes `ranges[i]..ranges[i + 1]`.
    pub ranges: Vec<u64>,
    /// Columns with one row for each node in dataset order: `assignment` (u32, its part), `new_id`
    /// (u64), and except in layout `storage` `holders` (u8 rows, bit `p % 8` of byte `p / 8` set if part `p` holds it as
    /// HALO).
    pub columns: Vec<ColumnSpec>,
}

/// An edge type of a partitioned graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionedEdges {
    /// `source:relation:destination`.
    #[serde(rename = "type")]
    pub triple: Triple,
    /// Its columns beside the endpoints.
    pub columns: Vec<PartitionedColumn>,
}

/// A column of an edge type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionedColumn {
    /// Name, such as `weight`.
    pub name: String,
    /// Values of a row.
    pub width: u64,
}

impl PartitionedEdges {
    /// The edge type of `triple` with `columns`, of which those of lists have a dot in their names.
    pub(crate) fn new(triple: &Triple, columns: &[ColumnSpec]) -> Self {
        let of_lists = |name: &str| ["src", "dst"].contains(&name) || name.contains('.');
        let carried = columns.iter().filter(|column| !of_lists(&column.name));
        let column = |column: &ColumnSpec| PartitionedColumn {
            name: column.name.clone(),
            width: column.shape[1..].iter().product(),
        };
        Self { triple: triple.clone(), columns: carried.map(column).collect() }
    }

    /// Values of a row of the column `name`; 0 if there is none.
    pub fn width(&self, name: &str) -> usize {
        let found = self.columns.iter().find(|column| column.name == name);
        found.map_or(0, |column| column.width as usize)
    }

    /// Returns whether edges have weights.
    pub fn is_weighted(&self) -> bool {
        self.width("weight") > 0
    }
}

/// Sizes of a part. In a vertex cut, HALO nodes are its nodes that another part owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartCounts {
    /// Nodes the part owns, by node type.
    pub core: Vec<u64>,
    /// Halo nodes, by node type.
    pub halo: Vec<u64>,
    /// Edges stored, by edge type.
    pub edges: Vec<u64>,
}

/// A partitioned dataset, opened.
#[derive(Debug, Clone)]
pub struct PartitionedDataset {
    dir: PathBuf,
    /// Files that are read by ranges: those of `dir`, or of the folder elsewhere whose other files it has.
    place: Arc<dyn Place>,
    manifest: PartitionManifest,
    /// The id maps read so far, by node type.
    id_maps: Arc<Mutex<HashMap<String, Arc<IdMap>>>>,
}

impl PartitionedDataset {
    /// Opens the partitioned dataset in `dir`.
    ///
    /// # Errors
    /// If there is none, or it was written by another version.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let place = Arc::new(Folder(dir.clone()));
        Self::open_in(dir, place)
    }

    /// Opens the partitioned dataset of `place`, whose files are in `dir` as well, as far as they are
    /// read whole ([`is_read_whole`](crate::is_read_whole)).
    ///
    /// # Errors
    /// As [`PartitionedDataset::open`].
    pub fn open_in(dir: impl Into<PathBuf>, place: Arc<dyn Place>) -> Result<Self> {
        let dir = dir.into();
        let manifest =
            read(&dir).while_doing(|| format!("opening partitioned dataset {}", dir.display()))?;
        Ok(Self { dir, place, manifest, id_maps: Arc::default() })
    }

    /// The partition with files read past the system's cache; none where they are in no such cache.
    pub fn uncached(&self) -> Option<Self> {
        Some(Self { place: self.place.uncached()?, ..self.clone() })
    }

    /// Directory of the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Contents of `partition.json`.
    pub fn manifest(&self) -> &PartitionManifest {
        &self.manifest
    }

    /// Number of parts.
    pub fn num_parts(&self) -> usize {
        self.manifest.parts
    }

    /// The dataset of part `index`: core nodes first, then HALO nodes, each ascending by dataset
    /// id (column `orig_id`). In a vertex cut it has core nodes only, and no edges: these are in
    /// its [`PartitionedDataset::topology`].
    pub fn part(&self, index: usize) -> Result<Dataset> {
        self.check_part(index)?;
        Dataset::open(self.dir.join(part_dir(index)))
    }

    /// As [`PartitionedDataset::part`], with columns that are read into memory of `spare` pages, and checked.
    ///
    /// # Errors
    /// If there is no such part, or it is damaged.
    pub fn part_in_memory(&self, index: usize, spare: &Arc<SparePages>) -> Result<Dataset> {
        let place = Subfolder::new(self.place.clone(), &part_dir(index));
        Ok(self.part(index)?.in_memory(Arc::new(place), spare.clone()))
    }

    /// Begins to read the columns of part `index` that `wanted` is true for, as far as its place can.
    ///
    /// # Errors
    /// If there is no such part, or its manifest is damaged.
    pub fn expect_part(&self, index: usize, wanted: &dyn Fn(&ColumnSpec) -> bool) -> Result<()> {
        let place = Subfolder::new(self.place.clone(), &part_dir(index));
        let part = self.part(index)?;
        let columns = part.manifest().node_types.iter().flat_map(|node| &node.columns);
        for column in columns.filter(|column| wanted(column)) {
            place.expect(&column.file, 0..u64::MAX);
        }
        Ok(())
    }

    /// All nodes by their dataset ids: ids as given, labels, splits and names, without features and edges; none in
    /// partitions written before there was such a catalog.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn catalog(&self) -> Result<Option<Dataset>> {
        let dir = self.dir.join(CATALOG);
        dir.exists().then(|| Dataset::open(dir)).transpose()
    }

    /// Returns whether the files of part `index` are here.
    pub fn has_part(&self, index: usize) -> bool {
        index < self.num_parts() && self.dir.join(part_dir(index)).exists()
    }

    /// The edges of part `index` of a vertex cut.
    ///
    /// # Errors
    /// If there is no such part, it is damaged, or the layout is another.
    pub fn topology(&self, index: usize) -> Result<VertexCutPart> {
        self.check_part(index)?;
        self.check_layout(PartLayout::VertexCut)?;
        VertexCutPart::open(self.dir.join(part_dir(index)).join(TOPOLOGY))
    }

    /// The edges grouped by the parts of their endpoints, if buckets were requested.
    ///
    /// # Errors
    /// If there are none, or they are damaged.
    pub fn buckets(&self) -> Result<EdgeBuckets> {
        EdgeBuckets::open(self.dir.join(BUCKETS))
    }

    /// The buckets of each of some edge types, which are read into memory one by one.
    ///
    /// # Errors
    /// As [`BucketFiles::open`].
    pub fn bucket_files(&self, edge_types: &[Triple]) -> Result<Vec<BucketFiles>> {
        let place: Arc<dyn Place> = Arc::new(Subfolder::new(self.place.clone(), BUCKETS));
        BucketFiles::open(&self.dir.join(BUCKETS), &place, edge_types)
    }

    /// The target edges of part `index`; `None` if the partition has none.
    ///
    /// # Errors
    /// If there is no such part, or its files are damaged, naming the file.
    pub fn targets(&self, index: usize) -> Result<Option<PartTargets>> {
        self.check_part(index)?;
        let Some(manifest) = &self.manifest.targets else { return Ok(None) };
        let opened = PartTargets::open(&self.targets_dir(index), manifest, index);
        opened.map(Some).while_doing(|| format!("opening the target edges of part {index}"))
    }

    /// Recomputes the checksums of the target edges of part `index`. Returns the number of files.
    ///
    /// # Errors
    /// If there is no such part, and at the first file that differs, naming it.
    pub fn verify_targets(&self, index: usize) -> Result<usize> {
        self.check_part(index)?;
        let Some(manifest) = &self.manifest.targets else { return Ok(0) };
        PartTargets::verify(&self.targets_dir(index), manifest, index)
            .while_doing(|| format!("verifying the target edges of part {index}"))
    }

    fn targets_dir(&self, index: usize) -> PathBuf {
        self.dir.join(part_dir(index)).join(TARGETS)
    }

    /// Rejects another layout than `wanted`.
    ///
    /// # Errors
    /// [`Kind::Usage`](gnarl_common::Kind::Usage) with the option for that layout.
    pub fn check_layout(&self, wanted: PartLayout) -> Result<()> {
        if self.manifest.layout == wanted { Ok(()) } else { Err(self.wrong_layout(wanted)) }
    }

    fn wrong_layout(&self, wanted: PartLayout) -> Error {
        let (dir, found) = (self.dir.display(), self.manifest.layout);
        Error::usage(format!("{dir}: expected parts of layout {wanted}, found {found}"))
            .hint(format!("partition the graph again with --layout {wanted}"))
    }

    /// The error of readers that need lists in every part, which those of layout `storage` lack.
    pub fn without_lists(&self) -> Error {
        let dir = self.dir.display();
        let layout = self.manifest.layout;
        Error::usage(format!("{dir}: parts of layout {layout} have no lists of their own"))
            .hint("partition the graph again with --layout edge-cut, or train with strategy 'disaggregated'")
    }

    fn check_part(&self, index: usize) -> Result<()> {
        if index < self.num_parts() {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{}: there is no part {index}, only {}",
            self.dir.display(),
            self.num_parts()
        )))
    }

    /// The node and edge types, numbered as in the source.
    ///
    /// # Errors
    /// If the partition does not name its edge types, and no part is here that does.
    pub fn schema(&self) -> Result<Schema> {
        let mut schema = Schema::default();
        self.manifest.node_types.iter().for_each(|t| schema.add_node_type(&t.name));
        for PartitionedEdges { triple, .. } in self.edge_types()? {
            let src = schema.node_type(&triple.src)?;
            let dst = schema.node_type(&triple.dst)?;
            schema.add_edge_type(triple, src, dst);
        }
        Ok(schema)
    }

    /// The edge types, in the order of the source.
    ///
    /// # Errors
    /// As [`PartitionedDataset::schema`].
    pub fn edge_types(&self) -> Result<Vec<PartitionedEdges>> {
        if !self.manifest.edge_types.is_empty() {
            return Ok(self.manifest.edge_types.clone());
        }
        let here = (0..self.num_parts()).find(|&part| self.has_part(part));
        let part = here.ok_or_else(|| {
            Error::invalid(format!("{}: {PARTITION} names no edge types", self.dir.display()))
                .hint("partition the graph again with this version of gnarl")
        })?;
        if self.manifest.layout == PartLayout::VertexCut {
            let topology = self.topology(part)?;
            let types = topology.manifest().edge_types.iter();
            return Ok(types.map(|t| PartitionedEdges::new(&t.triple, &t.columns)).collect());
        }
        let dataset = self.part(part)?;
        let types = dataset.manifest().edge_types.iter();
        Ok(types.map(|t| PartitionedEdges::new(&t.triple, &t.columns)).collect())
    }

    /// The node type `name`.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn node_type(&self, name: &str) -> Result<&PartitionedType> {
        self.manifest.node_types.iter().find(|t| t.name == name).ok_or_else(|| {
            let known: Vec<&str> =
                self.manifest.node_types.iter().map(|t| t.name.as_str()).collect();
            Error::invalid(format!("unknown node type '{name}'"))
                .hint(format!("there are: {}", known.join(", ")))
        })
    }

    /// The part of each node of a type and its position there, in memory, by dataset ids. It is read once.
    ///
    /// # Errors
    /// If there is no such type, or its columns disagree.
    pub fn id_map(&self, ntype: &str) -> Result<Arc<IdMap>> {
        let mut known = self.id_maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = known.get(ntype) {
            return Ok(map.clone());
        }
        let read = || {
            let assignment = self.assignment(ntype)?;
            let map = IdMap::new(self.num_parts(), &assignment)?;
            // It is read no more.
            assignment.forget(0..assignment.len());
            if map.starts() != self.node_type(ntype)?.ranges {
                return Err(Error::invalid(
                    "the ranges of parts and the part of each node disagree",
                ));
            }
            Ok(Arc::new(map))
        };
        let map = read().while_doing(|| {
            format!("reading the parts of nodes of type '{ntype}' in {}", self.dir.display())
        })?;
        known.insert(ntype.to_string(), map.clone());
        Ok(map)
    }

    /// The part of each node of a type, in dataset order.
    pub fn assignment(&self, ntype: &str) -> Result<Buf<u32>> {
        self.column(ntype, "assignment")?.values()
    }

    /// The new id, within the type, of each of its nodes, in dataset order.
    pub fn new_ids(&self, ntype: &str) -> Result<Buf<u64>> {
        self.column(ntype, "new_id")?.values()
    }

    /// The part that owns the new id `id` of a node type.
    ///
    /// # Errors
    /// If no part does.
    pub fn owner(&self, ntype: &str, id: u64) -> Result<usize> {
        let t = self.node_type(ntype)?;
        if id >= t.count {
            return Err(Error::invalid(format!(
                "node {id} of type {ntype} does not exist: there are {} nodes",
                t.count
            )));
        }
        Ok(t.ranges.partition_point(|&start| start <= id) - 1)
    }

    /// An id-map column of a node type, see [`PartitionedType::columns`].
    pub fn column(&self, ntype: &str, name: &str) -> Result<Column> {
        let spec = self.node_type(ntype)?.columns.iter().find(|c| c.name == name);
        let missing = || Error::invalid(format!("{ntype}: no column {name} in {PARTITION}"));
        Column::open(&self.dir, spec.ok_or_else(missing)?)
    }
}

/// Directory of part `index` within a partitioned dataset.
pub(crate) fn part_dir(index: usize) -> String {
    format!("part-{index}")
}

fn read(dir: &Path) -> Result<PartitionManifest> {
    let path = dir.join(PARTITION);
    if !path.exists() {
        return Err(Error::invalid(format!("no {PARTITION} here"))
            .hint("make a partitioned dataset with 'gnarl partition'"));
    }
    let manifest: PartitionManifest = sealed_json::read(&path)?;
    if manifest.format != "gnarl-partition" || manifest.version != PARTITION_VERSION {
        return Err(Error::invalid(format!(
            "format '{}' version {}, this build reads 'gnarl-partition' version \
             {PARTITION_VERSION}",
            manifest.format, manifest.version
        )));
    }
    check_counts(&manifest)?;
    Ok(manifest)
}

/// Rejects a manifest whose lists by part, which readers index, are not of its number of parts.
fn check_counts(manifest: &PartitionManifest) -> Result<()> {
    let parts = manifest.parts;
    let wrong = |what: &str| Err(Error::invalid(format!("{PARTITION}: {what} of {parts} parts")));
    if !(1..=MAX_PARTS).contains(&parts) {
        return wrong("an impossible partition");
    }
    if manifest.part_counts.len() != parts {
        return wrong("part_counts are not those");
    }
    for of in &manifest.node_types {
        let spans = of.ranges.first() == Some(&0) && of.ranges.last() == Some(&of.count);
        if of.ranges.len() != parts + 1 || !of.ranges.is_sorted() || !spans {
            return wrong(&format!("the ranges of '{}' are not those", of.name));
        }
        check_columns(&of.name, &of.columns)?;
    }
    Ok(())
}
