//! Vectors as NumPy arrays, which take their memory over.

use gnarl_loader::FeatureRows;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// One dimension.
pub fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyAny> {
    PyArray1::from_vec(py, values).into_any()
}

/// Rows of `width` values.
pub fn matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    width: usize,
) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape([rows, width])?.into_any())
}

/// Features, a row for each of `count` nodes or edges.
pub fn rows(py: Python<'_>, rows: FeatureRows, count: usize) -> PyResult<Bound<'_, PyAny>> {
    matrix(py, rows.values, count, rows.width)
}
