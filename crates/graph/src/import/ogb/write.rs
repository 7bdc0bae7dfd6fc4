//! Writing the nodes and edges of a layout.

use gnarl_common::{Error, Result};
use serde_json::json;

use super::layout::{EdgePart, NodePart, Values};
use super::options::OgbOptions;
use super::{binary, tables};
use crate::import::array::ArrayReader;
use crate::import::columns;
use crate::import::edge_arrays::EdgeArrays;
use crate::import::edge_csv::{Follower, csv_edges};
use crate::import::extra::Extra;
use crate::import::npy::{Count, EdgeArray, write_edges};
use crate::import::reverses::Reverses;
use crate::writer::DatasetWriter;

/// Records the origin of the dataset.
pub(super) fn describe(writer: &mut DatasetWriter, options: &OgbOptions) {
    writer.origin(json!({ "importer": "ogb", "root": options.root.display().to_string() }));
    if let Some(name) = options.root.file_name() {
        writer.name(name.to_string_lossy());
    }
}

pub(super) fn write_nodes(
    writer: &mut DatasetWriter,
    part: NodePart,
    classes: Option<u64>,
) -> Result<()> {
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

pub(super) fn write_edge_type(
    writer: &mut DatasetWriter,
    part: EdgePart,
    symmetrize: bool,
) -> Result<()> {
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
