//! Times of nodes and of edges as seeds.

use gnarl_common::{Buf, Error, Result};
use gnarl_config::TimeRule;
use gnarl_graph::{Dataset, Triple};
use gnarl_sample::{SampleGraph, TemporalRule, TemporalSampler, edge_times};

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
    times.ok_or_else(|| lacking(name))
}

/// The error of nodes of type `name` without times.
pub(crate) fn lacking(name: &str) -> Error {
    Error::usage(format!("sample.time: {name} have no times, up to which their edges are sampled"))
        .hint("import them with --times or --node-time, or leave out sample.time")
}

/// The times of the edges of type `triple`, which `key` asks for.
///
/// # Errors
/// If they have none.
pub(crate) fn times_of_edges(dataset: &Dataset, triple: &Triple, key: &str) -> Result<Buf<i64>> {
    edge_times(dataset, triple)?.ok_or_else(|| {
        let place = dataset.dir().display();
        Error::usage(format!("{key}: {place}: edges {triple} have no times")).hint(format!(
            "import them with a column 'time' of integers or dates, or leave out {key}"
        ))
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
