//! Splits: `split/<type>/{train,valid,test}.csv.gz`, below one folder per node type if there
//! are several, or files of torch.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Result, ResultExt};

use super::saved::{NAMES, Saved};
use super::tables;
use crate::import::splits::add_split;
use crate::manifest::DEFAULT_NODE_TYPE;
use crate::writer::DatasetWriter;

/// The splits of a folder.
pub(super) enum Splits {
    None,
    /// A folder of tables.
    Tables(PathBuf),
    /// Files of torch.
    Saved(Saved),
}

impl Splits {
    /// Finds the splits of the kind `kind`, or of the only kind there is. Like OGB it prefers files
    /// of torch to tables; reading one takes at most `memory` bytes.
    pub fn find(root: &Path, kind: Option<&str>, memory: u64) -> Result<Self> {
        let all = root.join("split");
        let dir = match kind {
            Some("none") => return Ok(Self::None),
            Some(kind) => all.join(kind),
            None if !all.is_dir() => {
                tracing::warn!("{}: no splits", all.display());
                return Ok(Self::None);
            }
            None => only_kind(&all)?,
        };
        if !dir.is_dir() {
            let known: Vec<String> = folders(&all)?.into_iter().map(|(name, _)| name).collect();
            return Err(Error::usage(format!("{}: no such kind of split", dir.display()))
                .hint(format!("there is: {}", known.join(", "))));
        }
        Ok(match Saved::find(&dir, memory) {
            Some(saved) => Self::Saved(saved),
            None => Self::Tables(dir),
        })
    }

    /// Writes splits of nodes.
    pub fn write(&self, writer: &mut DatasetWriter) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Saved(saved) => saved.write(writer),
            Self::Tables(dir) if writer.node_type(DEFAULT_NODE_TYPE).is_ok() => {
                write_type(writer, DEFAULT_NODE_TYPE, dir)
            }
            Self::Tables(dir) => {
                for (ntype, dir) in folders(dir)? {
                    writer.node_type(&ntype).while_doing(|| dir.display().to_string())?;
                    write_type(writer, &ntype, &dir)?;
                }
                Ok(())
            }
        }
    }
}

fn write_type(writer: &mut DatasetWriter, ntype: &str, dir: &Path) -> Result<()> {
    let nodes = writer.node_type(ntype)?.count;
    for name in NAMES {
        let path = dir.join(format!("{name}.csv.gz"));
        let ids = tables::split_ids(&path, nodes, ntype)?;
        add_split(writer, ntype, name, ids).while_doing(|| path.display().to_string())?;
    }
    Ok(())
}

fn only_kind(all: &Path) -> Result<PathBuf> {
    let mut kinds = folders(all)?;
    match kinds.len() {
        1 => Ok(kinds.remove(0).1),
        0 => Err(Error::invalid(format!("{}: no kind of split", all.display()))
            .hint("import without splits: --split none")),
        _ => {
            let names: Vec<String> = kinds.into_iter().map(|(name, _)| name).collect();
            Err(Error::usage(format!("{}: several kinds of split", all.display()))
                .hint(format!("choose one with --split: {}", names.join(", "))))
        }
    }
}

/// The folders in `dir`, by name.
fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).at(dir)? {
        let path = entry.at(dir)?.path();
        if let (true, Some(name)) = (path.is_dir(), path.file_name()) {
            found.push((name.to_string_lossy().into_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}
