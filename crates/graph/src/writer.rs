//! Writing datasets: columns go to a temporary directory that takes its name at the end.

use std::path::{Path, PathBuf};

use crate::column::{Column, ColumnSpec};
use crate::csc::{self, CscJob};
use crate::dataset::Dataset;
use crate::dtype::Element;
use crate::error::{Context, Error, Result, ResultExt};
use crate::manifest::{EdgeFacts, EdgeType, MANIFEST, Manifest, NodeType, Triple, VERSION};
use crate::npy::NpyWriter;

/// Width of stored ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdWidth {
    /// Ids below 2^32.
    U32,
    /// Any id.
    U64,
}

impl IdWidth {
    /// The narrowest width for `num_nodes` nodes.
    pub fn for_nodes(num_nodes: u64) -> Self {
        if num_nodes <= 1 << 32 { Self::U32 } else { Self::U64 }
    }
}

/// How the topology is finished.
#[derive(Debug, Clone, Copy)]
pub struct FinishOptions {
    /// Bytes that building the CSC may hold.
    pub memory: u64,
    /// Drop repeated edges (edges then carry no columns of their own).
    pub coalesce: bool,
}

impl Default for FinishOptions {
    fn default() -> Self {
        Self { memory: 1 << 30, coalesce: false }
    }
}

/// A dataset being written. Nothing appears under its name until [`DatasetWriter::finish`];
/// dropping the writer removes what was written.
#[derive(Debug)]
pub struct DatasetWriter {
    out: PathBuf,
    tmp: PathBuf,
    width: IdWidth,
    manifest: Manifest,
    finished: bool,
}

impl DatasetWriter {
    /// Starts a dataset that will appear at `out`. An existing dataset there is replaced at the
    /// end; any other existing directory is refused.
    pub fn create(out: impl Into<PathBuf>, width: IdWidth) -> Result<Self> {
        let out: PathBuf = out.into();
        let empty = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut d| d.next().is_none());
        if out.exists() && !out.join(MANIFEST).exists() && !empty(&out) {
            return Err(Error::usage(format!("{}: exists and is not a dataset", out.display()))
                .hint("choose another --out, or remove it"));
        }
        let Some(name) = out.file_name().map(|n| n.to_string_lossy().into_owned()) else {
            return Err(Error::usage(format!("{}: names no directory", out.display()))
                .hint("give the dataset a name, such as data/graph"));
        };
        let tmp = out.with_file_name(format!("{name}.tmp-{}", std::process::id()));
        std::fs::create_dir_all(&tmp).at(&tmp)?;
        let manifest = Manifest {
            format: "gnarl-dataset".into(),
            version: VERSION,
            name,
            id_width: if width == IdWidth::U32 { 32 } else { 64 },
            node_types: Vec::new(),
            edge_types: Vec::new(),
            origin: serde_json::Value::Null,
        };
        Ok(Self { out, tmp, width, manifest, finished: false })
    }

    /// Where columns are written before the end.
    pub fn tmp_dir(&self) -> &Path {
        &self.tmp
    }

    /// Records where the data came from.
    pub fn origin(&mut self, origin: serde_json::Value) {
        self.manifest.origin = origin;
    }

    /// A name for people; the directory's name unless set.
    pub fn name(&mut self, name: impl Into<String>) {
        self.manifest.name = name.into();
    }

    /// Adds a node type of `count` nodes.
    pub fn add_node_type(&mut self, name: &str, count: u64) -> &mut NodeType {
        self.manifest.node_types.push(NodeType {
            name: name.into(),
            count,
            core: None,
            classes: None,
            csr_width: None,
            columns: Vec::new(),
        });
        self.manifest.node_types.last_mut().expect("just pushed")
    }

    /// A node type added before.
    pub fn node_type(&mut self, name: &str) -> Result<&mut NodeType> {
        let known = self.manifest.node_type(name).err();
        let found = self.manifest.node_types.iter_mut().find(|t| t.name == name);
        found.ok_or_else(|| known.unwrap_or_else(|| Error::invalid("node type vanished")))
    }

    /// Adds an edge type; its `src` and `dst` columns come from an [`EdgeWriter`].
    pub fn add_edge_type(&mut self, triple: Triple, columns: Vec<ColumnSpec>) {
        let count = columns.first().and_then(|c| c.shape.first()).copied().unwrap_or(0);
        self.manifest.edge_types.push(EdgeType {
            triple,
            count,
            facts: EdgeFacts::default(),
            columns,
        });
    }

    /// Starts a column of a node type; add what [`ColumnWriter::finish`] returns to its columns.
    pub fn node_column<T: Element>(
        &self,
        ntype: &str,
        name: &str,
        row: &[u64],
    ) -> Result<ColumnWriter<T>> {
        ColumnWriter::create(&self.tmp, &safe(ntype), name, row)
    }

    /// Starts a column of an edge type.
    pub fn edge_column<T: Element>(
        &self,
        t: &Triple,
        name: &str,
        row: &[u64],
    ) -> Result<ColumnWriter<T>> {
        ColumnWriter::create(&self.tmp, &edge_stem(t), name, row)
    }

    /// Starts the id columns of an edge type. With `limits` (source and destination node counts),
    /// ids are checked as they come; without, [`EdgeWriter::largest`] tells them at the end.
    pub fn edge_writer(&self, t: &Triple, limits: Option<(u64, u64)>) -> Result<EdgeWriter> {
        Ok(EdgeWriter {
            triple: t.clone(),
            src: self.id_column(&edge_stem(t), "src")?,
            dst: self.id_column(&edge_stem(t), "dst")?,
            limits,
            rows: 0,
            largest: None,
        })
    }

    fn id_column(&self, stem: &str, name: &str) -> Result<IdWriter> {
        Ok(match self.width {
            IdWidth::U32 => IdWriter::U32(ColumnWriter::create(&self.tmp, stem, name, &[])?),
            IdWidth::U64 => IdWriter::U64(ColumnWriter::create(&self.tmp, stem, name, &[])?),
        })
    }

    /// Writes a whole split of a node type added before; ids are sorted first.
    ///
    /// # Errors
    /// If an id is out of range or listed twice.
    pub fn add_split(&mut self, ntype: &str, name: &str, mut ids: Vec<u64>) -> Result<()> {
        let count = self.manifest.node_type(ntype)?.count;
        if let Some(row) = ids.iter().position(|&id| id >= count) {
            return Err(Error::invalid(format!(
                "split {name}: row {row}: node {} is not below the number of {ntype} nodes, {count}",
                ids[row]
            )));
        }
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::invalid(format!("split {name}: node {} is listed twice", twice[0])));
        }
        let mut column = self.split_column(ntype, name)?;
        column.push(&ids)?;
        let spec = column.finish()?;
        self.node_type(ntype)?.columns.push(spec);
        Ok(())
    }

    /// Starts a split's column; the ids pushed must ascend.
    pub(crate) fn split_column(&self, ntype: &str, name: &str) -> Result<IdWriter> {
        self.id_column(&safe(ntype), &format!("split.{name}"))
    }

    /// Builds the topology of every edge type, checks the whole, and gives it its name.
    ///
    /// In-neighbour lists ascend by source id; where the source type has a column `orig_id` (parts
    /// of a partitioned dataset) they ascend by that, so that a position in a list means the same
    /// edge in a part as in the whole graph.
    pub fn finish(mut self, options: FinishOptions) -> Result<Dataset> {
        self.check_rows()?;
        self.check_overlaps()?;
        for i in 0..self.manifest.edge_types.len() {
            let triple = self.manifest.edge_types[i].triple.clone();
            self.build_csc(i, options)
                .while_doing(|| format!("building the topology of {triple}"))?;
        }
        let path = self.tmp.join(MANIFEST);
        let text = serde_json::to_string_pretty(&self.manifest).expect("manifests serialise");
        std::fs::write(&path, text).at(&path)?;
        sync_dir(&self.tmp)?;
        replace_dir(&self.tmp, &self.out)?;
        self.finished = true;
        Dataset::open(&self.out)
    }

    fn build_csc(&mut self, index: usize, options: FinishOptions) -> Result<()> {
        let edge_type = &self.manifest.edge_types[index];
        let triple = edge_type.triple.clone();
        let sources = &self.manifest.node_type(&triple.src)?.columns;
        let order = match sources.iter().find(|c| c.name == "orig_id") {
            Some(spec) => Some(Column::open(&self.tmp, spec)?.values::<u64>()?),
            None => None,
        };
        let num_dst = self.manifest.node_type(&triple.dst)?.count;
        let find = |name: &str| edge_type.columns.iter().find(|c| c.name == name);
        let (Some(src), Some(dst)) = (find("src"), find("dst")) else {
            return Err(Error::invalid(format!("{triple}: src or dst column is missing")));
        };
        let keep_rows = edge_type.columns.len() > 2;
        if keep_rows && options.coalesce {
            return Err(Error::usage(format!("{triple}: edges with columns cannot be coalesced")));
        }
        let job = CscJob {
            dir: &self.tmp,
            stem: &edge_stem(&triple),
            src,
            dst,
            num_dst,
            square: triple.src == triple.dst,
            keep_rows,
            coalesce: options.coalesce,
            memory: options.memory,
            range_bytes: None,
            order: order.as_deref(),
        };
        let built = match self.width {
            IdWidth::U32 => csc::build::<u32>(&job)?,
            IdWidth::U64 => csc::build::<u64>(&job)?,
        };
        let dropped = built.num_edges < edge_type.count;
        let edge_type = &mut self.manifest.edge_types[index];
        edge_type.facts = built.facts;
        edge_type.count = built.num_edges;
        edge_type.columns.extend(built.columns);
        if dropped { self.rewrite_edges(index) } else { Ok(()) }
    }

    /// Replaces the id columns by the coalesced edges, in CSC order.
    fn rewrite_edges(&mut self, index: usize) -> Result<()> {
        let edge_type = &self.manifest.edge_types[index];
        let triple = edge_type.triple.clone();
        let open = |name: &str| {
            let spec = edge_type.columns.iter().find(|c| c.name == name).expect("built above");
            Column::open(&self.tmp, spec)
        };
        let indptr = open("csc.indptr")?.values::<u64>()?;
        let indices = open("csc.indices")?;
        let mut writer = self.edge_writer(&triple, None)?;
        let mut sources = crate::edges::IdReader::open(&self.tmp, indices.spec())?;
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        for v in 0..indptr.len() - 1 {
            let degree = (indptr[v + 1] - indptr[v]) as usize;
            sources.read(degree, 0, &mut src)?;
            dst.resize(dst.len() + degree, v as u64);
            if src.len() >= crate::edges::CHUNK_EDGES {
                writer.push(&src, &dst)?;
                src.clear();
                dst.clear();
            }
        }
        writer.push(&src, &dst)?;
        let columns = writer.finish()?;
        let edge_type = &mut self.manifest.edge_types[index];
        edge_type.columns.retain(|c| c.name != "src" && c.name != "dst");
        edge_type.columns.splice(0..0, columns);
        Ok(())
    }

    /// Checks that columns have as many rows as there are nodes or edges.
    fn check_rows(&self) -> Result<()> {
        let check = |of: &str, column: &ColumnSpec, expected: u64| {
            let rows = column.shape.first().copied().unwrap_or(0);
            if rows == expected {
                return Ok(());
            }
            Err(Error::invalid(format!("{of}: {} has {rows} rows for {expected}", column.name)))
        };
        for t in &self.manifest.node_types {
            for column in &t.columns {
                match column.name.as_str() {
                    "features" | "label" => check(&t.name, column, t.count)?,
                    "features.indptr" => check(&t.name, column, t.count + 1)?,
                    _ => {}
                }
            }
        }
        for t in &self.manifest.edge_types {
            // Names with a dot are tables of another length, such as the names of relations.
            let mut of_edges = t.columns.iter().filter(|c| !c.name.contains('.'));
            of_edges.try_for_each(|c| check(&t.triple.to_string(), c, t.count))?;
        }
        Ok(())
    }

    fn check_overlaps(&self) -> Result<()> {
        let reader = Dataset::unfinished(self.tmp.clone(), self.manifest.clone());
        for t in &self.manifest.node_types {
            let names = reader.split_names(&t.name)?;
            for (i, first) in names.iter().enumerate() {
                for second in &names[i + 1..] {
                    let ids =
                        |name: &str| reader.split(&t.name, name).map(Option::unwrap_or_default);
                    if let Some(id) = common(&ids(first)?, &ids(second)?) {
                        return Err(Error::invalid(format!(
                            "{} node {id} is in both splits {first} and {second}",
                            t.name
                        ))
                        .hint("splits must not overlap, or test figures mean nothing"));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for DatasetWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing to do about a failure here; the directory's name says it is temporary.
            let _ = std::fs::remove_dir_all(&self.tmp);
        }
    }
}

/// Moves `tmp` to `out`, replacing what is there. Where the system can exchange two names in one
/// step, `out` names a whole dataset at every moment.
pub(crate) fn replace_dir(tmp: &Path, out: &Path) -> Result<()> {
    if !out.exists() {
        return std::fs::rename(tmp, out).at(out);
    }
    if exchange(tmp, out) {
        return std::fs::remove_dir_all(tmp).at(tmp);
    }
    let mut old = tmp.as_os_str().to_owned();
    old.push(".old");
    std::fs::rename(out, &old).at(out)?;
    std::fs::rename(tmp, out).at(out)?;
    std::fs::remove_dir_all(&old).at(&old)
}

/// Exchanges two directories' names; `false` if this system or file system cannot.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let c_string = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes());
    let (Ok(a), Ok(b)) = (c_string(a), c_string(b)) else { return false };
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // SAFETY: both paths are NUL-terminated strings that outlive the call, which keeps neither.
    // std has no such call, and two renames would leave a moment without any dataset.
    unsafe { libc::renameat2(here, a.as_ptr(), here, b.as_ptr(), flags) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> bool {
    false
}

/// The first value that two ascending lists share.
fn common(a: &[u64], b: &[u64]) -> Option<u64> {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => return Some(a[i]),
        }
    }
    None
}

fn sync_dir(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).at(dir)? {
        let path = entry.at(dir)?.path();
        std::fs::File::open(&path).at(&path)?.sync_all().at(&path)?;
    }
    Ok(())
}

fn safe(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
        .collect()
}

fn edge_stem(t: &Triple) -> String {
    format!("{}.{}.{}", safe(&t.src), safe(&t.rel), safe(&t.dst))
}

/// Writes one column.
pub struct ColumnWriter<T> {
    name: String,
    file: String,
    writer: NpyWriter<T>,
}

impl<T: Element> ColumnWriter<T> {
    /// Starts `<stem>.<name>.npy` in `dir`.
    pub(crate) fn create(dir: &Path, stem: &str, name: &str, row: &[u64]) -> Result<Self> {
        let file = format!("{stem}.{name}.npy");
        Ok(Self { name: name.into(), writer: NpyWriter::create(dir.join(&file), row)?, file })
    }

    /// Appends values, whole rows or not.
    pub fn push(&mut self, values: &[T]) -> Result<()> {
        self.writer.push(values)
    }

    /// Completes the file and describes it.
    pub fn finish(self) -> Result<ColumnSpec> {
        let (shape, crc32) = self.writer.finish()?;
        Ok(ColumnSpec { name: self.name, file: self.file, dtype: T::DTYPE, shape, crc32 })
    }
}

/// Writes ids in the dataset's width.
pub(crate) enum IdWriter {
    U32(ColumnWriter<u32>),
    U64(ColumnWriter<u64>),
}

impl IdWriter {
    pub(crate) fn push(&mut self, ids: &[u64]) -> Result<()> {
        match self {
            Self::U64(column) => column.push(ids),
            Self::U32(column) => {
                let mut narrow = [0u32; 1024];
                for chunk in ids.chunks(narrow.len()) {
                    for (n, &id) in narrow.iter_mut().zip(chunk) {
                        *n = id as u32;
                    }
                    column.push(&narrow[..chunk.len()])?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn finish(self) -> Result<ColumnSpec> {
        match self {
            Self::U32(column) => column.finish(),
            Self::U64(column) => column.finish(),
        }
    }
}

/// Writes the two id columns of an edge type.
pub struct EdgeWriter {
    triple: Triple,
    src: IdWriter,
    dst: IdWriter,
    limits: Option<(u64, u64)>,
    rows: u64,
    largest: Option<(u64, u64)>,
}

impl EdgeWriter {
    /// Appends edges.
    ///
    /// # Errors
    /// If an id is out of range, with its row counted from the first edge pushed.
    pub fn push(&mut self, src: &[u64], dst: &[u64]) -> Result<()> {
        debug_assert_eq!(src.len(), dst.len());
        let widest = if matches!(self.src, IdWriter::U32(_)) { 1 << 32 } else { u64::MAX };
        let (src_limit, dst_limit) = self.limits.unwrap_or((widest, widest));
        let largest = self.largest.unwrap_or((0, 0));
        let max = (max_of(src, largest.0), max_of(dst, largest.1));
        if !src.is_empty() {
            self.largest = Some(max);
        }
        if max.0 >= src_limit || max.1 >= dst_limit {
            return Err(self.out_of_range(src, dst, src_limit, dst_limit));
        }
        self.rows += src.len() as u64;
        // Checksums and narrowing take as long as the writing itself: one thread for each column.
        let (to_src, to_dst) = (&mut self.src, &mut self.dst);
        let (a, b) = rayon::join(|| to_src.push(src), || to_dst.push(dst));
        a.and(b)
    }

    fn out_of_range(&self, src: &[u64], dst: &[u64], src_limit: u64, dst_limit: u64) -> Error {
        let bad = src.iter().zip(dst).position(|(&s, &d)| s >= src_limit || d >= dst_limit);
        let row = bad.unwrap_or(0);
        let (end, id, limit) = match src[row] >= src_limit {
            true => ("source", src[row], src_limit),
            false => ("destination", dst[row], dst_limit),
        };
        let row = self.rows + row as u64;
        Error::invalid(format!(
            "{}: edge {row}: {end} {id} is not below the number of nodes, {limit}",
            self.triple
        ))
    }

    /// The largest source and destination so far, if any edge was pushed.
    pub fn largest(&self) -> Option<(u64, u64)> {
        self.largest
    }

    /// Completes both columns.
    pub fn finish(self) -> Result<Vec<ColumnSpec>> {
        Ok(vec![self.src.finish()?, self.dst.finish()?])
    }
}

fn max_of(ids: &[u64], start: u64) -> u64 {
    ids.iter().copied().fold(start, u64::max)
}
