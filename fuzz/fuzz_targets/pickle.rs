//! Files of `torch.save`: any bytes, or an archive of a pickle and the numbers of its tensors.
#![no_main]

use std::io::{Cursor, Write};

use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::scratch;
use gnarl_graph::import::torch::{Item, TorchFile};
use libfuzzer_sys::fuzz_target;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The budget of the reader, and what it takes beside: the archive's directory, buffers, and the numbers of an array twice,
/// as stored and as they are returned.
const MEMORY: usize = 1 << 20;
const BESIDE: usize = 8 << 20;

fn archive(input: &mut Input<'_>) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for name in ["x/data/0", "x/data/1"] {
        zip.start_file(name, options).expect("a member");
        zip.write_all(input.section()).expect("a member");
    }
    zip.start_file("x/data.pkl", options).expect("a member");
    zip.write_all(input.rest()).expect("a member");
    zip.finish().expect("an archive").into_inner()
}

fn touch(item: &Item<'_>, depth: usize) {
    let _ = item.integers();
    let _ = item.numbers();
    let _ = item.strings();
    let _ = item.shape();
    // A value may be its own: as deep as importers look.
    if depth < 3 {
        for key in item.keys().into_iter().take(64) {
            touch(&item.get(key).expect("a key that is listed"), depth + 1);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let bytes = match input.byte() {
        0 => input.rest().to_vec(),
        _ => archive(&mut input),
    };
    let path = dir.path().join("saved.pt");
    scratch::write(&path, &bytes);
    within(MEMORY + BESIDE, || {
        if let Ok(file) = TorchFile::open(&path, MEMORY as u64) {
            touch(&file.root(), 0);
        }
    });
});
