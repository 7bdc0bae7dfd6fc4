//! Binary layouts: `.npz` archives.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};

use super::layout::{EdgePart, Layout, NodePart, Values, many_graphs};
use crate::import::WeightType;
use crate::import::array::ArrayReader;
use crate::import::extra::Extra;
use crate::import::source::{Npz, Source};
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};
use crate::writer::DatasetWriter;

/// A graph of one node type, `data.npz`.
pub(super) fn plain(raw: &Path, scratch: &Path, weights: WeightType) -> Result<Layout> {
    let path = raw.join("data.npz");
    let mut data = Npz::open(&path, scratch)?;
    let mut nodes = NodePart::new(DEFAULT_NODE_TYPE, count(data.member("num_nodes_list")?, &path)?);
    let mut edges = EdgePart {
        triple: Triple::plain(),
        count: None,
        edges: Values::Array(data.member("edge_index")?),
        more: Vec::new(),
    };
    let names: Vec<String> = data.names().map(String::from).collect();
    for name in names {
        match name.as_str() {
            "num_edges_list" => edges.count = Some(count(data.member(&name)?, &path)?),
            "node_feat" => nodes.features = Some(Values::Array(data.member(&name)?)),
            "edge_weight" => {
                edges.more.push((Extra::Weight(weights), Values::Array(data.member(&name)?)));
            }
            "edge_index" | "num_nodes_list" => {}
            other if other.starts_with("node_") => {
                nodes.more.push((name.clone(), Values::Array(data.member(&name)?)));
            }
            _ => tracing::warn!("{}[{name}] is left out", path.display()),
        }
    }
    let labels = raw.join("node-label.npz");
    if labels.exists() {
        nodes.labels = Some(Values::Array(Npz::open(&labels, scratch)?.member("node_label")?));
    }
    Ok(Layout { nodes: vec![nodes], edges: vec![edges] })
}

/// A graph of several node types: an archive for each attribute, with a member for each type.
pub(super) fn heterogeneous(raw: &Path, scratch: &Path, weights: WeightType) -> Result<Layout> {
    let path = raw.join("num_nodes_dict.npz");
    let mut nodes = Vec::new();
    each_member(&path, scratch, |name, source| {
        nodes.push(NodePart::new(name, count(source, &path)?));
        Ok(())
    })?;
    let path = raw.join("edge_index_dict.npz");
    let mut edges: Vec<EdgePart> = Vec::new();
    each_member(&path, scratch, |name, source| {
        let triple = triple(&path, name, &nodes)?;
        edges.push(EdgePart { triple, count: None, edges: Values::Array(source), more: vec![] });
        Ok(())
    })?;
    let counts = raw.join("num_edges_dict.npz");
    if counts.exists() {
        each_member(&counts, scratch, |name, source| {
            let triple = triple(&counts, name, &nodes)?;
            let stated = count(source, &counts)?;
            if let Some(part) = edges.iter_mut().find(|e| e.triple == triple) {
                part.count = Some(stated);
            }
            Ok(())
        })?;
    }
    attributes(raw, scratch, weights, &mut nodes, &mut edges)?;
    Ok(Layout { nodes, edges })
}

/// Finds features, labels and further columns in the archives beside the edges.
fn attributes(
    raw: &Path,
    scratch: &Path,
    weights: WeightType,
    nodes: &mut [NodePart],
    edges: &mut [EdgePart],
) -> Result<()> {
    let mut archives = Vec::new();
    for entry in std::fs::read_dir(raw).at(raw)? {
        let path = entry.at(raw)?.path();
        if path.extension().is_some_and(|e| e == "npz") {
            archives.push(path);
        }
    }
    archives.sort();
    for path in archives {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let attribute = stem.strip_suffix("_dict").unwrap_or(&stem).to_string();
        match attribute.as_str() {
            "num_nodes" | "num_edges" | "edge_index" => {}
            "edge_weight" => each_member(&path, scratch, |name, source| {
                let triple = triple(&path, name, nodes)?;
                if let Some(part) = edges.iter_mut().find(|e| e.triple == triple) {
                    part.more.push((Extra::Weight(weights), Values::Array(source)));
                }
                Ok(())
            })?,
            other if other == "node-label" || other.starts_with("node_") => {
                each_member(&path, scratch, |name, source| {
                    let place = format!("{}[{name}]", path.display());
                    let part = nodes.iter_mut().find(|n| n.name == name);
                    let part = part.ok_or_else(|| {
                        Error::invalid(format!("{place}: unknown node type '{name}'"))
                    })?;
                    let values = Values::Array(source);
                    match other {
                        "node-label" => part.labels = Some(values),
                        "node_feat" => part.features = Some(values),
                        _ => part.more.push((other.to_string(), values)),
                    }
                    Ok(())
                })?;
            }
            _ => tracing::warn!("{} is left out", path.display()),
        }
    }
    Ok(())
}

fn each_member(
    path: &Path,
    scratch: &Path,
    mut take: impl FnMut(&str, Source) -> Result<()>,
) -> Result<()> {
    let mut archive = Npz::open(path, scratch)?;
    let names: Vec<String> = archive.names().map(String::from).collect();
    for name in names {
        take(&name, archive.member(&name)?)?;
    }
    Ok(())
}

/// The edge type that a member `head___relation___tail` is named after.
fn triple(path: &Path, name: &str, nodes: &[NodePart]) -> Result<Triple> {
    let place = format!("{}[{name}]", path.display());
    let triple: Triple = name.replace("___", ":").parse().map_err(|_| {
        Error::invalid(format!("{place}: not an edge type"))
            .hint("members are called head___relation___tail")
    })?;
    for ntype in [&triple.src, &triple.dst] {
        if !nodes.iter().any(|n| n.name == *ntype) {
            let known: Vec<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
            return Err(Error::invalid(format!("{place}: unknown node type '{ntype}'"))
                .hint(format!("num_nodes_dict.npz has: {}", known.join(", "))));
        }
    }
    Ok(triple)
}

/// The one number in an array of counts.
fn count(source: Source, path: &Path) -> Result<u64> {
    let mut array = ArrayReader::open(source)?;
    array.expect_integers()?;
    let mut counts = Vec::new();
    array.read_ids(2, "count", 0, &mut counts)?;
    match counts[..] {
        [count] => Ok(count),
        _ => Err(many_graphs(path, array.len())),
    }
}

/// Writes an array of one integer per node of type `of`, as the column `name`; others are
/// left out.
pub(super) fn integers(
    writer: &mut DatasetWriter,
    of: (&str, u64),
    name: &str,
    mut array: ArrayReader,
) -> Result<()> {
    if array.expect_vector().and(array.expect_integers()).is_err() {
        tracing::warn!("{} is left out: not one integer in each row", array.name());
        return Ok(());
    }
    if array.len() != of.1 {
        let (ntype, nodes) = of;
        return Err(
            array.error(format!("has {} rows, there are {nodes} {ntype} nodes", array.len()))
        );
    }
    let mut column = writer.node_column::<i64>(of.0, name, &[])?;
    let mut values = Vec::new();
    while array.read_f64(1 << 16, &mut values)? {
        column.push(&values.iter().map(|&x| x as i64).collect::<Vec<_>>())?;
    }
    let spec = column.finish()?;
    writer.node_type(of.0)?.columns.push(spec);
    Ok(())
}
