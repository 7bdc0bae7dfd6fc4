//! Imports of one table of edges: a byte of options, then the table, as text, compressed text or Parquet.
//!
//! Edges of an accepted import survive another one, by the ids that were given.
#![no_main]

use std::fmt::Write;

use gnarl_fuzz::graph::{self, SLACK};
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::panics::unwind_in;
use gnarl_fuzz::scratch;
use gnarl_graph::import::{EdgeTable, IdKind, TableOptions, tables};
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, Triple, UserIdKind, UserIds};
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 8 << 20;

/// The ids that the user gave to all nodes, and if they are texts.
fn ids(dataset: &Dataset) -> (Vec<String>, bool) {
    let ids = UserIds::open(dataset, DEFAULT_NODE_TYPE).expect("ids of an import");
    let is_text = ids.kind() == UserIdKind::Text;
    let id = |node| match is_text {
        true => ids.text(node).to_string(),
        false => ids.integer(node).to_string(),
    };
    ((0..ids.len() as u64).map(id).collect(), is_text)
}

fn named(dataset: &Dataset) -> (Vec<(String, String)>, bool) {
    let (ids, is_text) = ids(dataset);
    let name = |(src, dst): (u64, u64)| (ids[src as usize].clone(), ids[dst as usize].clone());
    (graph::edges(dataset).into_iter().map(name).collect(), is_text)
}

fuzz_target!(init: unwind_in("parquet"), |data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let flags = input.byte();
    let path = dir.path().join("edges");
    scratch::write(&path, input.rest());
    let mut table = EdgeTable::new(Triple::plain(), &path);
    if flags & 1 != 0 {
        table.label = Some("label".into());
    }
    let options = TableOptions {
        edges: vec![table],
        ids: [IdKind::Auto, IdKind::Integer, IdKind::String][usize::from(flags >> 1 & 3) % 3],
        header: [None, Some(true), Some(false)][usize::from(flags >> 3 & 3) % 3],
        symmetrize: flags & 32 != 0,
        num_nodes: match flags & 64 {
            0 => Vec::new(),
            _ => vec![(DEFAULT_NODE_TYPE.into(), 100)],
        },
        memory: MEMORY as u64,
        ..TableOptions::default()
    };
    let out = dir.path().join("out");
    let Ok(imported) = within(MEMORY + SLACK, || tables(&options, &out)) else {
        assert!(!out.exists(), "a rejected import leaves nothing");
        return;
    };
    graph::check(&imported.dataset);
    let (expected, is_text) = named(&imported.dataset);
    let mut text = String::from("src,dst\n");
    for (src, dst) in &expected {
        let quoted = |id: &str| format!("\"{}\"", id.replace('"', "\"\""));
        writeln!(text, "{},{}", quoted(src), quoted(dst)).expect("a string");
    }
    let again = dir.path().join("again.csv");
    scratch::write(&again, text.as_bytes());
    let options = TableOptions {
        edges: vec![EdgeTable::new(Triple::plain(), &again)],
        ids: if is_text { IdKind::String } else { IdKind::Integer },
        header: Some(true),
        delimiter: Some(b','),
        memory: MEMORY as u64,
        ..TableOptions::default()
    };
    match tables(&options, &dir.path().join("out-again")) {
        Ok(again) => assert_eq!(named(&again.dataset).0, expected),
        Err(e) => assert!(expected.is_empty(), "{e:?}"),
    }
});
