//! The messages of batch workers, compute workers and the coordinator.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
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
}

/// The part of a [`BatchRequest`] that is sent in the descriptor.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    op: Op,
    run: u32,
    era: u64,
    key: u64,
    share: [usize; 2],
    reached: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Batch,
}

impl BatchRequest {
    /// The message: a descriptor, and the examples in a column `example`.
    ///
    /// # Errors
    /// If the examples make no valid Arrow data.
    pub(crate) fn message(&self) -> Result<(Vec<u8>, RecordBatch)> {
        let &Self { run, era, key, share, reached, .. } = self;
        let name = Name { op: Op::Batch, run, era, key, share, reached };
        let examples: ArrayRef = Arc::new(UInt32Array::from(self.examples.clone()));
        let about = RecordBatch::try_from_iter([("example", examples)]);
        let about = about.map_err(|e| Error::invalid(format!("examples of a batch: {e}")))?;
        Ok((crate::command::write(&name), about))
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it has another form, or the share exceeds the examples.
    pub(crate) fn read(descriptor: &[u8], about: &[RecordBatch]) -> Result<Self> {
        let name: Name = crate::command::read("the descriptor", descriptor)?;
        let Name { run, era, key, share, reached, .. } = name;
        let mut examples = Vec::new();
        for batch in about {
            let column = batch.column_by_name("example");
            let column = column.and_then(|column| column.as_primitive_opt::<UInt32Type>());
            let wrong = || Error::invalid("the message lacks a column 'example' of type u32");
            examples.extend_from_slice(column.ok_or_else(wrong)?.values());
        }
        if share[0] > share[1] || share[1] > examples.len() {
            return Err(Error::invalid(format!(
                "examples {} to {} of {} are asked for",
                share[0],
                share[1],
                examples.len()
            )));
        }
        Ok(Self { run, era, key, examples, share, reached })
    }
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
        };
        let (descriptor, about) = request.message().unwrap();
        assert_eq!(BatchRequest::read(&descriptor, std::slice::from_ref(&about)).unwrap(), request);
        let beyond = BatchRequest { share: [2, 4], ..request };
        let (descriptor, _) = beyond.message().unwrap();
        let error = BatchRequest::read(&descriptor, &[about]).unwrap_err().to_string();
        assert!(error.contains("examples 2 to 4 of 3"), "{error}");
        let error = BatchRequest::read(b"{\"op\":\"gather\"}", &[]).unwrap_err().to_string();
        assert!(error.contains("descriptor"), "{error}");
    }
}
