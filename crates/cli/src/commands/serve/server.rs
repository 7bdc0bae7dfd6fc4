//! The server: serves parts until the process is signaled to end.

use std::sync::Arc;
use std::time::Instant;

use gnarl_common::memory::gib;
use gnarl_common::staging::interrupt::{self, Stoppable};
use gnarl_common::{Context, Result, ResultExt, integrity};
use gnarl_loader::{BatchMaker, LoaderGraph, PartsOptions};
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{Access, DeferredBatches, Limits, ServedPart, Server, ServerConfig, read_token};
use serde_json::{Value, json};

use super::ServeArgs;
use crate::commands::watched::Watched;

/// Bytes of parts whose checksums are compared before they are served.
const AT_START: u64 = 16 << 30;

/// Serves until the process is signaled to end.
pub fn run(args: &ServeArgs) -> Result<Value> {
    let watched = Watched::new()?;
    let parts = PartitionedDataset::open(&args.parts)?;
    let which = match &args.part[..] {
        [] => (0..parts.num_parts()).collect(),
        some => some.to_vec(),
    };
    let held: Vec<Arc<ServedPart>> = which
        .iter()
        .map(|&part| ServedPart::open(&parts, part).map(Arc::new))
        .collect::<Result<_>>()?;
    // What is served is what was written: before the first client may ask, unless that takes minutes.
    let left = integrity::finish(AT_START).while_doing(|| "comparing checksums of the parts")?;
    let config = config(args)?;
    let deferred = args.batches.then(DeferredBatches::default);
    let start = Instant::now();
    let server = Server::of_partition(&parts, held.clone(), deferred.clone(), &config)?;
    tracing::info!("serving parts {which:?} of {} at {}", args.parts.display(), server.uri());
    // It listens by now: the servers that this one reads parts of may wait for it likewise.
    let maker = args.batches.then(|| maker(args, config.threads)).transpose()?;
    if let (Some(deferred), Some(maker)) = (deferred, &maker) {
        deferred.fill(maker.clone());
        tracing::info!("making batches of all {} parts", parts.num_parts());
    }
    if left > 0 {
        tracing::info!("checksums of {} are compared while it serves", gib(left as f64));
    }
    // Batches may have opened more files.
    watched.watch(u64::MAX)?;
    // Until here the first Ctrl-C ends it at once.
    let _stoppable = Stoppable::new("when requests under way are answered");
    interrupt::wait();
    let uri = server.uri();
    let traffic = server.traffic();
    drop(server);
    watched.finish()?;
    let served = held.iter().map(|part| {
        let load = part.load();
        json!({
            "part": part.part(),
            "requests": load.requests,
            "nodes": load.nodes,
            "edges_listed": load.edges_listed,
            "edges_sent": load.edges_sent,
        })
    });
    Ok(json!({
        "uri": uri,
        "bytes_received": traffic.received,
        "bytes_sent": traffic.sent,
        "seconds": start.elapsed().as_secs_f64(),
        "parts": served.collect::<Vec<_>>(),
        "batches": maker.map(|maker| maker.made()),
    }))
}

/// Makes batches of all parts: those here, and those of servers.
fn maker(args: &ServeArgs, threads: usize) -> Result<Arc<BatchMaker>> {
    let certificate = args.certificate.as_ref();
    let access = Access {
        token: args.security.token_file.as_deref().map(read_token).transpose()?,
        certificate: certificate.map(|path| std::fs::read(path).at(path)).transpose()?,
        ..Access::default()
    };
    let servers = args.servers.clone();
    let cache = args.cache.unwrap_or(256 << 20);
    let options = PartsOptions { servers, access, cache, batches: false };
    let graph = LoaderGraph::open_parts(&args.parts, &options);
    let graph = graph.while_doing(|| "opening the parts of batches")?;
    if !args.servers.is_empty() && !graph.is_remote() {
        tracing::warn!("--servers are not asked: all parts are in {}", args.parts.display());
    }
    Ok(Arc::new(BatchMaker::new(Arc::new(graph), threads)))
}

fn config(args: &ServeArgs) -> Result<ServerConfig> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if args.threads == 0 { cores } else { args.threads };
    let limits = Limits { connections: args.connections, ids: args.max_ids, memory: args.memory };
    Ok(ServerConfig { threads, limits, ..args.security.server(args.listen)? })
}
