//! Features of edges as samplers read them.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::{Dataset, Features};
use gnarl_sample::{EdgeFeatures, SampleGraph};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

/// A mapped column.
struct Mapped(MappedFeatures);

impl EdgeFeatures for Mapped {
    fn rows(&self) -> u64 {
        self.0.rows() as u64
    }

    fn width(&self) -> usize {
        self.0.width()
    }

    fn append(&self, row: u64, out: &mut Vec<f32>) -> Result<()> {
        let first = out.len();
        out.resize(first + self.width(), 0.0);
        self.0.copy_row(row, &mut out[first..])
    }
}

/// `graph`, that of a homogeneous dataset or of a part of one, with the features of its edges.
///
/// # Errors
/// If edges have none, or they are damaged.
pub(super) fn with_edge_features(graph: SampleGraph, dataset: &Dataset) -> Result<SampleGraph> {
    let (_, edge) = dataset.plain()?;
    let column = dataset.edge_column(&edge.triple, "features")?.ok_or_else(|| {
        let place = dataset.dir().display();
        Error::invalid(format!("{place}: {}: edges have no features", edge.triple))
            .hint("import with --edge-features, or leave out model.edge_features")
    })?;
    let features = MappedFeatures::new(Features::Dense(column), Normalize::None)?;
    graph.with_edge_features(Arc::new(Mapped(features)))
}
