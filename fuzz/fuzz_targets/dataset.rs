//! Datasets whose files are damaged: a byte chooses the dataset, the rest are edits.
//!
//! Whatever a reader makes of them, it takes bounded memory and ends with a result or an error.
#![no_main]

use std::sync::LazyLock;

use gnarl_fuzz::damage::Folder;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::{fixture, graph, parts, scratch};
use gnarl_graph::Dataset;
use gnarl_graph::inspect::verify;
use libfuzzer_sys::fuzz_target;

/// Memory of all readers and of a small partition.
const MEMORY: usize = 96 << 20;

static FOLDERS: LazyLock<[Folder; 2]> = LazyLock::new(|| {
    [
        Folder::new(|dir| drop(fixture::homogeneous(&dir.join("data")))),
        Folder::new(|dir| drop(fixture::heterogeneous(&dir.join("data")))),
    ]
});

fuzz_target!(init: { LazyLock::force(&FOLDERS); }, |data: &[u8]| {
    let mut input = Input::new(data);
    let choice = input.byte();
    FOLDERS[usize::from(choice & 1)].damaged(&mut input, |dir| {
        within(MEMORY, || {
            let Ok(dataset) = Dataset::open(dir.join("data")) else { return };
            let _ = graph::touch(&dataset);
            let _ = verify(&dataset);
            // A partition takes longer than all other readers: one in four.
            if choice & 6 == 6 {
                let out = scratch::folder();
                let _ = parts::partition_again(&dataset, choice >> 3, &out.path().join("parts"));
            }
        });
    });
});
