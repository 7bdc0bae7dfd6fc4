//! The messages of batch workers, compute workers and the coordinator.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// A batch worker's word to the coordinator that it lives, from which on it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joining {
    /// Its address for compute workers. The host `0.0.0.0` stands for the address that the coordinator sees.
    pub uri: String,
    /// The run: what must not differ among its workers, as lines of text.
    pub run: String,
}

/// The coordinator's answer to a batch worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The run has ended, and its batch workers are to end too.
    pub end: bool,
}

/// The batch workers that live, by their addresses, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Living {
    /// Their addresses.
    pub workers: Vec<String>,
}

/// The name of a batch: what it holds is a function of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRequest {
    /// The run, as a digest of [`Joining::run`].
    pub run: u32,
    /// Number of the era, among those of all epochs.
    pub era: u64,
    /// Bits of the key of random draws.
    pub key: u64,
    /// The examples of the batch on all ranks.
    pub examples: Vec<u32>,
    /// The range of those of the rank that asks.
    pub share: [usize; 2],
    /// The era whose batches all ranks have reached: earlier ones are not asked for any more.
    pub reached: u64,
    /// True if the features of its input nodes are part of the reply; else they are asked for by a [`RowsRequest`].
    pub features: bool,
}

/// A request for features of nodes in the memory of a batch worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsRequest {
    /// As [`BatchRequest::run`].
    pub run: u32,
    /// An era in which the nodes are in memory.
    pub era: u64,
    /// Dataset ids.
    pub nodes: Vec<u64>,
    /// As [`BatchRequest::reached`].
    pub reached: u64,
}

/// A request to a batch worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkRequest {
    /// For a batch.
    Batch(BatchRequest),
    /// For features.
    Rows(RowsRequest),
}

/// The part of a request that is sent in the descriptor.
#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
enum Name {
    Batch { run: u32, era: u64, key: u64, share: [usize; 2], reached: u64, features: bool },
    Rows { run: u32, era: u64, reached: u64 },
}

impl WorkRequest {
    /// The run, as a digest of [`Joining::run`].
    pub fn run(&self) -> u32 {
        match self {
            Self::Batch(BatchRequest { run, .. }) | Self::Rows(RowsRequest { run, .. }) => *run,
        }
    }

    /// Number of the era, among those of all epochs.
    pub fn era(&self) -> usize {
        match self {
            Self::Batch(BatchRequest { era, .. }) | Self::Rows(RowsRequest { era, .. }) => {
                *era as usize
            }
        }
    }

    /// The era that all ranks have reached.
    pub fn reached(&self) -> usize {
        match self {
            Self::Batch(BatchRequest { reached, .. }) | Self::Rows(RowsRequest { reached, .. }) => {
                *reached as usize
            }
        }
    }

    /// The message: a descriptor, and the examples or nodes in a column.
    ///
    /// # Errors
    /// If these make no valid Arrow data.
    pub(crate) fn message(&self) -> Result<(Vec<u8>, RecordBatch)> {
        let (name, column, values): (Name, _, ArrayRef) = match self {
            Self::Batch(request) => {
                let &BatchRequest { run, era, key, share, reached, features, .. } = request;
                let name = Name::Batch { run, era, key, share, reached, features };
                (name, EXAMPLE, Arc::new(UInt32Array::from(request.examples.clone())))
            }
            Self::Rows(request) => {
                let &RowsRequest { run, era, reached, .. } = request;
                let nodes = Arc::new(UInt64Array::from(request.nodes.clone()));
                (Name::Rows { run, era, reached }, NODE, nodes)
            }
        };
        let about = RecordBatch::try_from_iter([(column, values)]);
        let about = about.map_err(|e| Error::invalid(format!("a request for a batch: {e}")))?;
        Ok((crate::command::write(&name), about))
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it has another form, or the share exceeds the examples.
    pub(crate) fn read(descriptor: &[u8], about: &[RecordBatch]) -> Result<Self> {
        match crate::command::read("the descriptor", descriptor)? {
            Name::Batch { run, era, key, share, reached, features } => {
                let examples = column::<UInt32Type>(EXAMPLE, about)?;
                if share[0] > share[1] || share[1] > examples.len() {
                    return Err(Error::invalid(format!(
                        "examples {} to {} of {} are asked for",
                        share[0],
                        share[1],
                        examples.len()
                    )));
                }
                let request = BatchRequest { run, era, key, examples, share, reached, features };
                Ok(Self::Batch(request))
            }
            Name::Rows { run, era, reached } => {
                let nodes = column::<UInt64Type>(NODE, about)?;
                Ok(Self::Rows(RowsRequest { run, era, nodes, reached }))
            }
        }
    }
}

/// The column of a batch's examples, and that of nodes.
const EXAMPLE: &str = "example";
const NODE: &str = "node";

/// The values of a column of a message.
fn column<T: ArrowPrimitiveType>(name: &str, about: &[RecordBatch]) -> Result<Vec<T::Native>> {
    let mut values = Vec::new();
    for batch in about {
        let found = batch.column_by_name(name);
        let found = found.and_then(|column| column.as_primitive_opt::<T>());
        let wrong = || {
            let kind = T::DATA_TYPE;
            Error::invalid(format!("the message lacks a column '{name}' of type {kind}"))
        };
        values.extend_from_slice(found.ok_or_else(wrong)?.values());
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_batches_survive_the_wire() {
        let request = BatchRequest {
            run: 7,
            era: 3,
            key: u64::MAX,
            examples: vec![5, 1, 9],
            share: [1, 3],
            reached: 2,
            features: false,
        };
        let asked = WorkRequest::Batch(request.clone());
        let (descriptor, about) = asked.message().unwrap();
        assert_eq!(WorkRequest::read(&descriptor, std::slice::from_ref(&about)).unwrap(), asked);
        let beyond = WorkRequest::Batch(BatchRequest { share: [2, 4], ..request });
        let (descriptor, _) = beyond.message().unwrap();
        let error = WorkRequest::read(&descriptor, &[about]).unwrap_err().to_string();
        assert!(error.contains("examples 2 to 4 of 3"), "{error}");
        let error = WorkRequest::read(b"{\"op\":\"gather\"}", &[]).unwrap_err().to_string();
        assert!(error.contains("descriptor"), "{error}");
    }

    #[test]
    fn requests_for_features_survive_the_wire() {
        let asked =
            WorkRequest::Rows(RowsRequest { run: 7, era: 3, nodes: vec![u64::MAX, 4], reached: 2 });
        let (descriptor, about) = asked.message().unwrap();
        assert_eq!(WorkRequest::read(&descriptor, &[about]).unwrap(), asked);
        let other = RecordBatch::try_from_iter([(NODE, Arc::new(UInt32Array::from(vec![1])) as _)]);
        let error = WorkRequest::read(&descriptor, &[other.unwrap()]).unwrap_err().to_string();
        assert!(error.contains("'node' of type UInt64"), "{error}");
    }
}
