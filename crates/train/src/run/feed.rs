//! The batch workers of a run, from the first rank's coordinator or one that runs by itself.

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, Strategy};
use gnarl_engine::Communicator;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::at_host;

use super::handshake::host;
use super::setup::Source;
use crate::data::identity::identity;
use crate::feed::{Access, Features, Feed, KeptCoordinator};
use crate::registry::Registry;

/// Batch workers that have joined, and this process' coordinator, if it has it.
pub(super) struct Workers {
    pub feed: Arc<Feed>,
    _coordinator: Option<KeptCoordinator>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.feed.end();
    }
}

/// Waits for the batch workers of `config` over the parts `cut` of the dataset `source`; none if the run has none. `width` is
/// that of features that they can be asked for apart from batches. `comm` joins the processes of the run, if there are
/// several.
///
/// # Errors
/// If the address is taken, or they do not join within the deadline.
pub(super) fn gather(
    (config, registry): (&RunConfig, &Registry),
    (source, cut): (&Source, Option<&PartitionedDataset>),
    width: Option<usize>,
    comm: Option<&dyn Communicator>,
) -> Result<Option<Workers>> {
    let section = &config.disaggregated;
    if config.train.strategy != Strategy::Disaggregated || section.batch_workers == 0 {
        return Ok(None);
    }
    let cut = cut.ok_or_else(|| Error::invalid("batch workers prepare batches of parts"))?;
    let run = identity(config, &source.message_graph((config, registry))?, Some(cut));
    let features = width.and_then(|width| Features::of(config, width));
    let lead = comm.is_none_or(|comm| comm.rank() == 0);
    if lead && width.is_none() && config.cache.memory.as_u64() > 0 {
        tracing::warn!(
            "cache.memory is not used: features are sparse, or the model is heterogeneous, and batches bring them"
        );
    }
    let (coordinator, mut uri) = match &section.join {
        Some(uri) => (None, uri.clone()),
        None if lead => {
            let started = KeptCoordinator::start(config, run.clone())?;
            let uri = at_host(&started.uri(), &host());
            (Some(started), uri)
        }
        None => (None, String::new()),
    };
    if let Some(comm) = comm {
        let all = comm.all_gather("address of the coordinator", uri.as_bytes())?;
        uri = String::from_utf8_lossy(&all[0]).into_owned();
    }
    if lead {
        tracing::info!(
            "waiting for {} batch workers: gnarl work --role batch RUN.toml --join {uri}",
            section.batch_workers
        );
    }
    let deadline = Duration::from_secs_f64(config.train.deadline_seconds);
    let access = Access::of(config)?;
    let feed = Feed::new((run, access, uri), features, (section.batch_workers, deadline))?;
    feed.gather()?;
    Ok(Some(Workers { feed: Arc::new(feed), _coordinator: coordinator }))
}
