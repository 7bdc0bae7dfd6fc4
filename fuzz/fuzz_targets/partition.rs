//! Partitions whose files are damaged: a byte chooses the graph and the layout, the rest are edits.
#![no_main]

use std::sync::LazyLock;

use gnarl_fuzz::damage::Folder;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::{fixture, parts, scratch};
use gnarl_partition::{PartLayout, PartitionedDataset};
use gnarl_serve::{Column, ServedPart};
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 64 << 20;

fn folder(layout: PartLayout, is_heterogeneous: bool) -> Folder {
    Folder::new(|dir| {
        let source = scratch::folder();
        let graph = match is_heterogeneous {
            true => fixture::heterogeneous(&source.path().join("data")),
            false => fixture::homogeneous(&source.path().join("data")),
        };
        parts::partition(&graph, layout, &dir.join("parts"));
    })
}

static FOLDERS: LazyLock<[Folder; 4]> = LazyLock::new(|| {
    [
        folder(PartLayout::EdgeCut, false),
        folder(PartLayout::VertexCut, false),
        folder(PartLayout::EdgeCut, true),
        folder(PartLayout::VertexCut, true),
    ]
});

/// Opens the parts as a server does, and reads all it would send of their columns.
fn serve(parts: &PartitionedDataset) {
    for part in 0..parts.num_parts().min(parts::PARTS) {
        let Ok(served) = ServedPart::open(parts, part) else { return };
        let columns: Vec<(Option<String>, Column)> =
            served.columns().map(|(ntype, column)| (ntype.map(String::from), column)).collect();
        for (ntype, column) in columns {
            let _ = served.stretch(ntype.as_deref(), column, 0, 1000);
        }
    }
}

fuzz_target!(init: { LazyLock::force(&FOLDERS); }, |data: &[u8]| {
    let mut input = Input::new(data);
    let choice = usize::from(input.byte()) % FOLDERS.len();
    FOLDERS[choice].damaged(&mut input, |dir| {
        within(MEMORY, || {
            let dir = dir.join("parts");
            let _ = parts::touch_partition(&dir);
            if let Ok(parts) = PartitionedDataset::open(&dir) {
                serve(&parts);
            }
        });
    });
});
