//! Imports of triples: a byte of options, a section for each split and for the files of names.
#![no_main]

use gnarl_fuzz::graph::{self, SLACK};
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::scratch;
use gnarl_graph::import::{TriplesOptions, triples};
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 8 << 20;

fuzz_target!(|data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let flags = input.byte();
    let mut file = |name: &str, is_there: bool| {
        is_there.then(|| {
            let path = dir.path().join(name);
            scratch::write(&path, input.section());
            path
        })
    };
    let train = file("train.txt", true).expect("it is there");
    let options = TriplesOptions {
        valid: file("valid.txt", flags & 1 != 0),
        test: file("test.txt", flags & 2 != 0),
        entities: file("entities.txt", flags & 4 != 0),
        relations: file("relations.txt", flags & 8 != 0),
        num_entities: (flags & 16 != 0).then_some(50),
        memory: MEMORY as u64,
        ..TriplesOptions::new(train)
    };
    let out = dir.path().join("out");
    match within(MEMORY + SLACK, || triples(&options, &out)) {
        Ok(imported) => graph::check(&imported.dataset),
        Err(_) => assert!(!out.exists(), "a rejected import leaves nothing"),
    }
});
