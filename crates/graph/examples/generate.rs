//! Writes a graph and says how long it took and how much memory it held:
//! `generate rmat|community <nodes> <edges> <memory MiB> <out>`.

use std::path::PathBuf;

use gnarl_common::{Error, Result};
use gnarl_graph::generate::{CommunityOptions, RmatOptions, community, rmat};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, nodes, edges, memory, out] = &args[..] else {
        return Err(Error::usage("generate rmat|community <nodes> <edges> <memory MiB> <out>"));
    };
    let number = |text: &str| -> Result<u64> {
        text.parse().map_err(|_| Error::usage(format!("'{text}' is not a number")))
    };
    let (nodes, edges, memory) = (number(nodes)?, number(edges)?, number(memory)? << 20);
    let out = PathBuf::from(out);
    let made = match kind.as_str() {
        "rmat" => rmat(&RmatOptions { nodes, edges, memory, ..Default::default() }, &out)?,
        _ => {
            let average_degree = edges as f64 / nodes as f64;
            let options = CommunityOptions { nodes, average_degree, memory, ..Default::default() };
            community(&options, &out)?
        }
    };
    let speed = made.drawn as f64 / made.seconds.edges / 1e6;
    println!("{} edges, {speed:.1} M edges/s written, {:?}", made.drawn, made.seconds);
    println!("{:?}", made.facts);
    println!("peak memory {} MiB", peak_mib());
    Ok(())
}

/// The largest resident set so far, where the system tells.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().next()).and_then(|kib| kib.parse().ok());
    kib.unwrap_or(0u64) >> 10
}
