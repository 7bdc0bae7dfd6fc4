//! The server: answers requests until the process is signaled to end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_common::staging::interrupt::{self, Stoppable};
use gnarl_common::threads::pool;
use gnarl_common::{Error, Kind, Result};
use gnarl_serve::{Guard, Tls, check_address, read_token};
use gnarl_train::{EdgeModel, OpenOptions, Registry, TrainedRun};
use serde_json::{Value, json};

use super::ServeModelArgs;
use super::catalog::Catalog;
use super::compute::compute;
use super::connections::Connections;
use super::meters::Meters;
use super::queue::{Limits, Queue};
use super::routes::Service;
use super::tls;
use crate::commands::objects;
use crate::commands::watched::Watched;

/// Serves until the process is signaled to end.
pub fn run(args: &ServeModelArgs) -> Result<Value> {
    let watched = Watched::new()?;
    let token = args.security.token_file.as_deref().map(read_token).transpose()?;
    let tls = match (&args.security.tls_cert, &args.security.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::acceptor(&Tls::read(certificate, key)?)?),
        _ => None,
    };
    check_address(args.listen, token.is_some(), tls.is_some(), args.security.open_to_everyone)?;
    let dataset = args.dataset.as_deref().map(objects::local).transpose()?;
    let options = OpenOptions {
        dataset,
        memory: args.memory,
        fanouts: args.fanouts.clone(),
        unlabeled: true,
        ..OpenOptions::default()
    };
    let run = TrainedRun::open(&Registry::default(), &args.run_dir, &options)?;
    let dataset = run.catalog()?;
    let model = EdgeModel::of(&run, &run);
    let max_ids = args.max_ids.get();
    let queue = Arc::new(Queue::new(Limits {
        length: args.queue.get(),
        batch: args.batch_ids.get(),
        linger: Duration::from_millis(args.batch_ms),
        deadline: Duration::from_millis(args.deadline_ms),
    }));
    let meters = Arc::new(Meters::new());
    let service = Service {
        catalog: Catalog::open(&run, dataset, model.as_ref(), max_ids)?,
        queue: queue.clone(),
        meters: meters.clone(),
        guard: Guard::new(token),
        about: json!({ "run": args.run_dir, "dataset": dataset.dir() }),
        writer: pool(1)?,
        deadline: Duration::from_millis(args.deadline_ms),
        max_ids,
    };
    let _stoppable = Stoppable::new("when requests under way are answered");
    let start = Instant::now();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let connections = Connections::start(args.listen, tls, Arc::new(service))?;
    let uri = format!("{scheme}://{}", connections.address());
    tracing::info!("serving the model of {} at {uri}", args.run_dir.display());
    let closing = queue.clone();
    let signals = std::thread::Builder::new().name("close".into()).spawn(move || {
        interrupt::wait();
        closing.close();
    });
    signals.map_err(|e| Error::new(Kind::Limit, format!("cannot start a thread: {e}")))?;
    // Answers come first: a request reads few of the features.
    watched.watch(0)?;
    while let Some(jobs) = queue.take() {
        if !jobs.is_empty() {
            compute(&run, model.as_ref(), jobs);
            meters.batch();
        }
    }
    connections.finish();
    watched.finish()?;
    let (ids, batches) = meters.totals();
    Ok(json!({
        "uri": uri,
        "seconds": start.elapsed().as_secs_f64(),
        "ids": ids,
        "batches": batches,
    }))
}
