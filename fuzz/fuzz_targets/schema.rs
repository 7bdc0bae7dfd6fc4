//! Schema files and the tables they list: a section for the schema, and one for each table.
//!
//! An import stays within its memory, and one that is accepted opens.
#![no_main]

use gnarl_fuzz::graph::{self, SLACK};
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::panics::unwind_in;
use gnarl_fuzz::scratch;
use gnarl_graph::import::{TableOptions, tables};
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 8 << 20;
const TABLES: [&str; 4] = ["a.csv", "b.csv", "c.csv", "d.parquet"];

fuzz_target!(init: unwind_in("parquet"), |data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let schema = dir.path().join("schema.json");
    let text = input.section();
    scratch::write(&schema, text);
    let Ok(mut options) = within(1 << 20, || TableOptions::from_schema(&schema)) else { return };
    // A schema may name any file of the machine, and a pipe would be waited for: only those beside it are read here.
    let paths = options.nodes.iter().map(|of| &of.path);
    let inside = |path: &std::path::PathBuf| {
        path.parent() == Some(dir.path()) && !path.to_string_lossy().contains("..")
    };
    if !paths.chain(options.edges.iter().map(|of| &of.path)).all(inside) {
        return;
    }
    for name in TABLES {
        scratch::write(&dir.path().join(name), input.section());
    }
    options.memory = MEMORY as u64;
    let out = dir.path().join("out");
    match within(MEMORY + SLACK, || tables(&options, &out)) {
        Ok(imported) => graph::check(&imported.dataset),
        Err(_) => assert!(!out.exists(), "a rejected import leaves nothing"),
    }
});
