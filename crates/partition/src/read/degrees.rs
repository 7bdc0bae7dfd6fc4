//! In-degrees in the order of the nodes, in constant memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

use gnarl_common::error::{Error, Result, ResultExt};
use gnarl_common::npy::NpyHeader;
use gnarl_graph::{Dataset, EdgeType};

/// Calls `visit` with every graph-wide node and its in-degree over all edge types.
pub(crate) fn for_each_degree(dataset: &Dataset, mut visit: impl FnMut(u64, u64)) -> Result<()> {
    let manifest = dataset.manifest();
    let mut v = 0;
    for node_type in &manifest.node_types {
        let types = manifest.edge_types.iter().filter(|t| t.triple.dst == node_type.name);
        let mut lists = types.map(|t| Degrees::open(dataset, t)).collect::<Result<Vec<_>>>()?;
        for _ in 0..node_type.count {
            let mut degree = 0;
            for list in &mut lists {
                degree += list.next()?;
            }
            visit(v, degree);
            v += 1;
        }
    }
    Ok(())
}

/// The in-degrees of an edge type, one after the other: differences of the offsets of its lists.
struct Degrees {
    path: PathBuf,
    offsets: BufReader<File>,
    /// Bytes of an offset.
    width: usize,
    /// The largest one.
    edges: u64,
    last: u64,
}

impl Degrees {
    fn open(dataset: &Dataset, t: &EdgeType) -> Result<Self> {
        let spec = t.columns.iter().find(|c| c.name == "csc.indptr");
        let missing = || Error::invalid(format!("{}: no csc.indptr", t.triple));
        let spec = spec.ok_or_else(missing)?;
        let path = dataset.dir().join(&spec.file);
        let header = NpyHeader::read(&path)?;
        let mut file = File::open(&path).at(&path)?;
        file.seek(SeekFrom::Start(header.offset)).at(&path)?;
        let (offsets, width) = (BufReader::new(file), spec.dtype.size());
        let mut degrees = Self { path, offsets, width, edges: t.count, last: 0 };
        degrees.next()?;
        Ok(degrees)
    }

    fn next(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.offsets.read_exact(&mut bytes[..self.width]).at(&self.path)?;
        let end = u64::from_le_bytes(bytes);
        if end < self.last || end > self.edges {
            let range = format!("{} to {}", self.last, self.edges);
            let text =
                format!("{}: an offset of {end}, expected one of {range}", self.path.display());
            return Err(
                Error::invalid(text).hint("the file is damaged, or is not one that gnarl wrote")
            );
        }
        Ok(end - std::mem::replace(&mut self.last, end))
    }
}
