//! Messages of requests.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type};
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lists::{ListWriter, expected, list};
use crate::endpoints::{EdgeKind, Ends, LeftOut};
use crate::negatives::Negatives;
use crate::request::{Around, BatchRequest};

/// Most bytes of a request: servers take messages of 64 MiB.
const LONGEST: usize = 60 << 20;

/// The part of a request that is no list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// [`Key::bits`].
    key: u64,
    around: Kind,
}

/// The examples of a batch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Kind {
    Nodes {
        node_type: usize,
    },
    Edges {
        source_type: usize,
        destination_type: usize,
        negatives: Counted,
        left_out: Option<(usize, Option<usize>)>,
    },
}

/// Negatives.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Counted {
    None,
    Pairs(f64),
    Destinations(usize),
}

/// The message: what is not a list, and lists.
///
/// # Errors
/// If these make no valid Arrow data.
pub(crate) fn request_message(request: &BatchRequest) -> Result<(Value, RecordBatch)> {
    let mut lists = ListWriter::default();
    lists.push::<UInt32Type>("places", request.places.clone());
    if let Some(times) = &request.times {
        lists.push::<Int64Type>("times", times.clone());
    }
    let around = match &request.around {
        Around::Nodes { node_type, nodes } => {
            lists.push::<UInt32Type>("nodes", nodes.clone());
            Kind::Nodes { node_type: *node_type }
        }
        Around::Edges(of, ends) => {
            lists.push::<UInt32Type>("sources", ends.sources.clone());
            lists.push::<UInt32Type>("destinations", ends.destinations.clone());
            lists.push::<UInt32Type>("negative_sources", ends.negative_sources.clone());
            lists.push::<UInt32Type>("negative_destinations", ends.negative_destinations.clone());
            Kind::Edges {
                source_type: of.source_type,
                destination_type: of.destination_type,
                negatives: match of.negatives {
                    Negatives::None => Counted::None,
                    Negatives::Pairs(share) => Counted::Pairs(share),
                    Negatives::Destinations(each) => Counted::Destinations(each),
                },
                left_out: of.left_out.map(|of| (of.edge_type, of.reversed)),
            }
        }
    };
    let head = Head { key: request.key.bits(), around };
    Ok((serde_json::to_value(&head).unwrap_or_default(), lists.finish(LONGEST)?))
}

/// Reads a message.
///
/// # Errors
/// If it has another form.
pub(crate) fn request_of(head: &Value, lists: &RecordBatch) -> Result<BatchRequest> {
    let head = Head::deserialize(head);
    let head = head.map_err(|e| Error::invalid(format!("a request for a batch: {e}")))?;
    let nodes = |name| Ok::<_, Error>(expected::<UInt32Type>(lists, name)?.to_vec());
    let around = match head.around {
        Kind::Nodes { node_type } => Around::Nodes { node_type, nodes: nodes("nodes")? },
        Kind::Edges { source_type, destination_type, negatives, left_out } => {
            let negatives = match negatives {
                Counted::None => Negatives::None,
                Counted::Pairs(share) => Negatives::Pairs(share),
                Counted::Destinations(each) => Negatives::Destinations(each.max(1)),
            };
            let left_out = left_out.map(|(edge_type, reversed)| LeftOut { edge_type, reversed });
            let of = EdgeKind { source_type, destination_type, negatives, left_out };
            let ends = Ends {
                sources: nodes("sources")?,
                destinations: nodes("destinations")?,
                negative_sources: nodes("negative_sources")?,
                negative_destinations: nodes("negative_destinations")?,
            };
            Around::Edges(of, ends)
        }
    };
    let times = list::<Int64Type>(lists, "times")?.map(|times| times.to_vec());
    Ok(BatchRequest { places: nodes("places")?, key: Key::from_bits(head.key), around, times })
}
