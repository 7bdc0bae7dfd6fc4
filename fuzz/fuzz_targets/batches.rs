//! Batches from batch workers: a byte for the kind of graph, then columns of lists.
#![no_main]

use gnarl_fuzz::columns::record_batch;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_train::fuzzing::unpack;
use libfuzzer_sys::fuzz_target;

const COLUMNS: [&str; 25] = [
    "nodes.id",
    "nodes.degree",
    "blocks",
    "blocks.0.sources",
    "blocks.0.indptr",
    "blocks.0.indices",
    "blocks.0.weights",
    "blocks.0.features",
    "blocks.0.features.width",
    "blocks.1.sources",
    "blocks.1.indptr",
    "blocks.1.indices",
    "features",
    "features.width",
    "features.indptr",
    "features.indices",
    "features.values",
    "targets.class",
    "targets.labels",
    "targets.value",
    "segments.type",
    "segments.end",
    "blocks.0.edge_types",
    "blocks.0.group_degrees",
    "blocks.1.edge_types",
];

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let is_heterogeneous = input.byte() % 2 == 1;
    let Some(batch) = record_batch(&mut input, &COLUMNS, true) else { return };
    let _ = within(32 << 20, || unpack(&batch, is_heterogeneous));
});
