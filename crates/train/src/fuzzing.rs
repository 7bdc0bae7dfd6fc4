//! Readers of formats that are private to the crate, for the fuzz targets in the folder `fuzz`.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use gnarl_common::rng::Key;
use gnarl_common::{Home, Result};
use gnarl_graph::Triple;
use gnarl_graph::blocks::Schema;
use gnarl_nn::{Init, ParamsBuilder};
use gnarl_store::embedding::SparseAdam;

use crate::data::packed::{blocks, columns, heterogeneous, rows, targets};
use crate::data::prepared::{Manifest, PreparedBatches};
use crate::embeddings::TableSpec;
use crate::run::checkpoint;
use crate::state::{Start, TrainState};

/// The initial state of a model with one weight and one table of embeddings.
///
/// # Errors
/// If there is no memory for it.
pub fn state() -> Result<TrainState> {
    let mut builder = ParamsBuilder::new(Key::new(3));
    builder.add("w", 4, 5, Init::XavierUniform);
    let table = TableSpec {
        name: "entity".into(),
        node_type: "entity".into(),
        count: 3,
        width: 2,
        bound: 0.5,
        key: Key::new(1),
        optimizer: Arc::new(SparseAdam::new(0.9, 0.999, 1e-8)?),
        in_turns: false,
    };
    let start = Start { params: builder.build(), tables: vec![table] };
    start.share(&[], (0, 1), &Home::Memory)
}

/// Decodes a checkpoint of a run in `dir` to a state like that of [`state`].
///
/// # Errors
/// If it is damaged.
pub fn decode(bytes: &[u8], dir: &Path) -> Result<TrainState> {
    checkpoint::decode(bytes, dir, state()?)
}

/// Unpacks a batch that another process sent: its blocks, of a homogeneous graph or of two node types, the features of its
/// nodes, and its targets.
///
/// # Errors
/// If its columns disagree.
pub fn unpack(batch: &RecordBatch, is_heterogeneous: bool) -> Result<()> {
    let mut columns = columns(batch)?;
    let nodes = if is_heterogeneous {
        let mut schema = Schema::default();
        schema.add_node_type("a");
        schema.add_node_type("b");
        for rel in ["x", "y"] {
            let triple = Triple { src: "b".into(), rel: rel.into(), dst: "a".into() };
            schema.add_edge_type(triple, 1, 0);
        }
        let batch = heterogeneous::unpack(&mut columns, &schema)?;
        heterogeneous::rows_of_types(&batch.segments, 2).into_iter().sum()
    } else {
        blocks::unpack(&mut columns)?.iter().map(|block| block.num_src()).max().unwrap_or(0)
    };
    rows::unpack(&mut columns, (rows::OF_NODES, nodes))?;
    targets::unpack(&mut columns, 3).map(drop)
}

/// Reads all prepared batches of the first rank in `dir`.
///
/// # Errors
/// If a file is damaged.
pub fn prepared(dir: &Path) -> Result<()> {
    let manifest = Manifest::read(dir)?;
    let batches = PreparedBatches::open(dir, &manifest, (0, 7))?;
    for epoch in 1..=manifest.epochs.len() + 1 {
        for spec in batches.schedule(epoch) {
            // A batch without examples is in no file.
            if !spec.share.is_empty() {
                batches.read(spec.graph)?;
            }
        }
    }
    Ok(())
}
