//! GraphBolt's on-disk datasets: `metadata.yaml` beside numpy and CSV files.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Result, ResultExt};
use serde::Deserialize;
use serde_json::json;

use super::array::ArrayReader;
use super::columns;
use super::edge_arrays::EdgeArrays;
use super::edge_csv::csv_edges;
use super::npy::{Count, EdgeArray, write_edges, write_features};
use super::report::{Imported, finish};
use super::reverses::Reverses;
use super::source::Source;
use super::splits::add_split;
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Path and options of [`graphbolt`].
#[derive(Debug, Clone)]
pub struct GraphboltOptions {
    /// `metadata.yaml`, or the directory that holds it.
    pub path: PathBuf,
    /// The task whose sets become splits and labels; the first otherwise.
    pub task: Option<String>,
    /// Memory limit in bytes.
    pub memory: u64,
}

#[derive(Deserialize)]
struct Metadata {
    dataset_name: Option<String>,
    graph: Graph,
    #[serde(default)]
    feature_data: Vec<Feature>,
    #[serde(default)]
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Graph {
    nodes: Vec<Nodes>,
    edges: Vec<Edges>,
}

#[derive(Deserialize)]
struct Nodes {
    #[serde(rename = "type")]
    ntype: Option<String>,
    num: u64,
}

#[derive(Deserialize)]
struct Edges {
    #[serde(rename = "type")]
    etype: Option<String>,
    format: String,
    path: PathBuf,
}

#[derive(Deserialize)]
struct Feature {
    domain: String,
    #[serde(rename = "type")]
    ntype: Option<String>,
    name: String,
    format: String,
    path: PathBuf,
}

#[derive(Deserialize)]
struct Task {
    name: Option<String>,
    num_classes: Option<u64>,
    #[serde(default)]
    train_set: Vec<Set>,
    #[serde(default)]
    validation_set: Vec<Set>,
    #[serde(default)]
    test_set: Vec<Set>,
}

#[derive(Deserialize)]
struct Set {
    #[serde(rename = "type")]
    ntype: Option<String>,
    data: Vec<SetData>,
}

#[derive(Deserialize)]
struct SetData {
    name: String,
    format: String,
    path: PathBuf,
}

/// Makes the dataset `out` from a GraphBolt `metadata.yaml`. The node feature named `feat` (else
/// the first) becomes `features`, further features and those of edges and graphs are left out with
/// a warning; a task's seeds become the splits `train`, `valid` and `test`, its labels the classes
/// of the seeds. Ids are kept.
///
/// # Errors
/// For the first bad value; for files in torch's own format; for link-prediction sets.
pub fn graphbolt(options: &GraphboltOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing graphbolt")
}

fn import(options: &GraphboltOptions, out: &Path) -> Result<Imported> {
    let yaml = if options.path.is_dir() {
        options.path.join("metadata.yaml")
    } else {
        options.path.clone()
    };
    let text = std::fs::read_to_string(&yaml).at(&yaml)?;
    let metadata: Metadata = serde_norway::from_str(&text)
        .map_err(|e| Error::invalid(format!("{}: {e}", yaml.display())))?;
    let dir = yaml.parent().unwrap_or(Path::new("."));
    let largest = metadata.graph.nodes.iter().map(|n| n.num).max().unwrap_or(0);
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(largest))?;
    writer.origin(json!({ "importer": "graphbolt", "metadata": yaml.display().to_string() }));
    if let Some(name) = &metadata.dataset_name {
        writer.name(name);
    }
    for nodes in &metadata.graph.nodes {
        writer.add_node_type(nodes.ntype.as_deref().unwrap_or(DEFAULT_NODE_TYPE), nodes.num);
    }
    for edges in &metadata.graph.edges {
        add_edges(&mut writer, edges, dir)?;
    }
    add_features(&mut writer, &metadata.feature_data, dir)?;
    let task = match &options.task {
        None => metadata.tasks.first(),
        Some(name) => {
            let found = metadata.tasks.iter().find(|t| t.name.as_ref() == Some(name));
            Some(
                found
                    .ok_or_else(|| Error::usage(format!("{}: no task '{name}'", yaml.display())))?,
            )
        }
    };
    if let Some(task) = task {
        add_task(&mut writer, task, dir)?;
    }
    finish(
        writer,
        FinishOptions { memory: options.memory, coalesce: false, ..Default::default() },
        Vec::new(),
    )
}

/// Opens the array in a file, which must be in numpy's format.
fn array(dir: &Path, format: &str, path: &Path) -> Result<ArrayReader> {
    let path = dir.join(path);
    if format != "numpy" {
        return Err(Error::invalid(format!("{}: format '{format}'", path.display()))
            .hint("save it as numpy: numpy.save(path, torch.load(path).numpy())"));
    }
    ArrayReader::open(Source::npy(&path)?)
}

fn add_edges(writer: &mut DatasetWriter, edges: &Edges, dir: &Path) -> Result<()> {
    let triple = edges.etype.as_deref().map_or(Ok(Triple::plain()), str::parse::<Triple>)?;
    let counts = (writer.node_type(&triple.src)?.count, writer.node_type(&triple.dst)?.count);
    let path = dir.join(&edges.path);
    if edges.format == "numpy" {
        let array = EdgeArray::open(Source::npy(&path)?)?;
        let [src, dst] = [counts.0, counts.1].map(Count::of_dataset);
        let beside = EdgeArrays::default();
        return write_edges(writer, &triple, (&src, &dst), array, beside, Reverses::None);
    }
    if edges.format != "csv" {
        return Err(Error::invalid(format!("{}: format '{}'", path.display(), edges.format))
            .hint("edges are csv or numpy"));
    }
    csv_edges(writer, &triple, counts, &path, Vec::new(), false).map(drop)
}

fn add_features(writer: &mut DatasetWriter, features: &[Feature], dir: &Path) -> Result<()> {
    let mut done: Vec<&str> = Vec::new();
    let ordered = features.iter().filter(|f| f.name == "feat").chain(features);
    for feature in features.iter().filter(|f| f.domain != "node") {
        tracing::warn!("the {} feature '{}' is left out", feature.domain, feature.name);
    }
    let mut taken: Vec<&Path> = Vec::new();
    for feature in ordered.filter(|f| f.domain == "node") {
        let ntype = feature.ntype.as_deref().unwrap_or(DEFAULT_NODE_TYPE);
        if done.contains(&ntype) {
            if !taken.contains(&feature.path.as_path()) {
                tracing::warn!("the feature '{}' of {ntype} nodes is left out", feature.name);
            }
            continue;
        }
        taken.push(&feature.path);
        done.push(ntype);
        let nodes = writer.node_type(ntype)?.count;
        array(dir, &feature.format, &feature.path)?;
        write_features(writer, ntype, nodes, &dir.join(&feature.path))?;
    }
    Ok(())
}

fn add_task(writer: &mut DatasetWriter, task: &Task, dir: &Path) -> Result<()> {
    let sets =
        [("train", &task.train_set), ("valid", &task.validation_set), ("test", &task.test_set)];
    let mut labels: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
    let mut splits = Vec::new();
    for (split, sets) in sets {
        for set in sets {
            let ntype = set.ntype.as_deref().unwrap_or(DEFAULT_NODE_TYPE);
            let nodes = writer.node_type(ntype)?.count;
            let find = |names: &[&str]| set.data.iter().find(|d| names.contains(&d.name.as_str()));
            let Some(seeds) = find(&["seeds", "seed_nodes"]) else { continue };
            let seeds = array(dir, &seeds.format, &seeds.path)?;
            let ids = columns::split_ids(seeds, nodes)?;
            if let Some(data) = find(&["labels"]) {
                let mut values = Vec::new();
                let mut reader = array(dir, &data.format, &data.path)?;
                if reader.len() != ids.len() as u64 {
                    return Err(reader.error(format!("labels for {} seeds", ids.len())));
                }
                reader.read_f64(ids.len(), &mut values)?;
                let all = labels.entry(ntype.into()).or_insert(vec![f64::NAN; nodes as usize]);
                ids.iter().zip(values).for_each(|(&id, label)| all[id as usize] = label);
            }
            splits.push((ntype, split, ids));
        }
    }
    for (ntype, values) in labels {
        columns::node_classes(writer, &ntype, &values, task.num_classes)?;
    }
    splits.into_iter().try_for_each(|(ntype, split, ids)| add_split(writer, ntype, split, ids))
}
