//! Imports of numpy arrays: a byte of options, and a section for each file.
//!
//! An import stays within its memory. One that is accepted opens, and its edges survive another import.
#![no_main]

use gnarl_fuzz::graph::{self, SLACK};
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::scratch;
use gnarl_graph::import::{NpyOptions, npy};
use libfuzzer_sys::fuzz_target;

/// The least that leaves room for a graph: an import of as many nodes as fit is soon done.
const MEMORY: usize = 2 << 20;

fuzz_target!(|data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let flags = input.byte();
    let files = input.byte();
    let mut file = |name: &str, bit: u8| {
        (files >> bit & 1 == 1).then(|| {
            let path = dir.path().join(name);
            scratch::write(&path, &input.npy());
            path
        })
    };
    // The edges are always there; the bit says nothing about them.
    let edges = dir.path().join("edges.npy");
    let options = NpyOptions {
        features: file("features.npy", 0),
        labels: file("labels.npy", 1),
        splits: file("split.npy", 2).into_iter().map(|path| ("train".into(), path)).collect(),
        weights: file("weights.npy", 3),
        edge_times: file("times.npy", 4),
        edge_features: file("edge-features.npy", 5),
        edge_labels: file("edge-labels.npy", 6),
        times: file("node-times.npy", 7),
        symmetrize: flags & 1 != 0,
        coalesce: (flags & 2 != 0).then_some(flags & 4 != 0),
        num_nodes: (flags & 8 != 0).then(|| u64::from(flags >> 4)),
        memory: MEMORY as u64,
        ..NpyOptions::new(&edges)
    };
    scratch::write(&edges, &input.npy());
    let imported = within(MEMORY + SLACK, || npy(&options, &dir.path().join("out")));
    let Ok(imported) = imported else {
        assert!(!dir.path().join("out").exists(), "a rejected import leaves nothing");
        return;
    };
    graph::check(&imported.dataset);
    let expected = graph::edges(&imported.dataset);
    graph::write_edges(&dir.path().join("again.npy"), &expected);
    let nodes = imported.dataset.manifest().num_nodes();
    let options = NpyOptions {
        num_nodes: Some(nodes),
        memory: MEMORY as u64,
        ..NpyOptions::new(dir.path().join("again.npy"))
    };
    match npy(&options, &dir.path().join("out-again")) {
        Ok(again) => assert_eq!(graph::edges(&again.dataset), expected),
        Err(e) => assert!(expected.is_empty(), "{e:?}"),
    }
});
