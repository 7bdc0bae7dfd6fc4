//! Errors as exceptions of the Python package.

use gnarl_common::{Error, Kind};
use pyo3::prelude::*;

/// The exception of an error: the class for its kind in `gnarl._errors`, with its message and hint.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        Kind::Usage => "UsageError",
        Kind::InvalidInput => "DataError",
        Kind::Io => "IoError",
        Kind::Limit => "LimitError",
        Kind::Rank => "RankError",
        Kind::Interrupted => {
            return pyo3::exceptions::PyKeyboardInterrupt::new_err(error.message());
        }
    };
    let made = py
        .import("gnarl._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((error.message(), error.advice())));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

/// Turns results of the library into those of Python.
pub trait Raise<T> {
    /// The value, or the exception.
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for gnarl_common::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}
