//! Loaders of batches as Python sees them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gnarl_graph::Triple;
use gnarl_loader::{
    Batch, BatchEdges, BatchLinks, BatchNodes, Columns, Epoch, LoaderOptions, Negatives,
    NeighborLoader, Neighborhood, SeedEdges,
};
use gnarl_sample::HeteroFanouts;
use gnarl_sample::parts::Rule;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{array, matrix, rows};
use crate::errors::{Raise, raised};
use crate::graph::{Graph, label_array};

/// Time between two looks for Ctrl-C while a batch is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Makes batches around nodes of one type, or around edges.
#[pyclass(frozen, module = "gnarl._gnarl")]
pub struct Loader {
    inner: NeighborLoader,
}

/// The batches of an epoch, in order.
#[pyclass(frozen, module = "gnarl._gnarl")]
pub struct Batches {
    /// None once it has ended.
    epoch: Mutex<Option<Epoch>>,
    process: u32,
}

impl Batches {
    fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }
}

/// Options of all loaders, by keyword.
struct Asked {
    fanouts: HeteroFanouts,
    rule: Rule,
    options: LoaderOptions,
}

impl Asked {
    /// Options from a dict.
    fn of(py: Python<'_>, asked: &Bound<'_, PyDict>) -> PyResult<Self> {
        let item = item_of(asked);
        let all =
            fanouts(py, &item("fanouts")?.extract::<Vec<i64>>()?, item("fanouts_of")?.extract()?)?;
        let options = LoaderOptions {
            batch_size: item("batch_size")?.extract()?,
            shuffle: item("shuffle")?.extract()?,
            drop_last: item("drop_last")?.extract()?,
            seed: item("seed")?.extract()?,
            rank: item("rank")?.extract()?,
            world_size: item("world_size")?.extract()?,
            threads: item("threads")?.extract()?,
            prefetch: item("prefetch")?.extract()?,
            columns: Columns {
                features: item("features")?.extract()?,
                labels: item("labels")?.extract()?,
                others: true,
            },
            neighborhood: neighborhood(py, &item)?,
        };
        let rule = item("rule")?.extract::<String>()?.parse().raise(py)?;
        Ok(Self { fanouts: all, rule, options })
    }
}

/// The arguments of a dict by their names.
pub fn item_of<'a, 'py>(
    asked: &'a Bound<'py, PyDict>,
) -> impl Fn(&str) -> PyResult<Bound<'py, PyAny>> + use<'a, 'py> {
    move |name| {
        let found = asked.get_item(name)?;
        found.ok_or_else(|| PyTypeError::new_err(format!("'{name}' is missing")))
    }
}

/// The kind of neighborhoods from arguments by name.
pub fn neighborhood<'py>(
    py: Python<'py>,
    item: &impl Fn(&str) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Neighborhood> {
    let time: Option<String> = item("time")?.extract()?;
    Ok(Neighborhood {
        disjoint: item("disjoint")?.extract()?,
        time: time.map(|rule| rule.parse()).transpose().raise(py)?,
        replace: item("replace")?.extract()?,
        subgraph: item("subgraph")?.extract::<String>()?.parse().raise(py)?,
    })
}

/// Fan-outs of all edge types, and of some by name.
pub fn fanouts(
    py: Python<'_>,
    of_all: &[i64],
    of_some: Vec<(String, Vec<i64>)>,
) -> PyResult<HeteroFanouts> {
    let mut all = HeteroFanouts::new(of_all);
    for (edge_type, fanouts) in of_some {
        all = all.with(edge_type.parse::<Triple>().raise(py)?, &fanouts);
    }
    Ok(all)
}

#[pymethods]
impl Loader {
    /// A loader around nodes of `graph`, as of `times` in temporal sampling.
    #[staticmethod]
    #[pyo3(signature = (graph, node_type, nodes, times=None, **asked))]
    fn of_nodes(
        py: Python<'_>,
        graph: &Graph,
        node_type: &str,
        nodes: PyReadonlyArray1<'_, i64>,
        times: Option<PyReadonlyArray1<'_, i64>>,
        asked: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let asked = Asked::of(py, asked.unwrap_or(&PyDict::new(py)))?;
        let nodes = nodes.as_slice()?;
        let times = times.map(|times| times.as_slice().map(<[i64]>::to_vec)).transpose()?;
        let made = py.detach(|| {
            let graph = graph.inner.clone();
            let mut seeds = graph.seeds(graph.schema().node_type(node_type)?, nodes)?;
            if let Some(times) = times {
                seeds = seeds.at(times)?;
            }
            NeighborLoader::new(graph, seeds, (&asked.fanouts, asked.rule), asked.options)
        });
        Ok(Self { inner: made.raise(py)? })
    }

    /// A loader around edges of `graph`, as of `times` in temporal sampling: with so many pairs as negatives for each, or so
    /// many destinations, drawn by the weights of sources and of destinations where these are given. A batch's edges are left
    /// out of its neighborhood, and those of the other type the other way round, if one is named.
    #[staticmethod]
    #[pyo3(signature = (
        graph,
        edge_type,
        sources,
        destinations,
        times=None,
        pairs=None,
        others=None,
        weights=(None, None),
        leave_out=None,
        **asked,
    ))]
    fn of_edges(
        py: Python<'_>,
        graph: &Graph,
        edge_type: &str,
        sources: PyReadonlyArray1<'_, i64>,
        destinations: PyReadonlyArray1<'_, i64>,
        times: Option<PyReadonlyArray1<'_, i64>>,
        pairs: Option<f64>,
        others: Option<usize>,
        weights: (Option<PyReadonlyArray1<'_, f64>>, Option<PyReadonlyArray1<'_, f64>>),
        leave_out: Option<(Option<String>,)>,
        asked: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let asked = Asked::of(py, asked.unwrap_or(&PyDict::new(py)))?;
        let sources = sources.as_slice()?;
        let destinations = destinations.as_slice()?;
        let times = times.map(|times| times.as_slice().map(<[i64]>::to_vec)).transpose()?;
        let of_sources = weights.0.as_ref().map(|weights| weights.as_slice()).transpose()?;
        let of_destinations = weights.1.as_ref().map(|weights| weights.as_slice()).transpose()?;
        let negatives = match (pairs, others) {
            (Some(share), _) => Negatives::Pairs(share),
            (None, Some(count)) => Negatives::Destinations(count),
            (None, None) => Negatives::None,
        };
        let made = py.detach(|| {
            let graph = graph.inner.clone();
            let (src, dst) = graph.schema().ends(graph.schema().edge_type(&edge_type.parse()?)?);
            let mut sources = graph.seeds(src, sources)?;
            if let Some(times) = times {
                sources = sources.at(times)?;
            }
            let edges = SeedEdges::new(sources, graph.seeds(dst, destinations)?, negatives)?;
            let mut edges = edges.weighted(of_sources, of_destinations)?;
            if let Some((reversed,)) = leave_out {
                let schema = graph.schema();
                let reversed = reversed.map(|name| schema.edge_type(&name.parse()?)).transpose()?;
                edges = edges.leaving_out(schema.edge_type(&edge_type.parse()?)?, reversed);
            }
            NeighborLoader::of_edges(graph, edges, (&asked.fanouts, asked.rule), asked.options)
        });
        Ok(Self { inner: made.raise(py)? })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// The batches of an epoch.
    fn epoch(&self, py: Python<'_>, epoch: u64) -> Batches {
        let epoch = py.detach(|| self.inner.epoch(epoch));
        Batches { epoch: Mutex::new(Some(epoch)), process: std::process::id() }
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

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if !self.is_of_this_process() {
            let message = "this epoch was begun in another process: iterate over the loader again";
            return Err(PyRuntimeError::new_err(message));
        }
        loop {
            // Threads of Python may share an epoch: each gets the batches that it asked for.
            let found = py.detach(|| {
                let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
                let found = epoch.as_mut().map_or(Some(Ok(None)), |own| own.next_within(LOOK));
                if let Some(Ok(None)) = found {
                    *epoch = None;
                }
                found
            });
            match found {
                None => py.check_signals()?,
                Some(Ok(Some(batch))) => return tuple(py, batch).map(Some),
                Some(Ok(None)) => return Ok(None),
                Some(Err(error)) => return Err(raised(py, &error)),
            }
        }
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        if !self.is_of_this_process() {
            return 0;
        }
        py.detach(|| {
            let epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
            epoch.as_ref().map_or(0, Epoch::left)
        })
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        let epoch = self.epoch.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(epoch) = epoch else { return };
        if self.is_of_this_process() {
            Python::attach(|py| py.detach(|| drop(epoch)));
        } else {
            // Its threads are those of the process that this one was forked from: they cannot be waited for.
            std::mem::forget(epoch);
        }
    }
}

/// A batch: number of the seeds' type, places of the seeds, nodes and edges by type, times of the seeds, and the edges that
/// it is around.
pub(crate) fn tuple(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyTuple>> {
    let nodes = batch.nodes.into_iter().map(|nodes| node_tuple(py, nodes));
    let nodes = nodes.collect::<PyResult<Vec<_>>>()?;
    let edges = batch.edges.into_iter().map(|edges| edge_tuple(py, edges));
    let edges = edges.collect::<PyResult<Vec<_>>>()?;
    let times = batch.seed_times.map(|times| array(py, times));
    let links = batch.links.map(|links| link_tuple(py, links)).transpose()?;
    (batch.seed_type, array(py, batch.input_ids), nodes, edges, times, links).into_pyobject(py)
}

/// Sources, destinations, and those of negatives.
fn link_tuple(py: Python<'_>, links: BatchLinks) -> PyResult<Bound<'_, PyTuple>> {
    let BatchLinks { sources, destinations, negative_sources, negative_destinations } = links;
    let all = [sources, destinations, negative_sources, negative_destinations];
    PyTuple::new(py, all.map(|list| array(py, list)))
}

/// Ids, features, labels, times, trees and numbers of hops.
fn node_tuple(py: Python<'_>, nodes: BatchNodes) -> PyResult<Bound<'_, PyTuple>> {
    let BatchNodes { ids, features, labels, times, trees, of_hop } = nodes;
    let count = ids.len();
    let features = features.map(|features| rows(py, features, count)).transpose()?;
    let times = times.map(|times| array(py, times));
    let trees = trees.map(|trees| array(py, trees));
    (array(py, ids), features, label_array(py, labels)?, times, trees, of_hop).into_pyobject(py)
}

/// Endpoints, ids, features, weights, times and numbers of hops.
fn edge_tuple(py: Python<'_>, edges: BatchEdges) -> PyResult<Bound<'_, PyTuple>> {
    let BatchEdges { ends, ids, features, weights, times, of_hop } = edges;
    let count = ends.len() / 2;
    let ids = ids.map(|ids| array(py, ids));
    let features = features.map(|features| rows(py, features, count)).transpose()?;
    let (weights, times) =
        (weights.map(|weights| array(py, weights)), times.map(|times| array(py, times)));
    (matrix(py, ends, 2, count)?, ids, features, weights, times, of_hop).into_pyobject(py)
}
