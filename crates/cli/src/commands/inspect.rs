//! `gnarl inspect`

use gnarl_graph::inspect::{inspect, verify};
use gnarl_graph::{Dataset, Result};
use gnarl_partition::{PARTITION, PartitionedDataset};
use serde_json::{Value, json};

use crate::args::InspectArgs;

pub fn run(args: &InspectArgs) -> Result<Value> {
    if args.path.join(PARTITION).exists() {
        return partition(args);
    }
    let dataset = Dataset::open(&args.path)?;
    let report = inspect(&dataset)?;
    eprint!("{report}");
    let mut value = super::json(&report);
    if args.verify {
        value["verified"] = super::json(&verify(&dataset)?);
    }
    Ok(value)
}

fn partition(args: &InspectArgs) -> Result<Value> {
    let cut = PartitionedDataset::open(&args.path)?;
    let manifest = cut.manifest();
    eprintln!(
        "{}: {} cut into {} parts by {}, {} hops kept",
        args.path.display(),
        manifest.source.name,
        manifest.parts,
        manifest.algorithm,
        manifest.hops
    );
    let mut parts = Vec::new();
    for i in 0..cut.num_parts() {
        let part = cut.part(i)?;
        if args.verify {
            verify(&part)?;
        }
        let report = inspect(&part)?;
        let counts = &manifest.part_counts[i];
        let sum = |v: &[u64]| v.iter().sum::<u64>();
        eprintln!(
            "part {i}: {} core nodes, {} halo, {} edges",
            sum(&counts.core),
            sum(&counts.halo),
            sum(&counts.edges)
        );
        parts.push(super::json(&report));
    }
    Ok(json!({ "partition": manifest, "parts": parts, "verified": args.verify }))
}
