//! What memory allows a partitioner on a dataset: passes over its edges that add 1 for both endpoints of
//! each in a table of 4 bytes a node, as any must that counts degrees.
//!
//! ```sh
//! cargo run --release -p gnarl-partition --example floor -- DATASET
//! ```
//!
//! Prints millions of edges a second: `read` without touching the table; `touch` as the edges come;
//! `asked` with the cache asked for what later edges touch.

use std::process::ExitCode;
use std::time::Instant;

use gnarl_common::error::{Error, Result};
use gnarl_common::prefetch;
use gnarl_graph::{Dataset, EdgeChunk, EdgeStream};

/// Edges ahead that the cache is asked for.
const AHEAD: usize = 48;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::usage("name a dataset"))?;
    let mut edges = Dataset::open(path)?.edges()?;
    let mut table = vec![0u32; edges.num_nodes() as usize];
    report("read", &mut edges, |_| ())?;
    report("touch", &mut edges, |chunk| {
        for (u, v) in chunk.iter() {
            table[u as usize] = table[u as usize].wrapping_add(1);
            table[v as usize] = table[v as usize].wrapping_add(1);
        }
    })?;
    report("asked", &mut edges, |chunk| {
        for (i, (u, v)) in chunk.iter().enumerate() {
            for ends in [&chunk.src, &chunk.dst] {
                if let Some(&end) = ends.get(i + AHEAD) {
                    prefetch::item(&table, end as usize);
                }
            }
            table[u as usize] = table[u as usize].wrapping_add(1);
            table[v as usize] = table[v as usize].wrapping_add(1);
        }
    })?;
    std::hint::black_box(table);
    Ok(())
}

/// Runs over all edges once and prints the speed.
fn report(
    name: &str,
    edges: &mut impl EdgeStream,
    mut visit: impl FnMut(&EdgeChunk),
) -> Result<()> {
    let start = Instant::now();
    let mut chunk = EdgeChunk::default();
    edges.reset()?;
    while edges.next_chunk(&mut chunk)? {
        visit(&chunk);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {:.1} million edges a second", edges.num_edges() as f64 / seconds / 1e6);
    Ok(())
}
