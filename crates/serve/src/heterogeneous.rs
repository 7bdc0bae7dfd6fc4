//! Features of a partitioned heterogeneous graph.

use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_partition::{PartitionedDataset, PartitionedType};
use gnarl_store::RowSource;
use gnarl_store::placement::{ByRange, Placement, Replicated};

use crate::access::PartAccess;
use crate::rows::DividedRows;
use crate::served::Description;

/// Dense features of each node type, located by the type's placement policy: DistDGLv2 (section
/// 5.4) has one per type.
pub struct HeteroRows {
    types: Vec<(String, Box<dyn RowSource>)>,
}

impl HeteroRows {
    /// Features of the parts of `cut`. Types with at most `whole` bytes of features are read from
    /// all parts once and replicated here ([`Replicated`]); those of larger types are fetched from
    /// the part whose range they are in ([`ByRange`]). Types without features have no rows.
    ///
    /// # Errors
    /// If a part does not reply, belongs to another partition, or features are sparse.
    pub fn open(cut: &PartitionedDataset, parts: &[PartAccess], whole: u64) -> Result<Self> {
        let abouts: Vec<Vec<Description>> =
            parts.iter().map(PartAccess::describe).collect::<Result<_>>()?;
        let mut types = Vec::new();
        for node in &cut.manifest().node_types {
            let width = width(node, &abouts)?;
            if width == 0 {
                continue;
            }
            let open = || rows(cut, parts, node, width, whole);
            let rows =
                open().while_doing(|| format!("opening the features of type '{}'", node.name))?;
            types.push((node.name.clone(), rows));
        }
        Ok(Self { types })
    }

    /// The features of a node type, by its dataset ids.
    ///
    /// # Errors
    /// If there is no such type, or it has no features.
    pub fn of(&self, ntype: &str) -> Result<&dyn RowSource> {
        let found = self.types.iter().find(|(name, _)| name == ntype);
        found.map(|(_, rows)| &**rows).ok_or_else(|| {
            let known: Vec<&str> = self.types.iter().map(|(name, _)| name.as_str()).collect();
            Error::usage(format!("no node type '{ntype}' has features"))
                .hint(format!("there are: {}", known.join(", ")))
        })
    }
}

/// Feature width of a type, on which all parts must agree.
fn width(node: &PartitionedType, abouts: &[Vec<Description>]) -> Result<usize> {
    let mut width = None;
    for (part, (abouts, range)) in abouts.iter().zip(node.ranges.windows(2)).enumerate() {
        let about = abouts.iter().find(|about| about.ntype == node.name);
        let same = about.filter(|about| about.nodes == range[1] - range[0] && !about.sparse);
        let found = same.map(|about| about.feature_width);
        if found.is_none() || width.is_some_and(|width| Some(width) != found) {
            let name = &node.name;
            let text = format!("part {part} has other nodes of type '{name}', or sparse features");
            return Err(Error::invalid(text).hint("serve dense parts of the partition opened"));
        }
        width = found;
    }
    Ok(width.unwrap_or(0))
}

fn rows(
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    node: &PartitionedType,
    width: usize,
    whole: u64,
) -> Result<Box<dyn RowSource>> {
    let ids = cut.id_map(&node.name)?;
    if node.count.saturating_mul((width * size_of::<f32>()) as u64) > whole {
        let placement = Arc::new(ByRange::new(ids));
        let rows = DividedRows::of_type(&node.name, placement, parts.to_vec(), width)?;
        return Ok(Box::new(rows));
    }
    let all = parts.iter().map(|part| part.all_features(&node.name, width));
    let all = all.collect::<Result<Vec<_>>>()?.concat();
    if all.len() as u64 != node.count * width as u64 {
        let (found, count) = (all.len() / width, node.count);
        return Err(Error::invalid(format!("expected {count} rows, one per node; found {found}")));
    }
    let mut rows = Vec::with_capacity(all.len());
    for id in 0..ids.len() {
        let new = ids.new_id(id) as usize;
        rows.extend_from_slice(&all[new * width..(new + 1) * width]);
    }
    let placement = Replicated::new(node.count, parts.len());
    Ok(Box::new(HeldRows { placement, rows, width }))
}

/// Replicated features.
struct HeldRows {
    placement: Replicated,
    rows: Vec<f32>,
    width: usize,
}

impl RowSource for HeldRows {
    fn width(&self) -> usize {
        self.width
    }

    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        if out.len() != ids.len() * self.width {
            let found = out.len();
            let rows = ids.len();
            let width = self.width;
            return Err(Error::invalid(format!(
                "expected {rows} rows of width {width}, found {found} values"
            )));
        }
        for (&id, out) in ids.iter().zip(out.chunks_mut(self.width)) {
            let nodes = self.placement.rows();
            if id >= nodes {
                return Err(Error::invalid(format!("node {id} is not one of {nodes} nodes")));
            }
            let from = id as usize * self.width;
            out.copy_from_slice(&self.rows[from..from + self.width]);
        }
        Ok(())
    }
}
