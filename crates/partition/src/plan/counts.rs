//! The counts that predictions are made from.

use std::collections::BTreeMap;

use gnarl_common::error::Result;
use gnarl_graph::{Dataset, for_each_edge};
use serde::Serialize;

use crate::read::degrees::for_each_degree;

/// The degree distribution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Degrees(BTreeMap<u64, u64>);

impl Degrees {
    /// Adds a node of `degree`.
    pub fn add(&mut self, degree: u64) {
        *self.0.entry(degree).or_default() += 1;
    }

    /// `Σ_v f(d_v)`.
    pub fn sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        self.0.iter().map(|(&degree, &count)| count as f64 * f(degree as f64)).sum()
    }
}

impl FromIterator<u64> for Degrees {
    fn from_iter<T: IntoIterator<Item = u64>>(degrees: T) -> Self {
        let mut all = Self::default();
        degrees.into_iter().for_each(|d| all.add(d));
        all
    }
}

/// Counts of a dataset.
#[derive(Debug, Clone, Serialize)]
pub struct Counts {
    /// Nodes, V.
    pub nodes: u64,
    /// Edges, E.
    pub edges: u64,
    /// Training nodes.
    pub train: u64,
    /// Mean bytes of a node's features, as stored.
    pub row_bytes: f64,
    /// Every edge has its reverse.
    pub symmetric: bool,
    /// In-degrees: the number of neighbors to draw from.
    #[serde(skip)]
    pub in_degrees: Degrees,
    /// Out-degrees: the number of in-neighbor lists that a node occurs in.
    #[serde(skip)]
    pub out_degrees: Degrees,
}

impl Counts {
    /// Counts `dataset`. Graphs that are not symmetric take a pass over the edges, and 4 bytes a
    /// node.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn of(dataset: &Dataset) -> Result<Self> {
        let sizes = Self::sizes(dataset)?;
        let mut in_degrees = Degrees::default();
        for_each_degree(dataset, |_, degree| in_degrees.add(degree))?;
        let out_degrees = if sizes.symmetric { in_degrees.clone() } else { out_degrees(dataset)? };
        Ok(Self { in_degrees, out_degrees, ..sizes })
    }

    /// The counts of `dataset` without its degrees; reads neither edges nor lists.
    ///
    /// # Errors
    /// If a split cannot be read.
    pub fn sizes(dataset: &Dataset) -> Result<Self> {
        let manifest = dataset.manifest();
        let nodes = manifest.num_nodes();
        let types = &manifest.edge_types;
        let symmetric = types.iter().all(|t| t.facts.symmetric);
        let columns = manifest.node_types.iter().flat_map(|t| &t.columns);
        let features = columns.filter(|c| c.name == "features" || c.name.starts_with("features."));
        let bytes: u64 =
            features.map(|c| c.shape.iter().product::<u64>() * c.dtype.size() as u64).sum();
        let mut train = 0;
        for t in &manifest.node_types {
            train += dataset.split(&t.name, "train")?.map_or(0, |ids| ids.len() as u64);
        }
        Ok(Self {
            nodes,
            edges: types.iter().map(|t| t.count).sum(),
            train,
            row_bytes: bytes as f64 / nodes.max(1) as f64,
            symmetric,
            in_degrees: Degrees::default(),
            out_degrees: Degrees::default(),
        })
    }
}

fn out_degrees(dataset: &Dataset) -> Result<Degrees> {
    let mut degrees = vec![0u32; dataset.manifest().num_nodes() as usize];
    for_each_edge(&mut dataset.edges()?, &mut |u, _| {
        let degree = &mut degrees[u as usize];
        *degree = degree.saturating_add(1);
    })?;
    Ok(degrees.into_iter().map(u64::from).collect())
}
