//! Features of edges as samplers read them.

use gnarl_common::{Error, Result};
use gnarl_graph::Dataset;
use gnarl_sample::SampleGraph;

/// `graph`, that of a homogeneous dataset or of a part of one, with the features of its edges.
///
/// # Errors
/// If edges have none, or they are damaged.
pub(super) fn with_edge_features(graph: SampleGraph, dataset: &Dataset) -> Result<SampleGraph> {
    let (_, edge) = dataset.plain()?;
    let graph = graph.with_edge_features_of(dataset, &edge.triple)?;
    if graph.edge_width() == 0 {
        let place = dataset.dir().display();
        return Err(Error::invalid(format!("{place}: {}: edges have no features", edge.triple))
            .hint("import with --edge-features, or leave out model.edge_features"));
    }
    Ok(graph)
}
