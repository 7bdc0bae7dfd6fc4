//! Times of nodes as seeds.

use gnarl_common::{Buf, Error, Result};
use gnarl_config::TimeRule;
use gnarl_sample::{SampleGraph, TemporalRule, TemporalSampler};

/// The library's rule.
pub(super) fn rule_of(rule: TimeRule) -> TemporalRule {
    match rule {
        TimeRule::Last => TemporalRule::Recent,
        TimeRule::Uniform => TemporalRule::Uniform,
    }
}

/// The times of nodes of type `name`.
///
/// # Errors
/// If they have none.
pub(super) fn needed<'a>(times: Option<&'a Buf<i64>>, name: &str) -> Result<&'a Buf<i64>> {
    times.ok_or_else(|| {
        Error::usage(format!(
            "sample.time: {name} have no times, up to which their edges are sampled"
        ))
        .hint("import them with --times or --node-time, or leave out sample.time")
    })
}

/// A sampler of one hop over `graph`, with nodes as seeds at their own times.
///
/// # Errors
/// If nodes have no times, or a list is not inside the graph.
pub(super) fn temporal(graph: &SampleGraph, rule: TimeRule) -> Result<TemporalSampler> {
    let times = needed(graph.node_times(), "nodes")?.clone();
    TemporalSampler::new(graph, &[-1], rule_of(rule))?.with_seed_times(times)
}
