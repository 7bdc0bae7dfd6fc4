//! Loaders of batches as Python sees them.

use std::time::Duration;

use gnarl_graph::Triple;
use gnarl_loader::{Batch, BatchEdges, BatchNodes, Columns, Epoch, LoaderOptions, NeighborLoader};
use gnarl_sample::HeteroFanouts;
use gnarl_sample::parts::Rule;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrays::{array, matrix, rows};
use crate::errors::{Raise, raised};
use crate::graph::{Graph, label_array};

/// Time between two looks for Ctrl-C while a batch is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Makes batches around nodes of one type.
#[pyclass(frozen, module = "gnarl._gnarl")]
pub struct Loader {
    inner: NeighborLoader,
}

/// The batches of an epoch, in order.
#[pyclass(module = "gnarl._gnarl")]
pub struct Batches {
    /// None once it has ended, or in a process that was forked off.
    epoch: Option<Epoch>,
    process: u32,
}

#[pymethods]
impl Loader {
    /// A loader of `graph`: `fanouts` of all edge types, or of some by name.
    #[new]
    #[pyo3(signature = (
        graph, node_type, nodes, fanouts, fanouts_of, rule, *, batch_size, shuffle, drop_last, seed, rank, world_size,
        threads, prefetch, features, labels
    ))]
    fn new(
        py: Python<'_>,
        graph: &Graph,
        node_type: &str,
        nodes: PyReadonlyArray1<'_, i64>,
        fanouts: Vec<i64>,
        fanouts_of: Vec<(String, Vec<i64>)>,
        rule: &str,
        batch_size: usize,
        shuffle: bool,
        drop_last: bool,
        seed: u64,
        rank: usize,
        world_size: usize,
        threads: usize,
        prefetch: usize,
        features: bool,
        labels: bool,
    ) -> PyResult<Self> {
        let made = || {
            let graph = graph.inner.clone();
            let seeds = graph
                .seeds(graph.schema().node_type(node_type)?, nodes.as_slice().unwrap_or(&[]))?;
            let mut all = HeteroFanouts::new(&fanouts);
            for (edge_type, fanouts) in &fanouts_of {
                all = all.with(edge_type.parse::<Triple>()?, fanouts);
            }
            let columns = Columns { features, labels };
            let options = LoaderOptions {
                batch_size,
                shuffle,
                drop_last,
                seed,
                rank,
                world_size,
                threads,
                prefetch,
                columns,
            };
            NeighborLoader::new(graph, seeds, (&all, rule.parse::<Rule>()?), options)
        };
        Ok(Self { inner: made().raise(py)? })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// The batches of an epoch.
    fn epoch(&self, py: Python<'_>, epoch: u64) -> Batches {
        let epoch = py.detach(|| self.inner.epoch(epoch));
        Batches { epoch: Some(epoch), process: std::process::id() }
    }

    /// The batch of the nodes at some places of the list that the loader was given.
    fn at<'py>(
        &self,
        py: Python<'py>,
        places: Vec<u32>,
        epoch: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let batch = py.detach(|| self.inner.at(&places, epoch)).raise(py)?;
        tuple(py, batch)
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.process != std::process::id() {
            let message = "this epoch was begun in another process: iterate over the loader again";
            return Err(PyRuntimeError::new_err(message));
        }
        loop {
            let Some(epoch) = &mut self.epoch else { return Ok(None) };
            match py.detach(|| epoch.next_within(LOOK)) {
                None => py.check_signals()?,
                Some(Ok(Some(batch))) => return tuple(py, batch).map(Some),
                Some(Ok(None)) => {
                    let epoch = self.epoch.take();
                    py.detach(|| drop(epoch));
                    return Ok(None);
                }
                Some(Err(error)) => return Err(raised(py, &error)),
            }
        }
    }

    fn __len__(&self) -> usize {
        self.epoch.as_ref().map_or(0, Epoch::left)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        let Some(epoch) = self.epoch.take() else { return };
        if self.process == std::process::id() {
            Python::attach(|py| py.detach(|| drop(epoch)));
        } else {
            // Its threads are those of the process that this one was forked from: they cannot be waited for.
            std::mem::forget(epoch);
        }
    }
}

/// A batch: number of the seeds' type, places of the seeds, nodes and edges by type.
fn tuple(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyTuple>> {
    let nodes = batch.nodes.into_iter().map(|nodes| node_tuple(py, nodes));
    let nodes = nodes.collect::<PyResult<Vec<_>>>()?;
    let edges = batch.edges.into_iter().map(|edges| edge_tuple(py, edges));
    let edges = edges.collect::<PyResult<Vec<_>>>()?;
    (batch.seed_type, array(py, batch.input_ids), nodes, edges).into_pyobject(py)
}

/// Ids, features, labels, times and numbers of hops.
fn node_tuple(py: Python<'_>, nodes: BatchNodes) -> PyResult<Bound<'_, PyTuple>> {
    let BatchNodes { ids, features, labels, times, of_hop } = nodes;
    let count = ids.len();
    let features = features.map(|features| rows(py, features, count)).transpose()?;
    let times = times.map(|times| array(py, times));
    (array(py, ids), features, label_array(py, labels)?, times, of_hop).into_pyobject(py)
}

/// Endpoints, ids, features, weights, times and numbers of hops.
fn edge_tuple(py: Python<'_>, edges: BatchEdges) -> PyResult<Bound<'_, PyTuple>> {
    let BatchEdges { ends, ids, features, weights, times, of_hop } = edges;
    let count = ids.len();
    let features = features.map(|features| rows(py, features, count)).transpose()?;
    let (weights, times) =
        (weights.map(|weights| array(py, weights)), times.map(|times| array(py, times)));
    (matrix(py, ends, 2, count)?, array(py, ids), features, weights, times, of_hop)
        .into_pyobject(py)
}
