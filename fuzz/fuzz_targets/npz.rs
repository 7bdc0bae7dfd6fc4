//! Archives of arrays: sparse features in the form of scipy, as any bytes or as an archive of the given members.
#![no_main]

use std::io::{Cursor, Write};

use gnarl_fuzz::graph::{self, SLACK};
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::scratch;
use gnarl_graph::import::{NpyOptions, npy};
use libfuzzer_sys::fuzz_target;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The least that leaves room for a graph: an import of as many nodes as fit is soon done.
const MEMORY: usize = 2 << 20;
const MEMBERS: [&str; 4] = ["indptr.npy", "indices.npy", "data.npy", "shape.npy"];

fn archive(input: &mut Input<'_>, method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for name in MEMBERS {
        zip.start_file(name, options).expect("a member");
        zip.write_all(&input.npy()).expect("a member");
    }
    zip.finish().expect("an archive").into_inner()
}

fuzz_target!(|data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let bytes = match input.byte() {
        0 => input.rest().to_vec(),
        method if method % 2 == 1 => archive(&mut input, CompressionMethod::Stored),
        _ => archive(&mut input, CompressionMethod::Deflated),
    };
    let features = dir.path().join("features.npz");
    scratch::write(&features, &bytes);
    let edges = dir.path().join("edges.npy");
    graph::write_edges(&edges, &[(0, 1), (1, 2), (2, 0)]);
    let options =
        NpyOptions { features: Some(features), memory: MEMORY as u64, ..NpyOptions::new(&edges) };
    let imported = within(MEMORY + SLACK, || npy(&options, &dir.path().join("out")));
    if let Ok(imported) = imported {
        graph::check(&imported.dataset);
    }
});
