//! Caches of remote features and replicas of remote lists.

use std::sync::Arc;

use gnarl_common::{Context, Result};
use gnarl_config::CacheSection;
use gnarl_sample::parts::{Replica, Rule};
use gnarl_serve::DividedRows;
use gnarl_store::RowSource;
use gnarl_store::cache::{CachePolicy, CachedRows};

use super::hot_nodes::Wanted;
use crate::data::graph::Partitioned;

/// Bytes of features fetched together before the first epoch.
const AHEAD: usize = 16 << 20;

/// The cache of `policy` in front of `source`, the features of node type number `of`, filled if its rows are chosen
/// beforehand. Sparse features are never cached.
///
/// # Errors
/// If a part does not reply.
pub(super) fn cached(
    (policy, bytes): (CachePolicy, u64),
    source: DividedRows,
    (of, sparse): (usize, bool),
    wanted: &Wanted<'_>,
) -> Result<CachedRows<DividedRows>> {
    let width = source.width();
    if policy != CachePolicy::Fixed || sparse {
        return policy.build(source, bytes, |_| Ok(Vec::new()));
    }
    let chosen = wanted.rows(of, policy.capacity(bytes, width))?;
    let cache = policy.build(source, bytes, |_| Ok(chosen.clone()))?;
    let filled = cache.prefetch(&chosen, AHEAD / (size_of::<f32>() * width.max(1)));
    filled.while_doing(|| "filling the feature cache")?;
    tracing::info!("{} remote features are cached", chosen.len());
    Ok(cache)
}

/// Replicas of other machines' lists, if there is a memory budget for them.
///
/// # Errors
/// If a part does not reply.
pub(super) fn copied(
    section: &CacheSection,
    divided: &Partitioned,
    wanted: &Wanted<'_>,
) -> Result<Option<Arc<Replica>>> {
    let bytes = section.lists.as_u64();
    if bytes == 0 {
        return Ok(None);
    }
    let whole = divided.sampler(Rule::Exact, &[-1])?;
    let replica = Replica::read(&whole, &wanted.lists(Replica::most(bytes))?, bytes)?;
    let (nodes, edges) = (replica.nodes(), replica.edges());
    tracing::info!("{nodes} remote lists are replicated, {edges} edges");
    Ok(Some(Arc::new(replica)))
}
