//! Datasets as Python sees them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::Error;
use gnarl_graph::{Dataset, Labels, Names, UserIdKind, UserIds};
use gnarl_loader::{LabelRows, LoaderGraph};
use gnarl_partition::PARTITION;
use numpy::PyReadonlyArray1;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{array, matrix, rows};
use crate::errors::Raise;
use crate::parts::{self, Parts};
use crate::waiting::wait_for;

/// A dataset on disk, mapped, or a partitioned one, of which parts may be elsewhere. It is pickled by its path and options,
/// or by its servers alone if they describe it.
#[pyclass(frozen, module = "gnarl._gnarl")]
pub struct Graph {
    pub inner: Arc<LoaderGraph>,
    parts: Parts,
    /// If its folder is one of the cache of this host: true if servers make batches.
    connected: Option<bool>,
}

/// Opens the dataset in a folder, or the partitioned one.
fn open(path: &Path, parts: &Parts, batches: bool) -> gnarl_common::Result<LoaderGraph> {
    if path.join(PARTITION).exists() {
        return parts::open(path, parts, batches);
    }
    if !parts.servers.is_empty() || parts.token_file.is_some() || parts.certificate.is_some() {
        return Err(Error::usage(format!("{}: there is no {PARTITION}", path.display()))
            .hint("parts of servers are read by the folder that describes their partition"));
    }
    LoaderGraph::open_cached(&Dataset::open(path)?, parts.cache)
}

impl Graph {
    fn node_type(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        self.inner.schema().node_type(name).raise(py)
    }

    fn edge_type(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        let found = name.parse().and_then(|triple| self.inner.schema().edge_type(&triple));
        found.raise(py)
    }

    /// The number of an edge type, and the rows of edges: given ones, or of all; None if the type lacks a column.
    fn edge_rows(
        &self,
        py: Python<'_>,
        edge_type: &str,
        edges: Option<PyReadonlyArray1<'_, i64>>,
        has_column: impl FnOnce(&LoaderGraph, usize) -> bool,
    ) -> PyResult<Option<(usize, Vec<u64>)>> {
        let number = self.edge_type(py, edge_type)?;
        self.inner.check_whole("columns of edges").raise(py)?;
        if !has_column(&self.inner, number) {
            return Ok(None);
        }
        let triple = &self.inner.schema().edge_types()[number];
        let count = self.inner.num_edges(number).unwrap_or_default();
        let Some(edges) = edges else { return Ok(Some((number, (0..count).collect()))) };
        let row = |&edge: &i64| match u64::try_from(edge) {
            Ok(row) if row < count => Ok(row),
            _ => Err(Error::usage(format!("edge {edge} of {triple}, which has {count} edges"))),
        };
        let rows = edges.as_slice()?.iter().map(row).collect::<gnarl_common::Result<_>>();
        rows.raise(py).map(|rows| Some((number, rows)))
    }
}

/// The labels of nodes as an array.
pub fn label_array(py: Python<'_>, labels: Option<LabelRows>) -> PyResult<Bound<'_, PyAny>> {
    match labels {
        None => Ok(py.None().into_bound(py)),
        Some(LabelRows::Classes(classes)) => Ok(array(py, classes)),
        Some(LabelRows::Values(values)) => Ok(array(py, values)),
        Some(LabelRows::Tasks(values, tasks)) => {
            let rows = values.len() / tasks.max(1);
            matrix(py, values, rows, tasks)
        }
    }
}

#[pymethods]
impl Graph {
    /// Opens the dataset in a folder. Of a partitioned one parts may be at servers.
    #[new]
    #[pyo3(signature = (path, servers=Vec::new(), token_file=None, certificate=None, deadline=60.0, cache=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        servers: Vec<String>,
        token_file: Option<PathBuf>,
        certificate: Option<PathBuf>,
        deadline: f64,
        cache: Option<u64>,
    ) -> PyResult<Self> {
        let parts = Parts { servers, token_file, certificate, deadline, cache };
        let asked = parts.clone();
        let opened = match parts.servers.is_empty() {
            true => py.detach(|| open(&path, &asked, false)).raise(py)?,
            false => wait_for(py, move || open(&path, &asked, false))?,
        };
        Ok(Self { inner: Arc::new(opened), parts, connected: None })
    }

    /// Opens the partition of servers by their addresses alone; they make the batches of loaders if `batches`.
    #[staticmethod]
    #[pyo3(signature = (servers, token_file=None, certificate=None, deadline=60.0, cache=None, batches=false))]
    fn connect(
        py: Python<'_>,
        servers: Vec<String>,
        token_file: Option<PathBuf>,
        certificate: Option<PathBuf>,
        deadline: f64,
        cache: Option<u64>,
        batches: bool,
    ) -> PyResult<Self> {
        let parts = Parts { servers, token_file, certificate, deadline, cache };
        let asked = parts.clone();
        let opened = wait_for(py, move || parts::connect(&asked, batches))?;
        Ok(Self { inner: Arc::new(opened), parts, connected: Some(batches) })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let graph = slf.get();
        let Parts { servers, token_file, certificate, deadline, cache } = graph.parts.clone();
        if let Some(batches) = graph.connected {
            // The folder of another host's cache may be elsewhere, or not there yet.
            let args = (servers, token_file, certificate, deadline, cache, batches);
            return (slf.get_type().getattr("connect")?, args).into_bound_py_any(slf.py());
        }
        let args = (graph.path(), servers, token_file, certificate, deadline, cache);
        (slf.get_type(), args).into_bound_py_any(slf.py())
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        let dir = self.inner.dir();
        // A process that is started elsewhere opens it too.
        std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf())
    }

    /// The fingerprint of a whole dataset, as runs note it.
    #[getter]
    fn fingerprint(&self) -> String {
        gnarl_partition::fingerprint(self.inner.dataset().manifest())
    }

    /// True if parts are at servers.
    #[getter]
    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    /// The name.
    #[getter]
    fn name(&self) -> String {
        self.inner.name().to_owned()
    }

    /// Names of the node types.
    #[getter]
    fn node_types(&self) -> Vec<String> {
        self.inner.schema().node_types().to_vec()
    }

    /// Names of the edge types: source, relation, destination.
    #[getter]
    fn edge_types(&self) -> Vec<(String, String, String)> {
        let triples = self.inner.schema().edge_types().iter();
        triples.map(|of| (of.src.clone(), of.rel.clone(), of.dst.clone())).collect()
    }

    /// Facts about a node type, by name.
    fn node_facts<'py>(&self, py: Python<'py>, node_type: &str) -> PyResult<Bound<'py, PyDict>> {
        let number = self.node_type(py, node_type)?;
        let dataset = self.inner.dataset();
        let facts = PyDict::new(py);
        facts.set_item("count", self.inner.num_nodes(number))?;
        facts.set_item("features", self.inner.feature_width(number))?;
        facts.set_item("splits", dataset.split_names(node_type).raise(py)?)?;
        let labels = match dataset.labels(node_type).raise(py)? {
            None => dataset.values(node_type).raise(py)?,
            found => found,
        };
        let kind = labels.as_ref().map(|labels| match labels {
            Labels::Single { .. } => "classes",
            Labels::Multi { .. } => "tasks",
            Labels::Values { .. } => "values",
        });
        facts.set_item("labels", kind)?;
        let has_times = self.inner.times_of(number, &[]).is_some();
        facts.set_item("times", has_times)?;
        facts.set_item("outputs", labels.as_ref().map(Labels::outputs))?;
        Ok(facts)
    }

    /// Facts about an edge type, by name.
    fn edge_facts<'py>(&self, py: Python<'py>, edge_type: &str) -> PyResult<Bound<'py, PyDict>> {
        let number = self.edge_type(py, edge_type)?;
        let triple = &self.inner.schema().edge_types()[number];
        // Of parts the catalog has no edges.
        let stored = self.inner.dataset().manifest().edge_type(triple).ok();
        let facts = PyDict::new(py);
        facts.set_item("count", self.inner.num_edges(number))?;
        facts.set_item("features", self.inner.edge_feature_width(number))?;
        facts.set_item("symmetric", stored.map(|stored| stored.facts.symmetric))?;
        let columns = stored
            .map(|stored| stored.columns.iter().map(|column| &*column.name).collect::<Vec<&str>>());
        facts.set_item("columns", columns)?;
        Ok(facts)
    }

    /// The nodes of a split.
    fn split<'py>(
        &self,
        py: Python<'py>,
        node_type: &str,
        name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let number = self.node_type(py, node_type)?;
        let nodes = self.inner.split(number, name).raise(py)?.nodes;
        Ok(array::<i64>(py, nodes.iter().map(|&node| node.into()).collect()))
    }

    /// The features of nodes, a row each, or None.
    fn features<'py>(
        &self,
        py: Python<'py>,
        node_type: &str,
        nodes: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let number = self.node_type(py, node_type)?;
        let nodes = self.inner.seeds(number, nodes.as_slice()?).raise(py)?.nodes;
        let count = nodes.len();
        let graph = self.inner.clone();
        // Memory of its own, which goes when the array does.
        let gather = move || graph.features_of(number, &nodes, &Arc::default());
        let found = match self.inner.is_remote() {
            true => wait_for(py, gather)?,
            false => py.detach(gather).raise(py)?,
        };
        found.map(|found| rows(py, found, count)).transpose()
    }

    /// The labels of nodes, or None.
    fn labels<'py>(
        &self,
        py: Python<'py>,
        node_type: &str,
        nodes: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let number = self.node_type(py, node_type)?;
        let nodes = self.inner.seeds(number, nodes.as_slice()?).raise(py)?.nodes;
        label_array(py, self.inner.labels_of(number, &nodes))
    }

    /// All edges of a type in the order of their rows: an array of sources and one of destinations.
    fn edges<'py>(
        &self,
        py: Python<'py>,
        edge_type: &str,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let number = self.edge_type(py, edge_type)?;
        let (sources, destinations) = py.detach(|| self.inner.edges_of(number)).raise(py)?;
        Ok((array(py, sources), array(py, destinations)))
    }

    /// The times of nodes, by default of all of a type, or None.
    #[pyo3(signature = (node_type, nodes=None))]
    fn node_times<'py>(
        &self,
        py: Python<'py>,
        node_type: &str,
        nodes: Option<PyReadonlyArray1<'py, i64>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let number = self.node_type(py, node_type)?;
        let nodes = match nodes {
            Some(nodes) => self.inner.seeds(number, nodes.as_slice()?).raise(py)?,
            None => self.inner.all(number),
        };
        Ok(self.inner.times_of(number, &nodes.nodes).map(|times| array(py, times)))
    }

    /// The features of edges, by default of all of a type in the order of their rows, or None.
    #[pyo3(signature = (edge_type, edges=None))]
    fn edge_features<'py>(
        &self,
        py: Python<'py>,
        edge_type: &str,
        edges: Option<PyReadonlyArray1<'py, i64>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let has_column = |of: &LoaderGraph, number| of.edge_feature_width(number).is_some();
        let found = self.edge_rows(py, edge_type, edges, has_column)?;
        let Some((number, edges)) = found else { return Ok(None) };
        // Memory of its own, which goes when the array does.
        let found = py.detach(|| self.inner.edge_features_of(number, &edges, &Arc::default()));
        found.raise(py)?.map(|found| rows(py, found, edges.len())).transpose()
    }

    /// The weights of edges likewise.
    #[pyo3(signature = (edge_type, edges=None))]
    fn edge_weights<'py>(
        &self,
        py: Python<'py>,
        edge_type: &str,
        edges: Option<PyReadonlyArray1<'py, i64>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let has_column = |of: &LoaderGraph, number| of.weights_of(number, &[]).is_some();
        let found = self.edge_rows(py, edge_type, edges, has_column)?;
        let Some((number, edges)) = found else { return Ok(None) };
        Ok(self.inner.weights_of(number, &edges).map(|weights| array(py, weights)))
    }

    /// The times of edges likewise.
    #[pyo3(signature = (edge_type, edges=None))]
    fn edge_times<'py>(
        &self,
        py: Python<'py>,
        edge_type: &str,
        edges: Option<PyReadonlyArray1<'py, i64>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let has_column = |of: &LoaderGraph, number| of.edge_times_of(number, &[]).is_some();
        let found = self.edge_rows(py, edge_type, edges, has_column)?;
        let Some((number, edges)) = found else { return Ok(None) };
        Ok(self.inner.edge_times_of(number, &edges).map(|times| array(py, times)))
    }

    /// The ids that the user gave to nodes: an array of integers, or a list of texts.
    fn user_ids<'py>(
        &self,
        py: Python<'py>,
        node_type: &str,
        nodes: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let number = self.node_type(py, node_type)?;
        let nodes = self.inner.seeds(number, nodes.as_slice()?).raise(py)?.nodes;
        let ids = UserIds::open(self.inner.dataset(), node_type).raise(py)?;
        match ids.kind() {
            UserIdKind::Integer => {
                Ok(array(py, nodes.iter().map(|&node| ids.integer(node.into())).collect()))
            }
            UserIdKind::Text => {
                let texts: Vec<&str> = nodes.iter().map(|&node| ids.text(node.into())).collect();
                texts.into_bound_py_any(py)
            }
        }
    }

    /// Names of the classes of a node type by their numbers, or None.
    fn class_names(&self, py: Python<'_>, node_type: &str) -> PyResult<Option<Vec<String>>> {
        self.node_type(py, node_type)?;
        let names = py.detach(|| Names::of_nodes(self.inner.dataset(), node_type, "class_name"));
        let all = |names: Names| (0..names.len()).map(|of| names.get(of).to_owned()).collect();
        Ok(names.raise(py)?.map(all))
    }

    /// The nodes that the user gave these ids, written as texts.
    fn find<'py>(
        &self,
        py: Python<'py>,
        node_type: &str,
        ids: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = py.detach(|| {
            let known = UserIds::open(self.inner.dataset(), node_type)?;
            known.find(&ids.iter().map(String::as_str).collect::<Vec<_>>())
        });
        Ok(array::<i64>(py, found.raise(py)?.into_iter().map(|node| node as i64).collect()))
    }
}
