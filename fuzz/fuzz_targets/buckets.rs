//! Edge buckets whose files are damaged: a byte chooses the graph, the rest are edits.
#![no_main]

use std::sync::LazyLock;

use gnarl_fuzz::damage::Folder;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::{fixture, parts, scratch};
use gnarl_graph::Dataset;
use gnarl_partition::PartLayout;
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 16 << 20;

/// A partition with nothing but its manifest and the buckets, so that edits meet these.
fn folder(make: impl FnOnce(&std::path::Path) -> Dataset) -> Folder {
    Folder::new(|dir| {
        let source = scratch::folder();
        let graph = make(&source.path().join("data"));
        parts::partition(&graph, PartLayout::Storage, &source.path().join("parts"));
        let copy = |name: &str| {
            let from = source.path().join("parts").join(name);
            std::fs::copy(from, dir.join(name)).expect("a copy");
        };
        copy("partition.json");
        std::fs::create_dir(dir.join("buckets")).expect("a folder");
        let buckets = std::fs::read_dir(source.path().join("parts/buckets")).expect("buckets");
        for file in buckets {
            let name = file.expect("buckets").file_name().into_string().expect("a plain name");
            copy(&format!("buckets/{name}"));
        }
    })
}

static FOLDERS: LazyLock<[Folder; 2]> =
    LazyLock::new(|| [folder(fixture::homogeneous), folder(fixture::heterogeneous)]);

fuzz_target!(init: { LazyLock::force(&FOLDERS); }, |data: &[u8]| {
    let mut input = Input::new(data);
    let choice = usize::from(input.byte()) % FOLDERS.len();
    FOLDERS[choice].damaged(&mut input, |dir| {
        let _ = within(MEMORY, || parts::touch_buckets(dir));
    });
});
