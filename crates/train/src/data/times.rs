//! Times of nodes and of edges as seeds.

use gnarl_common::{Buf, Error, Result};
use gnarl_config::{Method, RunConfig, TimeRule};
use gnarl_graph::times::edge_times;
use gnarl_graph::{Dataset, Triple};
use gnarl_sample::{SampleGraph, TemporalDraw, TemporalRule, TemporalSampler};

use super::asked::ways_of_type;

/// The draw of edges as of times by `rule`: by numbers of edges unless `sample.method` asks for the quick one. All edges are
/// all edges either way.
pub(crate) fn draw_of(config: &RunConfig, rule: TimeRule) -> TemporalDraw {
    let rule = match rule {
        TimeRule::Last => TemporalRule::Recent,
        TimeRule::Uniform => TemporalRule::Uniform,
    };
    TemporalDraw { rule, exact: config.sample.method != Method::Neighbor }
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

/// The times of the edges of type `triple`, as of which the run predicts them.
///
/// # Errors
/// If they have none, or their reverses are of a type that has none: such a reverse is always there, and would pass the
/// message of the very edge that is asked about.
pub(crate) fn times_of_predicted(dataset: &Dataset, triple: &Triple) -> Result<Buf<i64>> {
    let times = times_of_edges(dataset, triple, "sample.time")?;
    let types = dataset.manifest().edge_types.iter().map(|of| of.triple.clone());
    let types: Vec<Triple> = types.collect();
    if let Some(back) = ways_of_type(&types, triple).back
        && edge_times(dataset, &types[back])?.is_none()
    {
        let (place, reverse) = (dataset.dir().display(), &types[back]);
        return Err(Error::usage(format!(
            "sample.time: {place}: edges {reverse}, the reverses of {triple}, have no times, and would tell of edges to come"
        ))
        .hint("import edges with --reverse, which gives reverses their times, or leave out sample.time"));
    }
    Ok(times)
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
pub(super) fn temporal(graph: &SampleGraph, draw: TemporalDraw) -> Result<TemporalSampler> {
    let times = needed(graph.node_times(), "nodes")?.clone();
    TemporalSampler::new(graph, &[-1], draw)?.with_seed_times(times)
}
