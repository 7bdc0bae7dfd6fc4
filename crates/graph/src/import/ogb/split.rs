//! Splits: `split/<type>/{train,valid,test}.csv.gz`, below a folder for each node type if there
//! are several.

use std::path::{Path, PathBuf};

use super::tables;
use crate::error::{Context, Error, Result, ResultExt};
use crate::manifest::PLAIN_NODE;
use crate::writer::DatasetWriter;

const NAMES: [&str; 3] = ["train", "valid", "test"];

/// Writes the splits of the kind `kind`, or of the only kind there is.
pub(super) fn write(writer: &mut DatasetWriter, root: &Path, kind: Option<&str>) -> Result<()> {
    let all = root.join("split");
    let dir = match kind {
        Some("none") => return Ok(()),
        Some(kind) => all.join(kind),
        None if !all.is_dir() => {
            tracing::warn!("{}: no splits", all.display());
            return Ok(());
        }
        None => only_kind(&all)?,
    };
    if !dir.is_dir() {
        let known: Vec<String> = folders(&all)?.into_iter().map(|(name, _)| name).collect();
        return Err(Error::usage(format!("{}: no such kind of split", dir.display()))
            .hint(format!("there is: {}", known.join(", "))));
    }
    refuse_torch(&dir)?;
    if writer.node_type(PLAIN_NODE).is_ok() {
        return write_type(writer, PLAIN_NODE, &dir);
    }
    for (ntype, dir) in folders(&dir)? {
        writer.node_type(&ntype).while_doing(|| dir.display().to_string())?;
        write_type(writer, &ntype, &dir)?;
    }
    Ok(())
}

fn write_type(writer: &mut DatasetWriter, ntype: &str, dir: &Path) -> Result<()> {
    let nodes = writer.node_type(ntype)?.count;
    for name in NAMES {
        let path = dir.join(format!("{name}.csv.gz"));
        let ids = tables::split_ids(&path, nodes, ntype)?;
        writer.add_split(ntype, name, ids).while_doing(|| path.display().to_string())?;
    }
    Ok(())
}

/// Torch's own files cannot be read, and OGB prefers them to the tables.
fn refuse_torch(dir: &Path) -> Result<()> {
    let torch = ["split_dict", "train", "valid", "test"].map(|stem| dir.join(format!("{stem}.pt")));
    match torch.iter().find(|path| path.exists()) {
        None => Ok(()),
        Some(path) => Err(Error::invalid(format!("{}: a file of torch", path.display())).hint(
            "write node splits as train.csv.gz, valid.csv.gz and test.csv.gz, one id a line, and \
             move the .pt file away; or import without splits: --split none",
        )),
    }
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
