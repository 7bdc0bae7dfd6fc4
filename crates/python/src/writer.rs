//! Datasets written from arrays.

use std::path::PathBuf;

use gnarl_common::staging::Claim;
use gnarl_common::threads::pool;
use gnarl_common::{Element, Error, Result};
use gnarl_graph::{DatasetWriter, FinishOptions, IdWidth, MANIFEST, Triple};
use half::f16;
use numpy::{Element as Item, PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::prelude::*;

use crate::errors::Raise;

/// Values that are written at a time.
const PIECE: usize = 1 << 20;

/// Writes a dataset, which appears in its folder when it is finished.
#[pyclass(module = "gnarl._gnarl")]
pub struct Writer {
    inner: Option<DatasetWriter>,
    /// Held until the end: nobody else writes there.
    claim: Option<Claim>,
}

/// The owner of a column.
enum Owner {
    Nodes(String),
    Edges(Triple),
}

#[pymethods]
impl Writer {
    /// Starts a dataset in `path`; one that is there is replaced if `force`.
    #[new]
    fn create(py: Python<'_>, path: PathBuf, num_nodes: u64, force: bool) -> PyResult<Self> {
        let started = || {
            let claim = Claim::new(&path, MANIFEST, force)?;
            let inner = DatasetWriter::create(&path, IdWidth::for_nodes(num_nodes))?;
            Ok(Self { inner: Some(inner), claim: Some(claim) })
        };
        started().raise(py)
    }

    /// Adds a type of `count` nodes, with so many classes if they have labels.
    fn node_type(
        &mut self,
        py: Python<'_>,
        name: &str,
        count: u64,
        classes: Option<u64>,
    ) -> PyResult<()> {
        let added = self.writer().map(|writer| writer.add_node_type(name, count).classes = classes);
        added.raise(py)
    }

    /// Adds an edge type with the ids of its sources and destinations.
    fn edge_type(
        &mut self,
        py: Python<'_>,
        name: &str,
        counts: (u64, u64),
        sources: PyReadonlyArray1<'_, i64>,
        destinations: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<()> {
        let sources = sources.as_slice()?;
        let destinations = destinations.as_slice()?;
        py.detach(|| self.add_edges(name, counts, (sources, destinations))).raise(py)
    }

    /// Adds a column of a node type.
    fn node_column(
        &mut self,
        py: Python<'_>,
        node_type: &str,
        name: &str,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.add_column(py, &Owner::Nodes(node_type.into()), name, values)
    }

    /// Adds a column of an edge type.
    fn edge_column(
        &mut self,
        py: Python<'_>,
        edge_type: &str,
        name: &str,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let owner = Owner::Edges(edge_type.parse().raise(py)?);
        self.add_column(py, &owner, name, values)
    }

    /// Adds a split of a node type.
    fn split(
        &mut self,
        py: Python<'_>,
        node_type: &str,
        name: &str,
        nodes: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        let nodes = nodes.as_slice()?.to_vec();
        let added = self.writer().and_then(|writer| writer.add_split(node_type, name, nodes));
        added.raise(py)
    }

    /// Builds the lists within so many bytes of memory, and gives the dataset its name.
    fn finish(&mut self, py: Python<'_>, memory: u64) -> PyResult<()> {
        let finished = py.detach(|| {
            let mut writer = self.inner.take().ok_or_else(closed)?;
            writer.origin(serde_json::json!({ "importer": "python" }));
            let options = FinishOptions { memory, coalesce: false, edge_rows: true };
            // Threads of its own: those of the process would be missing in one that is forked off.
            pool(2)?.install(|| writer.finish(options)).map(drop)
        });
        self.claim = None;
        finished.raise(py)
    }
}

impl Writer {
    fn writer(&mut self) -> Result<&mut DatasetWriter> {
        self.inner.as_mut().ok_or_else(closed)
    }

    fn add_edges(
        &mut self,
        name: &str,
        counts: (u64, u64),
        (sources, destinations): (&[i64], &[i64]),
    ) -> Result<()> {
        let triple: Triple = name.parse()?;
        if sources.len() != destinations.len() {
            let message = format!(
                "{triple}: {} sources and {} destinations",
                sources.len(),
                destinations.len()
            );
            return Err(Error::usage(message));
        }
        let writer = self.writer()?;
        let mut edges = writer.edge_writer(&triple, Some(counts))?;
        pool(2)?.install(|| {
            for (first, (sources, destinations)) in
                sources.chunks(PIECE).zip(destinations.chunks(PIECE)).enumerate()
            {
                let end = |ids: &[i64], what: &str| -> Result<Vec<u64>> {
                    let known = |(at, &id): (usize, &i64)| {
                        let row = first * PIECE + at;
                        u64::try_from(id).map_err(|_| {
                            Error::invalid(format!("{triple}: edge {row}: {what} {id} is negative"))
                        })
                    };
                    ids.iter().enumerate().map(known).collect()
                };
                edges.push(&end(sources, "source")?, &end(destinations, "destination")?)?;
            }
            Ok(())
        })?;
        let columns = edges.finish()?;
        writer.add_edge_type(triple, columns);
        Ok(())
    }

    fn add_column(
        &mut self,
        py: Python<'_>,
        owner: &Owner,
        name: &str,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let added = self
            .try_column::<f32>(py, owner, name, values)
            .or_else(|| self.try_column::<f16>(py, owner, name, values))
            .or_else(|| self.try_column::<u8>(py, owner, name, values))
            .or_else(|| self.try_column::<i32>(py, owner, name, values))
            .or_else(|| self.try_column::<i64>(py, owner, name, values));
        let wrong = || {
            let found =
                values.getattr("dtype").map_or_else(|_| "?".into(), |found| found.to_string());
            let hint = "expected an array of float32, float16, uint8, int32 or int64, in C order";
            Err(Error::usage(format!("column '{name}' has the type {found}")).hint(hint)).raise(py)
        };
        added.unwrap_or_else(wrong)
    }

    /// Adds a column of `values` if they are of this type.
    fn try_column<T: Element + Item>(
        &mut self,
        py: Python<'_>,
        owner: &Owner,
        name: &str,
        values: &Bound<'_, PyAny>,
    ) -> Option<PyResult<()>> {
        let array: PyReadonlyArrayDyn<'_, T> = values.extract().ok()?;
        let shape: Vec<u64> = array.as_array().shape().iter().map(|&size| size as u64).collect();
        let values = array.as_slice().ok()?;
        let row = shape.get(1..).unwrap_or_default();
        Some(py.detach(|| self.write_column(owner, name, (values, row))).raise(py))
    }

    fn write_column<T: Element>(
        &mut self,
        owner: &Owner,
        name: &str,
        (values, row): (&[T], &[u64]),
    ) -> Result<()> {
        let writer = self.writer()?;
        let mut column = match owner {
            Owner::Nodes(node_type) => writer.node_column::<T>(node_type, name, row)?,
            Owner::Edges(triple) => writer.edge_column::<T>(triple, name, row)?,
        };
        values.chunks(PIECE).try_for_each(|piece| column.push(piece))?;
        let spec = column.finish()?;
        match owner {
            Owner::Nodes(node_type) => writer.node_type(node_type)?.columns.push(spec),
            Owner::Edges(triple) => writer.edge_type(triple)?.columns.push(spec),
        }
        Ok(())
    }
}

fn closed() -> Error {
    Error::usage("the dataset is finished")
}
