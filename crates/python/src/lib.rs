//! The extension module of the Python package `gnarl`: datasets, loaders of batches, and the command line.
//!
//! Arrays leave as owned vectors that NumPy takes over without a copy. The interpreter's lock is released while Rust works.
//! The public interface is in `python/gnarl`, which wraps this module.

mod allocator;
mod arrays;
mod errors;
mod graph;
mod loader;
mod parts;
mod sampler;
mod tables;
mod waiting;
mod writer;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command of the `gnarl` binary in this process, which must do nothing else; returns its exit code.
#[pyfunction]
fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| gnarl_cli::run(words))
}

/// The allocator of this process: `system` or `mimalloc`.
#[pyfunction]
fn allocator_name() -> &'static str {
    allocator::name()
}

/// Lets threads that make batches stand still while the process forks.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(gnarl_loader::before_fork);
}

/// Lets them go on, in the parent and in the child.
#[pyfunction]
fn after_fork() {
    gnarl_loader::after_fork();
}

#[pymodule]
fn _gnarl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<loader::Loader>()?;
    module.add_class::<loader::Batches>()?;
    module.add_class::<sampler::Sampler>()?;
    module.add_class::<tables::Tables>()?;
    module.add_class::<writer::Writer>()?;
    module.add_function(wrap_pyfunction!(allocator_name, module)?)?;
    module.add_function(wrap_pyfunction!(before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(run_command, module)?)
}
