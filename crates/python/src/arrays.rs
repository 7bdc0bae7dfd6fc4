//! Vectors as NumPy arrays, which take their memory over.

use gnarl_common::memory::Table;
use gnarl_loader::FeatureRows;
use numpy::ndarray::ArrayViewMut2;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
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

/// Features whose memory goes back to the loader when the last array of them is gone.
#[pyclass(module = "gnarl._gnarl")]
struct Held(Table<f32>);

/// Features, a row for each of `count` nodes or edges.
pub fn rows(py: Python<'_>, rows: FeatureRows, count: usize) -> PyResult<Bound<'_, PyAny>> {
    let FeatureRows { values, width } = rows;
    let held = Bound::new(py, Held(values))?;
    let mut values = held.borrow_mut();
    let view = ArrayViewMut2::from_shape((count, width), &mut values.0[..]);
    let view = view.map_err(|error| PyValueError::new_err(error.to_string()))?;
    // Benefit: pages that are used again are not zeroed by the system for each batch, and nothing is copied (batches of 44 MB:
    // 125 a second in place of 118 with vectors).
    // SAFETY: the array keeps `held` alive, whose values stay where they are and are not looked at again by Rust before they
    // are dropped with it.
    Ok(unsafe { PyArray2::borrow_from_array(&view, held.clone().into_any()) }.into_any())
}
