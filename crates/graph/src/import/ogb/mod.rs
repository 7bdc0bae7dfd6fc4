//! The Open Graph Benchmark's folders, as they come from its download: `raw/` and `split/`.

mod binary;
mod links;
mod saved;
mod split;
mod tables;

use std::path::{Path, PathBuf};

use serde_json::json;

use super::array::ArrayReader;
use super::edge_arrays::EdgeArrays;
use super::edge_csv::{Follower, csv_edges};
use super::extra::Extra;
use super::npy::{Count, EdgeArray, write_edges};
use super::source::Source;
use super::{Imported, Reverses, WeightType, columns, finish};
use crate::error::{Context, Error, Result, ResultExt};
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};
use split::Splits;

/// Where an OGB graph is, and choices.
#[derive(Debug, Clone)]
pub struct OgbOptions {
    /// The folder of the graph, such as `ogbn_arxiv`, that holds `raw/` and `split/`.
    pub root: PathBuf,
    /// The folder below `split/`, such as `time`; `none` for no splits. By default the only one.
    pub split: Option<String>,
    /// Store the reverse of every edge too (self loops once), as `ogbn-products` and
    /// `ogbn-proteins` need it.
    pub add_inverse: bool,
    /// Number of classes; the largest label tells it otherwise.
    pub num_classes: Option<u64>,
    /// The type of the edge column `weight`.
    pub weight_type: WeightType,
    /// Bytes the import may hold.
    pub memory: u64,
}

impl OgbOptions {
    /// The graph in `root` as it lies there, 1 GiB of memory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            split: None,
            add_inverse: false,
            num_classes: None,
            weight_type: WeightType::default(),
            memory: 1 << 30,
        }
    }
}

/// Makes the dataset `out` from an OGB folder in any of its four layouts: text or binary, of one
/// node type or several. Ids are kept. `node_year` and other single integers of nodes become node
/// columns of that name; `edge_weight`, `edge_year` and `edge_reltype` the edge columns `weight`,
/// `time` and `relation`; further columns are left out with a warning.
///
/// Where the splits are edges the dataset has those of all splits, told apart by the edge column
/// `split` as the importer of triples has it, and so has `relation`; given negatives are left out. With
/// relations, nodes of all types are entities.
///
/// # Errors
/// For the first bad value, by file and row; for files of torch that hold more than tensors and arrays;
/// for folders of many graphs.
pub fn ogb(options: &OgbOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing ogb")
}

/// Numbers in a text table without header, or in an array.
enum Values {
    Csv(PathBuf),
    Array(Source),
}

/// A node type and where its columns are.
struct NodePart {
    name: String,
    count: u64,
    features: Option<Values>,
    labels: Option<Values>,
    /// Further columns by name.
    more: Vec<(String, Values)>,
}

impl NodePart {
    fn new(name: impl Into<String>, count: u64) -> Self {
        Self { name: name.into(), count, features: None, labels: None, more: Vec::new() }
    }
}

/// An edge type and where its columns are.
struct EdgePart {
    triple: Triple,
    /// Number of edges stated beside them.
    count: Option<u64>,
    edges: Values,
    more: Vec<(Extra, Values)>,
}

/// What a `raw/` folder holds.
struct Layout {
    nodes: Vec<NodePart>,
    edges: Vec<EdgePart>,
}

/// Finds out which layout `raw` has, of which edge weights are to be stored as `weights`; compressed
/// arrays are unpacked below `scratch`.
fn layout(raw: &Path, scratch: &Path, weights: WeightType) -> Result<Layout> {
    let has = |name: &str| raw.join(name).exists();
    if has("data.npz") {
        return binary::plain(raw, scratch, weights);
    }
    if has("num_nodes_dict.npz") || has("edge_index_dict.npz") {
        return binary::typed(raw, scratch, weights);
    }
    if has("num-node-dict.csv.gz") || has("triplet-type-list.csv.gz") {
        return tables::typed(raw, weights);
    }
    if has("num-node-list.csv.gz") || has("edge.csv.gz") {
        return tables::plain(raw, weights);
    }
    Err(Error::invalid(format!("{}: no graph of OGB here", raw.display()))
        .hint("give the folder that holds raw/ and split/, such as dataset/ogbn_arxiv"))
}

fn import(options: &OgbOptions, out: &Path) -> Result<Imported> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).at(parent)?;
    let layout = layout(&options.root.join("raw"), parent, options.weight_type)?;
    let splits = Splits::find(&options.root, options.split.as_deref(), options.memory)?;
    if let Splits::Saved(saved) = &splits
        && saved.of_edges()?
    {
        return links::import(options, layout, saved, out);
    }
    if options.add_inverse
        && let Some(edges) = layout.edges.iter().find(|e| e.triple.src != e.triple.dst)
    {
        return Err(Error::usage(format!("no inverse edges of {}", edges.triple))
            .hint("inverse edges of a graph with node types are edge types of their own"));
    }
    let largest = layout.nodes.iter().map(|n| n.count).max().unwrap_or(0);
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(largest))?;
    describe(&mut writer, options);
    for part in &layout.nodes {
        writer.add_node_type(&part.name, part.count);
    }
    for part in layout.nodes {
        write_nodes(&mut writer, part, options.num_classes)?;
    }
    splits.write(&mut writer)?;
    for part in layout.edges {
        write_edge_type(&mut writer, part, options.add_inverse)?;
    }
    finish(writer, FinishOptions { memory: options.memory, coalesce: false }, Vec::new())
}

/// Says where the dataset comes from.
fn describe(writer: &mut DatasetWriter, options: &OgbOptions) {
    writer.origin(json!({ "importer": "ogb", "root": options.root.display().to_string() }));
    if let Some(name) = options.root.file_name() {
        writer.name(name.to_string_lossy());
    }
}

fn write_nodes(writer: &mut DatasetWriter, part: NodePart, classes: Option<u64>) -> Result<()> {
    let (name, count) = (&part.name, part.count);
    match part.features {
        None => {}
        Some(Values::Csv(path)) => tables::features(writer, name, count, &path)?,
        Some(Values::Array(source)) => {
            columns::dense_features(writer, name, count, ArrayReader::open(source)?)?;
        }
    }
    match part.labels {
        None => {}
        Some(Values::Csv(path)) => tables::labels(writer, name, count, &path, classes)?,
        Some(Values::Array(source)) => {
            columns::labels(writer, name, count, ArrayReader::open(source)?, classes)?;
        }
    }
    for (column, values) in part.more {
        match values {
            Values::Csv(path) => tables::integers(writer, (name, count), &column, &path)?,
            Values::Array(source) => {
                binary::integers(writer, (name, count), &column, ArrayReader::open(source)?)?;
            }
        }
    }
    Ok(())
}

fn write_edge_type(writer: &mut DatasetWriter, part: EdgePart, symmetrize: bool) -> Result<()> {
    let EdgePart { triple, count, edges, more } = part;
    let limits = (writer.node_type(&triple.src)?.count, writer.node_type(&triple.dst)?.count);
    let (name, read) = match edges {
        Values::Csv(path) => {
            let mut followers = Vec::new();
            for (extra, values) in more {
                if let Values::Csv(path) = values {
                    followers.push(Follower::open(extra, &path)?);
                }
            }
            let read = csv_edges(writer, &triple, limits, &path, followers, symmetrize)?;
            (path.display().to_string(), read)
        }
        Values::Array(source) => {
            let mut beside = EdgeArrays::default();
            for (extra, values) in more {
                if let (Extra::Weight(stored), Values::Array(source)) = (extra, values) {
                    beside.weights(ArrayReader::open(source)?, stored);
                }
            }
            let array = EdgeArray::open(source)?;
            let (name, read) = (array.name().to_string(), array.len());
            let reverses = Reverses::within(symmetrize);
            let [src, dst] = [limits.0, limits.1].map(Count::of_dataset);
            write_edges(writer, &triple, (&src, &dst), array, beside, reverses)?;
            (name, read)
        }
    };
    match count {
        Some(stated) if stated != read => {
            Err(Error::invalid(format!("{name}: {read} edges, {stated} are stated"))
                .hint("the number of edges stands in num-edge-list or num_edges beside it"))
        }
        _ => Ok(()),
    }
}
