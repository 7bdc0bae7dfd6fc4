//! The graphs to partition: folders of arrays, imported as datasets once.

use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyHeader;
use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result, ResultExt};
use gnarl_graph::{DEFAULT_NODE_TYPE, DatasetWriter, FinishOptions, IdWidth, Triple};
use serde_json::Value;

/// Share of training nodes in graphs without a split.
const TRAIN_SHARE: f64 = 0.1;

/// The folders below `data` with edges, by name.
pub fn folders(data: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data).at(data)? {
        let dir = entry.at(data)?.path();
        if dir.is_dir() && !edge_files(&dir)?.is_empty() {
            found.push(dir);
        }
    }
    found.sort();
    Ok(found)
}

/// A file of edges, and their node types.
struct EdgeFile {
    path: PathBuf,
    triple: Triple,
}

/// `edges.npy`; or triples; or one `edges__src__rel__dst.npy` per edge type.
fn edge_files(dir: &Path) -> Result<Vec<EdgeFile>> {
    let plain = |names: &[&str]| -> Vec<EdgeFile> {
        let paths = names.iter().map(|name| dir.join(name)).filter(|path| path.exists());
        paths.map(|path| EdgeFile { path, triple: Triple::plain() }).collect()
    };
    for names in [&["edges.npy"][..], &["triples.npy"], &["train.npy", "valid.npy", "test.npy"]] {
        let files = plain(names);
        if files.len() == names.len() {
            return Ok(files);
        }
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).at(dir)? {
        let path = entry.at(dir)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let types = name.strip_prefix("edges__").and_then(|rest| rest.strip_suffix(".npy"));
        if let Some([src, rel, dst]) = types.map(|t| t.split("__").collect::<Vec<_>>()).as_deref() {
            files.push(EdgeFile { triple: format!("{src}:{rel}:{dst}").parse()?, path });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The edges of one type: sources, destinations.
struct EdgeList {
    triple: Triple,
    src: Vec<u64>,
    dst: Vec<u64>,
}

/// Imports the folder `from` as a dataset at `out`, unless there is one: edges, and the training
/// nodes of `train_idx.npy`, or a seeded tenth of all nodes.
pub fn import(from: &Path, out: &Path) -> Result<()> {
    if out.join("dataset.json").exists() {
        return Ok(());
    }
    make(from, out).while_doing(|| format!("importing {}", from.display()))
}

fn make(from: &Path, out: &Path) -> Result<()> {
    let mut lists: Vec<EdgeList> = Vec::new();
    for file in edge_files(from)? {
        let (src, dst) = ends(&file.path)?;
        match lists.iter_mut().find(|list| list.triple == file.triple) {
            Some(list) => {
                list.src.extend(src);
                list.dst.extend(dst);
            }
            None => lists.push(EdgeList { triple: file.triple, src, dst }),
        }
    }
    let types = node_types(from, &lists)?;
    let total = types.iter().map(|t| t.1).sum();
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(total))?;
    for (i, (name, count)) in types.iter().enumerate() {
        writer.add_node_type(name, *count);
        let split = from.join("train_idx.npy");
        let train = if split.exists() && types.len() == 1 {
            integers(&split)?.1
        } else {
            tenth(i as u64, *count)
        };
        writer.add_split(name, "train", train)?;
    }
    for list in lists {
        let count = |name: &str| types.iter().find(|t| t.0 == name).map_or(0, |t| t.1);
        let limits = (count(&list.triple.src), count(&list.triple.dst));
        let mut edges = writer.edge_writer(&list.triple, Some(limits))?;
        edges.push(&list.src, &list.dst)?;
        let columns = edges.finish()?;
        writer.add_edge_type(list.triple, columns);
    }
    writer.finish(FinishOptions::default()).map(drop)
}

/// Node types with their counts: from `meta.json`, else from the largest id.
fn node_types(from: &Path, lists: &[EdgeList]) -> Result<Vec<(String, u64)>> {
    let path = from.join("meta.json");
    let meta: Value = match path.exists() {
        true => serde_json::from_str(&std::fs::read_to_string(&path).at(&path)?)
            .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?,
        false => Value::Null,
    };
    let mut types: Vec<(String, u64)> = Vec::new();
    for list in lists {
        for (name, ids) in [(&list.triple.src, &list.src), (&list.triple.dst, &list.dst)] {
            let stated = match name.as_str() {
                DEFAULT_NODE_TYPE => meta["num_nodes"].as_u64().or(meta["num_entities"].as_u64()),
                name => meta["node_types"][name].as_u64(),
            };
            let count = stated.unwrap_or_else(|| ids.iter().max().map_or(0, |largest| largest + 1));
            match types.iter_mut().find(|t| t.0 == *name) {
                Some(known) => known.1 = known.1.max(count),
                None => types.push((name.clone(), count)),
            }
        }
    }
    Ok(types)
}

/// A seeded tenth of the nodes of a type.
fn tenth(node_type: u64, count: u64) -> Vec<u64> {
    let key = Key::new(0).with(u64::from_le_bytes(*b"training")).with(node_type);
    (0..count).filter(|&v| key.unit(v) < TRAIN_SHARE).collect()
}

/// Sources and destinations of `[2, E]` edges, or of `[T, 3]` triples where the file is named so.
fn ends(path: &Path) -> Result<(Vec<u64>, Vec<u64>)> {
    let (shape, values) = integers(path)?;
    let edges = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("edges"));
    match (edges, &shape[..]) {
        (true, &[2, n]) => Ok((values[..n as usize].to_vec(), values[n as usize..].to_vec())),
        (false, &[_, 3]) => Ok(values.chunks_exact(3).map(|t| (t[0], t[2])).unzip()),
        _ => Err(Error::invalid(format!("{}: shape {shape:?}", path.display()))
            .hint("edges are [2, E], triples [T, 3]")),
    }
}

/// Shape and values, in C order, of an array of ids.
fn integers(path: &Path) -> Result<(Vec<u64>, Vec<u64>)> {
    let header = NpyHeader::read(path)?;
    let bytes = std::fs::read(path).at(path)?;
    let bytes = &bytes[header.offset as usize..];
    let refuse = |what: String| Error::invalid(format!("{}: {what}", path.display()));
    let wide = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap_or_default());
    let narrow = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap_or_default());
    let values: Vec<u64> = match header.descr.as_str() {
        "<i8" | "<u8" => bytes.chunks_exact(8).map(wide).collect(),
        "<u4" => bytes.chunks_exact(4).map(|b| narrow(b).into()).collect(),
        // Negative ids become too large, and are rejected where edges are checked.
        "<i4" => bytes.chunks_exact(4).map(|b| narrow(b) as i32 as u64).collect(),
        other => return Err(refuse(format!("invalid id type {other}"))),
    };
    match (header.fortran_order, &header.shape[..]) {
        (true, &[rows, columns]) => {
            let at = |i: u64| values[((i % columns) * rows + i / columns) as usize];
            Ok((header.shape.clone(), (0..rows * columns).map(at).collect()))
        }
        _ => Ok((header.shape, values)),
    }
}
