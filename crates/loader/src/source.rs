//! Sources of batches: this host, or batch servers.

use std::fmt::Debug;
use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::memory::SparePages;
use gnarl_sample::HeteroScratch;

use crate::batch::Batch;
use crate::columns;
use crate::links;
use crate::options::Columns;
use crate::request::{Around, BatchRequest};
use crate::sampler::{NeighborSampler, Trees};

/// Makes batches.
pub(crate) trait BatchSource: Debug + Send + Sync {
    /// The batch that is a function of `request`.
    ///
    /// # Errors
    /// If the dataset is damaged, or a server does not reply.
    fn batch(&self, request: &BatchRequest, scratch: &mut HeteroScratch) -> Result<Batch>;
}

/// Batches that are sampled and gathered by this process.
#[derive(Debug)]
pub(crate) struct OwnBatches {
    sampler: NeighborSampler,
    columns: Columns,
    /// Memory of features that are not in use any more.
    rows: Arc<SparePages>,
}

impl OwnBatches {
    /// Batches by `sampler` with these columns.
    pub fn new(sampler: NeighborSampler, columns: Columns) -> Self {
        Self { sampler, columns, rows: Arc::default() }
    }

    /// The sampler.
    #[cfg(feature = "serve")]
    pub fn sampler(&self) -> &NeighborSampler {
        &self.sampler
    }
}

impl BatchSource for OwnBatches {
    fn batch(&self, request: &BatchRequest, scratch: &mut HeteroScratch) -> Result<Batch> {
        let BatchRequest { places, key, around, times } = request;
        let Self { sampler, columns, rows } = self;
        let columns = (*columns, rows);
        let of_graph = (&**sampler.graph(), sampler.has_rows());
        let input_ids = places.iter().map(|&place| place.into()).collect();
        let seed_times = times.clone();
        match around {
            Around::Nodes { node_type, nodes } => {
                let names: Vec<u64> = places.iter().map(|&place| place.into()).collect();
                let in_time = times.as_deref().filter(|_| sampler.is_timed());
                let trees = Trees { names: &names, times: in_time };
                let found = sampler.around(&[(*node_type, nodes)], trees, *key, scratch)?;
                let found = sampler.finished(found);
                let batch = columns::batch(of_graph, found, *node_type, input_ids, columns)?;
                Ok(Batch { seed_times, ..batch })
            }
            Around::Edges(of, ends) => {
                let of_batch = (&places[..], ends, times.as_deref());
                let (found, links) = links::around(sampler, *of, of_batch, *key, scratch)?;
                let batch = columns::batch(of_graph, found, of.source_type, input_ids, columns)?;
                Ok(Batch { seed_times, links: Some(links), ..batch })
            }
        }
    }
}
