//! Batch workers and coordinators, until the run ends or the process is signaled to end.

use std::time::Instant;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::load;
use gnarl_serve::ServerConfig;
use gnarl_train::{Registry, WorkOptions};
use serde_json::{Value, json};

use super::WorkArgs;
use super::args::Role;
use crate::commands::dataset;

/// Works until the run ends or the process is signaled to end.
pub fn run(args: &WorkArgs) -> Result<Value> {
    let mut config = load(&args.run, &args.settings)?;
    dataset::find(&mut config, &args.run)?;
    let server = ServerConfig { threads: threads(args), ..args.security.server(args.listen)? };
    let start = Instant::now();
    let registry = Registry::default();
    match (args.role, &args.join) {
        (Role::Coordinator, None) => {
            let uri = registry.coordinate(&config, &server, args.metrics_listen)?;
            Ok(json!({ "uri": uri, "seconds": start.elapsed().as_secs_f64() }))
        }
        (Role::Coordinator, Some(_)) => {
            Err(Error::usage("--join is for batch workers: a coordinator is joined")
                .hint("leave out --join, or set --role batch"))
        }
        (Role::Batch, None) => {
            Err(Error::usage("--role batch requires --join: the address of the coordinator")
                .hint("'gnarl train' logs it when disaggregated.batch_workers is set"))
        }
        (Role::Batch, Some(join)) => {
            let certificate = args.certificate.as_ref().or(args.security.tls_cert.as_ref());
            let certificate = certificate.map(|path| std::fs::read(path).at(path)).transpose()?;
            let join = join.clone();
            let metrics = args.metrics_listen;
            let work =
                registry.work(&config, &WorkOptions { join, server, certificate, metrics })?;
            Ok(json!({
                "uri": work.uri,
                "batches": work.batches,
                "read_bytes": work.read_bytes,
                "sent_bytes": work.sent_bytes,
                "seconds": start.elapsed().as_secs_f64(),
            }))
        }
    }
}

fn threads(args: &WorkArgs) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if args.threads == 0 { cores } else { args.threads }
}
