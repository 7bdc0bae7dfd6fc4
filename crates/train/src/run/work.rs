//! Batch workers and coordinators as processes of their own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::scope;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use gnarl_common::staging::interrupt::{self, Stoppable};
use gnarl_common::{Error, Kind, Result, integrity};
use gnarl_config::{RunConfig, Strategy};
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{
    Client, Coordinator, Handler, Joining, Reply, Server, ServerConfig, WorkRequest,
};

use super::partition::given;
use super::setup::{Purpose, Setup, Source};
use crate::data::identity::{digest, identity};
use crate::feed::Access;
use crate::registry::Registry;
use crate::step::batch_worker::{Ask, Worked};
use crate::telemetry::prometheus::{Figure, Reading, RoleMetrics};

/// Pause between two words to the coordinator.
const BEAT: Duration = Duration::from_secs(1);
/// Pause in which requests to stop are noticed.
const SOON: Duration = Duration::from_millis(50);

/// Options of a batch worker: the coordinator that it joins, and its own server.
pub struct WorkOptions {
    /// The address of the coordinator.
    pub join: String,
    /// Its own address, token and encryption; `threads` prepare batches.
    pub server: ServerConfig,
    /// The certificate, in PEM, of the coordinator.
    pub certificate: Option<Vec<u8>>,
    /// Address of its metrics in the text format of Prometheus, if they are served.
    pub metrics: Option<SocketAddr>,
}

/// Address and totals of a batch worker that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Its address.
    pub uri: String,
    /// Batches prepared.
    pub batches: u64,
    /// Bytes of parts read into memory.
    pub read_bytes: u64,
    /// Bytes sent to compute workers.
    pub sent_bytes: u64,
}

/// The files of a run, as its workers must all have them.
struct Files {
    source: Source,
    parts: PartitionedDataset,
    identity: String,
}

impl Files {
    fn open((config, registry): (&RunConfig, &Registry)) -> Result<Self> {
        if config.train.strategy != Strategy::Disaggregated {
            return Err(Error::usage("batch workers prepare batches of strategy 'disaggregated'")
                .hint("set train.strategy to 'disaggregated', and disaggregated.batch_workers"));
        }
        let Some(path) = &config.partition.path else {
            return Err(Error::usage("batch workers read parts: partition.path is not set")
                .hint("make the parts by 'gnarl partition --layout storage'"));
        };
        let source = Source::open(config)?;
        let Some(dataset) = source.dataset() else {
            return Err(Error::usage(
                "batch workers read parts in files, not of partition.servers",
            )
            .hint("leave out partition.servers"));
        };
        let parts = given((config, registry), dataset, path)?;
        let identity = identity(config, &source.message_graph((config, registry))?, Some(&parts));
        Ok(Self { source, parts, identity })
    }
}

/// Takes requests for batches of a run.
struct Desk {
    run: u32,
    asks: Mutex<Option<Sender<Ask>>>,
}

impl Desk {
    /// Takes no more requests.
    fn close(&self) {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Handler for Desk {
    fn batch(&self, request: WorkRequest, reply: Reply) {
        if request.run() != self.run {
            return reply(Err(Error::usage("this batch worker has another run")
                .hint("all workers of a run have the same run file, dataset and parts")));
        }
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match &*asks {
            Some(asks) => asks.send((request, reply)).map_err(|left| left.into_inner().1),
            None => Err(reply),
        };
        if let Err(reply) = left {
            reply(Err(Error::new(Kind::Rank, "the batch worker ends")));
        }
    }
}

impl Registry {
    /// Prepares batches of `config` for the compute workers of its run, until the run ends or this process is asked to stop.
    ///
    /// # Errors
    /// Those of the dataset and the parts, also of files that change while they are read; [`Kind::Usage`] if the coordinator
    /// has another run; [`Kind::Rank`] if it does not answer within the deadline.
    pub fn work(&self, config: &RunConfig, options: &WorkOptions) -> Result<Work> {
        let _checksums = integrity::in_background()?;
        let Files { source, parts, identity } = Files::open((config, self))?;
        let mut setup = Setup::new((config, self), source, Purpose::Training(None))?;
        let (sender, asks) = unbounded();
        let desk = Arc::new(Desk { run: digest(&identity), asks: Mutex::new(Some(sender)) });
        let server = Arc::new(Server::of_workers(desk.clone(), &options.server)?);
        let worked = Arc::new(Worked::default());
        let _metrics = {
            let (worked, server) = (worked.clone(), Arc::downgrade(&server));
            let sent = move || server.upgrade().map_or(0, |server| server.traffic().sent);
            RoleMetrics::start(options.metrics, move || of_worker(&worked, sent()))?
        };
        let deadline = Duration::from_secs_f64(config.train.deadline_seconds);
        let access = Access {
            token: options.server.token.clone(),
            certificate: options.certificate.clone(),
        };
        let coordinator = access.connect(&options.join, deadline)?;
        let joining = Joining { uri: server.uri(), run: identity };
        if is_of_this_host(&server.uri()) && !is_of_this_host(&options.join) {
            tracing::warn!(
                "ranks on other hosts do not reach {}: --listen at an address of this host",
                server.uri()
            );
        }
        let _stoppable = Stoppable::new("at once: its batches are prepared by others");
        coordinator.join(&joining)?;
        tracing::info!("{} prepares batches for {}", server.uri(), options.join);
        let done = AtomicBool::new(false);
        let damage = &OnceLock::new();
        let (prepared, told) = scope(|scope| {
            // Comparing takes longer than the coordinator waits for a word.
            scope.spawn(|| {
                while damage.get().is_none() && !done.load(Ordering::Relaxed) {
                    if let Err(e) = integrity::unharmed() {
                        _ = damage.set(e);
                    }
                    pause(BEAT, || done.load(Ordering::Relaxed));
                }
            });
            let beat = scope.spawn(|| {
                let state = (deadline, &done, damage);
                let told = beat((&access, &options.join), &joining, state);
                desk.close();
                told
            });
            let by = (options.server.threads, &*worked);
            let prepared = setup.task.prepare_batches(&parts, &asks, by);
            done.store(true, Ordering::Relaxed);
            let died = |_| Err(Error::new(Kind::Limit, "the thread of the heartbeat died"));
            (prepared, beat.join().unwrap_or_else(died))
        });
        prepared.and(told)?;
        integrity::unharmed()?;
        Ok(Work {
            uri: server.uri(),
            batches: worked.batches.load(Ordering::Relaxed),
            read_bytes: worked.read.load(Ordering::Relaxed),
            sent_bytes: server.traffic().sent,
        })
    }

    /// Tells the workers of the run of `config` of each other, as the coordinator, until this process is asked to stop.
    /// Returns its address. Its metrics are served at `metrics`, if that is given.
    ///
    /// # Errors
    /// Those of the dataset and the parts; if the address is taken, or is public without a token and encryption.
    pub fn coordinate(
        &self,
        config: &RunConfig,
        server: &ServerConfig,
        metrics: Option<SocketAddr>,
    ) -> Result<String> {
        let files = Files::open((config, self))?;
        let coordinator = Arc::new(Coordinator::new(files.identity));
        let server = Server::of_workers(coordinator.clone(), server)?;
        let living = coordinator.clone();
        let _metrics = RoleMetrics::start(metrics, move || {
            let value = Reading::Level(living.living().workers.len() as f64);
            vec![Figure { name: "gnarl_batch_workers", help: "Batch workers that live", value }]
        })?;
        let _stoppable = Stoppable::new("and tells batch workers to end");
        tracing::info!(
            "batch workers join by --join {uri}, runs by disaggregated.join = '{uri}'",
            uri = server.uri()
        );
        tracing::info!("coordinating at {}", server.uri());
        interrupt::wait();
        coordinator.end();
        let start = Instant::now();
        while !coordinator.is_deserted() && start.elapsed() < 2 * BEAT {
            std::thread::sleep(SOON);
        }
        Ok(server.uri())
    }
}

/// Returns whether only programs of this host reach an address.
fn is_of_this_host(uri: &str) -> bool {
    ["//127.", "//[::1]", "//localhost"].iter().any(|host| uri.contains(host))
}

/// The figures of a batch worker that has sent so many bytes.
fn of_worker(worked: &Worked, sent: u64) -> Vec<Figure> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let total = |name, help, value| Figure { name, help, value: Reading::Total(value) };
    vec![
        total("gnarl_batches", "Batches prepared", read(&worked.batches)),
        total("gnarl_read_bytes", "Bytes of parts read into memory", read(&worked.read)),
        total("gnarl_sent_bytes", "Bytes sent to compute workers", sent as f64),
        total(
            "gnarl_prepare_seconds",
            "Seconds of preparing batches, over all threads",
            read(&worked.prepared) / 1e9,
        ),
        total(
            "gnarl_load_seconds",
            "Seconds of bringing parts into memory",
            read(&worked.loaded) / 1e9,
        ),
        Figure {
            name: "gnarl_batches_asked",
            help: "Batches asked for that are not made yet",
            value: Reading::Level(read(&worked.asked)),
        },
    ]
}

/// Waits so long, or until `ends` holds, which it returns.
fn pause(most: Duration, ends: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < most {
        if ends() {
            return true;
        }
        std::thread::sleep(SOON);
    }
    false
}

/// Says again and again that the worker lives, until the run ends, this process is asked to stop, or `done` is set.
///
/// # Errors
/// [`Kind::Rank`] if the coordinator does not answer within the deadline; [`Kind::Usage`] if it has another run now; if a file
/// that batches are made of is damaged or has changed.
fn beat(
    (access, join): (&Access, &str),
    joining: &Joining,
    (deadline, done, damage): (Duration, &AtomicBool, &OnceLock<Error>),
) -> Result<()> {
    let coordinator: Client = access.connect(join, BEAT)?;
    let mut heard = Instant::now();
    loop {
        let ends = || {
            let asked = interrupt::requested().is_some() || done.load(Ordering::Relaxed);
            asked || damage.get().is_some()
        };
        if pause(BEAT, ends) {
            // It is given up in any case.
            _ = coordinator.leave(joining);
            return damage.get().cloned().map_or(Ok(()), Err);
        }
        match coordinator.join(joining) {
            Ok(orders) if orders.end => {
                // So that the coordinator need not wait; it is gone soon in any case.
                _ = coordinator.leave(joining);
                return Ok(());
            }
            Ok(_) => heard = Instant::now(),
            Err(error) if error.kind() != Kind::Rank => return Err(error),
            Err(error) if heard.elapsed() > deadline => {
                let seconds = deadline.as_secs_f64();
                let text =
                    format!("the coordinator at {join} has not answered for {seconds} s: {error}");
                return Err(Error::new(Kind::Rank, text));
            }
            Err(error) => tracing::debug!("the coordinator does not answer: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_figure() {
        let text = include_str!("../../../../docs/cluster.md");
        for Figure { name, value, .. } in of_worker(&Worked::default(), 0) {
            let total = if matches!(value, Reading::Total(_)) { "_total" } else { "" };
            let row = format!("| batch | `{name}{total}` |");
            assert!(text.contains(&row), "no '{row}'");
        }
    }
}
