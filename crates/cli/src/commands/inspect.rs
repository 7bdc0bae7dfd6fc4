//! `gnarl inspect`

use std::path::{Path, PathBuf};

use clap::Args;
use gnarl_common::Result;
use gnarl_graph::Dataset;
use gnarl_graph::inspect::{inspect, verify};
use gnarl_partition::{
    BUCKETS, EdgeBuckets, PARTITION, PartLayout, PartitionedDataset, TOPOLOGY, VertexCutPart,
};
use serde_json::{Value, json};

use super::objects;
use crate::output::json;

/// `gnarl inspect`
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A dataset, part or partition: its directory, or its address in an object store
    pub path: PathBuf,
    /// Read every file and compare checksums
    #[arg(long)]
    pub verify: bool,
}

pub fn run(args: &InspectArgs) -> Result<Value> {
    let path = objects::local(&args.path)?;
    if path.join(PARTITION).exists() {
        return partition(args, &path);
    }
    let dataset = Dataset::open(&path)?;
    let report = inspect(&dataset)?;
    eprint!("{report}");
    let mut value = json(&report);
    if args.verify {
        value["verified"] = json(&verify(&dataset)?);
    }
    let topology = path.join(TOPOLOGY);
    if topology.exists() {
        value[TOPOLOGY] = describe(&VertexCutPart::open(topology)?, args.verify)?;
    }
    Ok(value)
}

fn partition(args: &InspectArgs, path: &Path) -> Result<Value> {
    let cut = PartitionedDataset::open(path)?;
    let manifest = cut.manifest();
    let kept = match manifest.layout {
        PartLayout::EdgeCut => match manifest.hops {
            1 => "1 hop kept".to_string(),
            hops => format!("{hops} hops kept"),
        },
        PartLayout::VertexCut => "each edge in one part".into(),
        PartLayout::Storage => "edges in buckets".into(),
    };
    eprintln!(
        "{}: {} partitioned into {} parts by {}, {kept}",
        args.path.display(),
        manifest.source.name,
        manifest.parts,
        manifest.algorithm,
    );
    let mut parts = Vec::new();
    for i in 0..cut.num_parts() {
        let part = cut.part(i)?;
        if args.verify {
            verify(&part)?;
            cut.verify_targets(i)?;
        }
        let mut report = json(&inspect(&part)?);
        let counts = &manifest.part_counts[i];
        let sum = |v: &[u64]| v.iter().sum::<u64>();
        eprintln!(
            "part {i}: {} core nodes, {} halo, {} edges",
            sum(&counts.core),
            sum(&counts.halo),
            sum(&counts.edges)
        );
        if manifest.layout == PartLayout::VertexCut {
            report[TOPOLOGY] = describe(&cut.topology(i)?, args.verify)?;
        }
        parts.push(report);
    }
    let mut value = json!({ "partition": manifest, "parts": parts, "verified": args.verify });
    if path.join(BUCKETS).exists() {
        value[BUCKETS] = buckets(&cut.buckets()?, args.verify)?;
    }
    Ok(value)
}

/// The edges of a vertex-cut part.
fn describe(part: &VertexCutPart, verify: bool) -> Result<Value> {
    if verify {
        part.verify()?;
    }
    let manifest = part.manifest();
    eprintln!(
        "topology: {} nodes, {} edges of {} types, {:.2} bytes an edge",
        manifest.nodes,
        manifest.edges,
        manifest.edge_types.len(),
        part.bytes_per_edge()
    );
    Ok(json!({
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "bytes": manifest.topology_bytes(),
        "bytes_per_edge": part.bytes_per_edge(),
    }))
}

/// The edges grouped by the parts of their endpoints.
fn buckets(buckets: &EdgeBuckets, verify: bool) -> Result<Value> {
    if verify {
        buckets.verify()?;
    }
    let manifest = buckets.manifest();
    let edges: u64 = manifest.edge_types.iter().map(|t| t.count).sum();
    let count = manifest.parts * manifest.parts;
    eprintln!("{edges} edges in {count} buckets");
    Ok(json!({ "parts": manifest.parts, "edges": edges }))
}
