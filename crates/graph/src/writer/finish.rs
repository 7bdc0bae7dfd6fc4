//! The end of writing a dataset: topology, checks of the whole, and its name.

use gnarl_common::{Context, DType, Error, Result, ResultExt, sealed_json};

use super::{DatasetWriter, FinishOptions, IdWidth, edge_stem};
use crate::column::Column;
use crate::csc::{self, CscJob};
use crate::dataset::Dataset;
use crate::manifest::MANIFEST;
use crate::narrow::Narrow;

impl DatasetWriter {
    /// Builds the topology of every edge type, checks the dataset, and gives it its name.
    ///
    /// In-neighbor lists ascend by source id; where the source type has a column `orig_id` (parts
    /// of a partitioned dataset) they ascend by that, so that a position in a list means the same
    /// edge in a part as in the whole graph.
    pub fn finish(mut self, options: FinishOptions) -> Result<Dataset> {
        self.manifest.check_rows()?;
        self.check_overlaps()?;
        for i in 0..self.manifest.edge_types.len() {
            let triple = self.manifest.edge_types[i].triple.clone();
            self.build_csc(i, options)
                .while_doing(|| format!("building the topology of {triple}"))?;
        }
        let path = self.tmp_dir().join(MANIFEST);
        let text = sealed_json::to_string(&self.manifest)?;
        std::fs::write(&path, text).at(&path)?;
        let Self { out, staging, .. } = self;
        staging.commit()?;
        Dataset::open(&out)
    }

    fn build_csc(&mut self, index: usize, options: FinishOptions) -> Result<()> {
        let edge_type = &self.manifest.edge_types[index];
        let triple = edge_type.triple.clone();
        let sources = &self.manifest.node_type(&triple.src)?.columns;
        let order = match sources.iter().find(|c| c.name == "orig_id") {
            Some(spec) => Some(Column::open(self.tmp_dir(), spec)?.values::<u64>()?),
            None => None,
        };
        let num_dst = self.manifest.node_type(&triple.dst)?.count;
        let find = |name: &str| edge_type.columns.iter().find(|c| c.name == name);
        let (Some(src), Some(dst)) = (find("src"), find("dst")) else {
            return Err(Error::invalid(format!("{triple}: src or dst column is missing")));
        };
        let keep_rows = edge_type.columns.len() > 2 || options.edge_rows;
        if keep_rows && options.coalesce {
            return Err(Error::usage(format!("{triple}: edges with columns cannot be coalesced")));
        }
        let job = CscJob {
            dir: self.tmp_dir(),
            stem: &edge_stem(&triple),
            src,
            dst,
            num_dst,
            square: triple.src == triple.dst,
            keep_rows,
            // Samplers report other types themselves.
            weights: find("weight")
                .filter(|spec| matches!(spec.dtype, DType::F32 | DType::F16 | DType::BF16)),
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
            Column::open(self.tmp_dir(), spec)
        };
        let indptr = Narrow::of(&open("csc.indptr")?)?;
        let indices = open("csc.indices")?;
        let mut writer = self.edge_writer(&triple, None)?;
        let mut sources = crate::edges::IdReader::open(self.tmp_dir(), indices.spec())?;
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        for v in 0..indptr.len() as u64 - 1 {
            let degree = (indptr.get(v + 1) - indptr.get(v)) as usize;
            sources.read(degree, 0, &mut src)?;
            dst.resize(dst.len() + degree, v);
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

    fn check_overlaps(&self) -> Result<()> {
        let reader = Dataset::unfinished(self.tmp_dir().into(), self.manifest.clone());
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
