//! Heterogeneous graphs as numpy arrays.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Result};
use serde_json::json;

use super::array::ArrayReader;
use super::columns;
use super::edge_arrays::EdgeArrays;
use super::errors::check_count;
use super::npy::{Count, EdgeArray, Largest, write_edges, write_features};
use super::report::{Imported, finish};
use super::reverses::Reverses;
use super::source::Source;
use super::splits::{add_split, split_name};
use super::triples_heterogeneous::{TripleArray, write_triples};
use super::weights::WeightType;
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Files and options of [`heterogeneous_npy`].
#[derive(Debug, Clone, Default)]
pub struct HeteroNpyOptions {
    /// Edges `[2, E]` of each type.
    pub edges: Vec<(Triple, PathBuf)>,
    /// A node type and triples `[T, 3]` of head, relation, tail between its nodes: one edge type
    /// per relation.
    pub triples: Option<(String, PathBuf)>,
    /// Names of the relations of `triples`, one a line; `rK` otherwise.
    pub relations: Option<PathBuf>,
    /// Features of node types, as [`NpyOptions::features`](super::NpyOptions::features).
    pub features: Vec<(String, PathBuf)>,
    /// Labels of all nodes of a type.
    pub labels: Vec<(String, PathBuf)>,
    /// Numbers of nodes that a regression learns, as [`NpyOptions::values`](super::NpyOptions::values).
    pub values: Vec<(String, PathBuf)>,
    /// Times of the nodes of a type, as [`NpyOptions::times`](super::NpyOptions::times).
    pub times: Vec<(String, PathBuf)>,
    /// Number of classes; by default from the largest label.
    pub num_classes: Option<u64>,
    /// Splits: node type, name, vector of ids or of booleans.
    pub splits: Vec<(String, String, PathBuf)>,
    /// Labels of the nodes of a split of ids, in their order: node type, split, vector of classes.
    pub split_labels: Vec<(String, String, PathBuf)>,
    /// A weight for each edge of a type.
    pub weights: Vec<(Triple, PathBuf)>,
    /// The type of that column.
    pub weight_type: WeightType,
    /// Times of the edges of a type: `[E]` integers.
    pub edge_times: Vec<(Triple, PathBuf)>,
    /// Features of the edges of a type: `[E, F]`.
    pub edge_features: Vec<(Triple, PathBuf)>,
    /// Labels of the edges of a type, as [`NpyOptions::edge_labels`](super::NpyOptions::edge_labels).
    pub edge_labels: Vec<(Triple, PathBuf)>,
    /// Alternatively one number per edge of a type, to be learned by regression.
    pub edge_values: Vec<(Triple, PathBuf)>,
    /// Splits of edges: edge type, name, `[E]` booleans.
    pub edge_splits: Vec<(Triple, String, PathBuf)>,
    /// Number of nodes of a type; by default from features, labels or the largest id.
    pub num_nodes: Vec<(String, u64)>,
    /// Store the reverse of every edge too, as an edge of the type [`Triple::reversed`].
    pub reverse: bool,
    /// Memory limit in bytes.
    pub memory: u64,
}

/// Makes the dataset `out` from numpy arrays. Ids are kept as they are, counted from 0 in each node
/// type. The number of nodes of a type comes from its features, labels or `num_nodes`, which must
/// agree, else it is the largest id in edges plus one.
///
/// # Errors
/// For the first invalid value, with file and row; for arrays of types without edges;
/// nothing is left at `out` then.
pub fn heterogeneous_npy(options: &HeteroNpyOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing npy")
}

fn import(options: &HeteroNpyOptions, out: &Path) -> Result<Imported> {
    let mut edges = Vec::new();
    for (i, (triple, path)) in options.edges.iter().enumerate() {
        if options.edges[..i].iter().any(|(known, _)| known == triple) {
            return Err(Error::usage(format!("duplicate edge type {triple}")));
        }
        edges.push((triple, EdgeArray::open(Source::npy(path)?)?));
    }
    let triples = match &options.triples {
        Some((ntype, path)) => Some(TripleArray::open(ntype, path, options.relations.as_deref())?),
        None => None,
    };
    if edges.is_empty() && triples.is_none() {
        return Err(Error::usage("missing edges"));
    }
    let types = node_types(options);
    let counts = types.iter().map(|name| count(name, options, &edges, triples.as_ref()));
    let counts = counts.collect::<Result<Vec<Count>>>()?;
    for count in &counts {
        check_count(count.nodes, options.memory, || count.by.clone())?;
    }
    check_types(options, &types)?;
    let width = IdWidth::for_nodes(counts.iter().map(|count| count.nodes).max().unwrap_or(0));
    let mut writer = DatasetWriter::create(out, width)?;
    let files: Vec<String> = options.edges.iter().map(|(_, p)| p.display().to_string()).collect();
    writer.origin(json!({ "importer": "npy", "edges": files }));
    for (name, count) in types.iter().zip(&counts) {
        writer.add_node_type(name, count.nodes);
        write_nodes(&mut writer, name, count.nodes, options)?;
    }
    let reverses = if options.reverse { Reverses::Apart } else { Reverses::None };
    let of = |name: &str| &counts[types.iter().position(|known| known == name).unwrap_or(0)];
    for (triple, array) in edges {
        let beside = edge_arrays(triple, options)?;
        let limits = (of(&triple.src), of(&triple.dst));
        write_edges(&mut writer, triple, limits, array, beside, reverses)?;
    }
    if let Some(triples) = triples {
        let nodes = of(&triples.ntype);
        write_triples(&mut writer, triples, nodes, reverses)?;
    }
    finish(
        writer,
        FinishOptions { memory: options.memory, coalesce: false, ..Default::default() },
        Vec::new(),
    )
}

/// The edge columns of a type.
fn edge_arrays(triple: &Triple, options: &HeteroNpyOptions) -> Result<EdgeArrays> {
    let of = |given: &'_ [(Triple, PathBuf)]| -> Option<PathBuf> {
        given.iter().find(|(known, _)| known == triple).map(|(_, path)| path.clone())
    };
    let mut beside = EdgeArrays::default();
    if let Some(path) = of(&options.weights) {
        beside.weights(ArrayReader::open(Source::npy(&path)?)?, options.weight_type);
    }
    if let Some(path) = of(&options.edge_times) {
        beside.times(ArrayReader::open(Source::npy(&path)?)?);
    }
    if let Some(path) = of(&options.edge_features) {
        beside.features(ArrayReader::open(Source::npy(&path)?)?)?;
    }
    let splits = options.edge_splits.iter().filter(|(known, ..)| known == triple);
    let splits: Vec<_> = splits.map(|(_, name, path)| (name.clone(), path.clone())).collect();
    let (labels, values) = (of(&options.edge_labels), of(&options.edge_values));
    beside.answers(labels.as_deref(), values.as_deref(), &splits)?;
    Ok(beside)
}

/// Node types in the order of their first occurrence in edge types.
fn node_types(options: &HeteroNpyOptions) -> Vec<String> {
    let ends = options.edges.iter().flat_map(|(triple, _)| [&triple.src, &triple.dst]);
    let mut types: Vec<String> = Vec::new();
    for name in ends.chain(options.triples.iter().map(|(ntype, _)| ntype)) {
        if !types.contains(name) {
            types.push(name.clone());
        }
    }
    types
}

/// Rejects arrays of types without edges, and duplicate ones.
fn check_types(options: &HeteroNpyOptions, types: &[String]) -> Result<()> {
    let lists: [(&str, Vec<&String>); 7] = [
        ("features", options.features.iter().map(|(name, _)| name).collect()),
        ("labels", options.labels.iter().map(|(name, _)| name).collect()),
        ("values", options.values.iter().map(|(name, _)| name).collect()),
        ("times", options.times.iter().map(|(name, _)| name).collect()),
        ("num-nodes", options.num_nodes.iter().map(|(name, _)| name).collect()),
        ("split", options.splits.iter().map(|(name, ..)| name).collect()),
        ("split-labels", options.split_labels.iter().map(|(name, ..)| name).collect()),
    ];
    for (what, names) in lists {
        for (i, name) in names.iter().enumerate() {
            if !types.contains(name) {
                return Err(Error::usage(format!("--{what}: unknown node type '{name}'"))
                    .hint(format!("edges are given between: {}", types.join(", "))));
            }
            if !what.starts_with("split") && names[..i].contains(name) {
                return Err(Error::usage(format!("--{what}: duplicate node type '{name}'")));
            }
        }
    }
    let triples = || options.edges.iter().map(|(triple, _)| triple);
    let of = |given: &[(Triple, PathBuf)]| given.iter().map(|(t, _)| t.clone()).collect::<Vec<_>>();
    let splits = options.edge_splits.iter().map(|(triple, ..)| triple.clone()).collect();
    for (what, given) in [
        ("weights", of(&options.weights)),
        ("edge-times", of(&options.edge_times)),
        ("edge-features", of(&options.edge_features)),
        ("edge-labels", of(&options.edge_labels)),
        ("edge-values", of(&options.edge_values)),
        ("edge-split", splits),
    ] {
        if let Some(triple) = given.iter().find(|triple| !triples().any(|known| known == *triple)) {
            let known: Vec<String> = triples().map(Triple::to_string).collect();
            return Err(Error::usage(format!("--{what}: unknown edge type '{triple}'"))
                .hint(format!("edges are given of: {}", known.join(", "))));
        }
    }
    Ok(())
}

/// The number of nodes of a type.
fn count(
    name: &str,
    options: &HeteroNpyOptions,
    edges: &[(&Triple, EdgeArray)],
    triples: Option<&TripleArray>,
) -> Result<Count> {
    let stated = options.num_nodes.iter().find(|(known, _)| known == name);
    let mut stated = stated.map(|(_, nodes)| Count::stated(*nodes));
    let rows = options.features.iter().chain(&options.labels).chain(&options.values);
    for (_, path) in rows.chain(&options.times).filter(|(known, _)| known == name) {
        stated = Some(Count::of_rows(path, stated)?);
    }
    if let Some(count) = stated {
        return Ok(count);
    }
    let mut largest = Largest::default();
    for (triple, array) in edges {
        let ends = array.again()?.largest_of_ends()?;
        for (end, found) in [(&triple.src, ends.0), (&triple.dst, ends.1)] {
            if end == name {
                largest = largest.or(found);
            }
        }
    }
    if let Some(triples) = triples.filter(|triples| triples.ntype == name) {
        largest = largest.or(triples.largest());
    }
    Ok(largest.count())
}

fn write_nodes(
    writer: &mut DatasetWriter,
    name: &str,
    count: u64,
    options: &HeteroNpyOptions,
) -> Result<()> {
    if let Some((_, path)) = options.features.iter().find(|(known, _)| known == name) {
        write_features(writer, name, count, path)?;
    }
    if let Some((_, path)) = options.labels.iter().find(|(known, _)| known == name) {
        let array = ArrayReader::open(Source::npy(path)?)?;
        columns::labels(writer, name, count, array, options.num_classes)?;
    }
    if let Some((_, path)) = options.values.iter().find(|(known, _)| known == name) {
        columns::values(writer, name, count, ArrayReader::open(Source::npy(path)?)?)?;
    }
    if let Some((_, path)) = options.times.iter().find(|(known, _)| known == name) {
        columns::times(writer, name, count, ArrayReader::open(Source::npy(path)?)?)?;
    }
    let mut labels: Option<Vec<f64>> = None;
    let mut splits = Vec::new();
    for (_, split, path) in options.splits.iter().filter(|(known, ..)| known == name) {
        let ids = columns::split_ids(ArrayReader::open(Source::npy(path)?)?, count)?;
        let same = |other: &str| split_name(other) == split_name(split);
        let given = options.split_labels.iter().find(|(n, s, _)| n == name && same(s));
        if let Some((.., path)) = given {
            let all = labels.get_or_insert_with(|| vec![f64::NAN; count as usize]);
            read_split_labels(path, split, &ids, all)?;
        }
        splits.push((split, path, ids));
    }
    for (_, split, _) in options.split_labels.iter().filter(|(known, ..)| known == name) {
        let same = |other: &str| split_name(other) == split_name(split);
        if !options.splits.iter().any(|(n, s, _)| n == name && same(s)) {
            let message = format!("--split-labels: node type '{name}' has no split '{split}'");
            return Err(Error::usage(message).hint("give its nodes with --split"));
        }
    }
    match labels {
        None => {}
        Some(_) if options.labels.iter().any(|(known, _)| known == name) => {
            return Err(Error::usage(format!(
                "labels of '{name}' conflict: given both by node and by split"
            )));
        }
        Some(labels) => columns::node_classes(writer, name, &labels, options.num_classes)?,
    }
    splits.into_iter().try_for_each(|(split, path, ids)| {
        add_split(writer, name, split, ids).while_doing(|| path.display().to_string())
    })
}

fn read_split_labels(path: &Path, split: &str, ids: &[u64], all: &mut [f64]) -> Result<()> {
    let mut array = ArrayReader::open(Source::npy(path)?)?;
    array.expect_vector()?;
    if array.len() != ids.len() as u64 {
        let (labels, nodes) = (array.len(), ids.len());
        return Err(array.error(format!("{labels} labels for the {nodes} nodes of split {split}")));
    }
    let mut values = Vec::new();
    array.read_f64(ids.len(), &mut values)?;
    ids.iter().zip(values).for_each(|(&id, label)| all[id as usize] = label);
    Ok(())
}
