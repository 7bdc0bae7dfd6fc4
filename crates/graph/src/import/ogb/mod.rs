//! The Open Graph Benchmark's folders, as downloaded: `raw/` and `split/`.

mod binary;
mod layout;
mod links;
mod options;
mod saved;
mod split;
mod tables;
mod write;

use std::path::Path;

use super::WeightType;
use super::report::{Imported, finish};
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};
use gnarl_common::{Context, Error, Result, ResultExt};
use layout::Layout;
pub use options::OgbOptions;
use split::Splits;
use write::{describe, write_edge_type, write_nodes};

/// Makes the dataset `out` from an OGB folder in any of its four layouts: text or binary, of one
/// node type or several. Ids are kept. `node_year` and other single integers of nodes become node
/// columns of that name; `edge_weight`, `edge_year` and `edge_reltype` the edge columns `weight`,
/// `time` and `relation`; further columns are left out with a warning.
///
/// Where the splits are edges the dataset has those of all splits, distinguished by the edge column
/// `split` as in the importer of triples, and by `relation`; given negatives are left out. With
/// relations, nodes of all types are entities.
///
/// # Errors
/// For the first invalid value, by file and row; for files of torch with other objects than tensors
/// and arrays; for folders of many graphs.
pub fn ogb(options: &OgbOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing ogb")
}

/// Detects the layout of `raw`, whose edge weights are to be stored as `weights`; compressed
/// arrays are unpacked below `scratch`.
fn read_layout(raw: &Path, scratch: &Path, weights: WeightType) -> Result<Layout> {
    let has = |name: &str| raw.join(name).exists();
    if has("data.npz") {
        return binary::plain(raw, scratch, weights);
    }
    if has("num_nodes_dict.npz") || has("edge_index_dict.npz") {
        return binary::heterogeneous(raw, scratch, weights);
    }
    if has("num-node-dict.csv.gz") || has("triplet-type-list.csv.gz") {
        return tables::heterogeneous(raw, weights);
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
    let layout = read_layout(&options.root.join("raw"), parent, options.weight_type)?;
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
    finish(
        writer,
        FinishOptions { memory: options.memory, coalesce: false, ..Default::default() },
        Vec::new(),
    )
}
