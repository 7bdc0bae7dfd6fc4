//! Samplers as Python sees them, for loaders of PyTorch Geometric that choose the seeds of a batch themselves.

use std::cell::RefCell;

use gnarl_common::rng::Key;
use gnarl_loader::NeighborSampler;
use gnarl_sample::HeteroScratch;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::Raise;
use crate::graph::Graph;
use crate::loader::{item_of, neighborhood, tuple};

thread_local! {
    /// Memory that the next batch of this thread uses again.
    static SCRATCH: RefCell<HeteroScratch> = RefCell::new(HeteroScratch::new());
}

/// Seeds of one node type: its name, nodes, and the times as of which they are seen.
type Seeds<'py> = (String, PyReadonlyArray1<'py, i64>, Option<PyReadonlyArray1<'py, i64>>);

/// Samples neighborhoods around given nodes.
#[pyclass(frozen, module = "gnarl._gnarl")]
pub struct Sampler {
    inner: NeighborSampler,
}

#[pymethods]
impl Sampler {
    /// A sampler of `graph` with these fan-outs and rules.
    #[new]
    #[pyo3(signature = (graph, *, fanouts, fanouts_of, rule, threads, **asked))]
    fn create(
        py: Python<'_>,
        graph: &Graph,
        fanouts: Vec<i64>,
        fanouts_of: Vec<(String, Vec<i64>)>,
        rule: &str,
        threads: usize,
        asked: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let fanouts = crate::loader::fanouts(py, &fanouts, fanouts_of)?;
        let rule = rule.parse().raise(py)?;
        let asked = asked.cloned().unwrap_or_else(|| PyDict::new(py));
        let neighborhood = neighborhood(py, &item_of(&asked))?;
        let graph = graph.inner.clone();
        let made =
            py.detach(|| NeighborSampler::new(graph, (&fanouts, rule), neighborhood, threads));
        Ok(Self { inner: made.raise(py)? })
    }

    /// The neighborhood of seeds by node type, a function of them and the words of `key`: a batch without columns.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        seeds: Vec<Seeds<'py>>,
        key: Vec<u64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let graph = self.inner.graph();
        let mut all = Vec::with_capacity(seeds.len());
        for (node_type, nodes, times) in &seeds {
            let number = graph.schema().node_type(node_type).raise(py)?;
            let mut own = graph.seeds(number, nodes.as_slice()?).raise(py)?;
            if let Some(times) = times {
                own = own.at(times.as_slice()?.to_vec()).raise(py)?;
            }
            all.push(own);
        }
        let key = key.into_iter().fold(Key::new(0), Key::with);
        let sampled =
            py.detach(|| SCRATCH.with_borrow_mut(|scratch| self.inner.sample(&all, key, scratch)));
        tuple(py, sampled.raise(py)?)
    }
}
