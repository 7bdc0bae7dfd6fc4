//! The kernels' benchmarks at two revisions, in turns.
//!
//! A machine drifts from minute to minute, so that a figure says little and the ratio of two that
//! were measured one after the other more: both revisions are built first, then each benchmark is
//! measured at one and at the other, several times. Changes are printed, never asserted.

mod binaries;
mod estimates;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use binaries::{Binary, Worktree};
use estimates::Estimates;

/// Arguments of `cargo xtask kernels`.
#[derive(Debug, Args)]
pub struct KernelsArgs {
    /// The revision to compare with
    #[arg(long, value_name = "REV", default_value = "HEAD~1")]
    base: String,
    /// Only the benchmarks with this in their names
    #[arg(long, default_value = "")]
    only: String,
    /// Only the benchmarks of these crates
    #[arg(long, value_delimiter = ',', default_values_t = crates())]
    crates: Vec<String>,
    /// Turns: each measures the base, then the working tree
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Seconds of measuring a benchmark in a turn, after half of that to warm up
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Write the table to this file, too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Crates with benchmarks of what every step does.
fn crates() -> Vec<String> {
    ["gnarl-nn", "gnarl-sample", "gnarl-store"].map(String::from).into()
}

/// Builds and measures the benchmarks of both revisions, and prints their medians and ratios.
///
/// # Errors
/// The revision is unknown, a build or a benchmark fails, or no benchmark is measured.
pub fn run(args: &KernelsArgs, repository: &Path) -> Result<()> {
    ensure!(args.turns > 0, "expected at least one turn");
    ensure!(args.seconds > 0.0, "expected more than no seconds");
    let base = Worktree::add(repository, &args.base)?;
    let target = repository.join("target/kernels");
    let before = binaries::build(base.path(), &target, &args.crates)
        .with_context(|| format!("building the benchmarks of {}", args.base))?;
    let now = binaries::build(repository, &target, &args.crates)
        .context("building the benchmarks of the working tree")?;

    let folder = tempfile::Builder::new().prefix("gnarl-kernels-").tempdir()?;
    let mut turns = Vec::new();
    for turn in 0..args.turns {
        let measure = |binaries: &[Binary], name: &str| -> Result<Estimates> {
            let home = folder.path().join(format!("{name}-{turn}"));
            for binary in binaries {
                eprintln!("turn {} of {}: {name} {}", turn + 1, args.turns, binary.name);
                binary.measure(&home, &args.only, args.seconds)?;
            }
            estimates::read(&home)
        };
        turns.push((measure(&before, "base")?, measure(&now, "now")?));
    }
    let rows = table::rows(&turns);
    ensure!(!rows.is_empty(), "no benchmark has '{}' in its name", args.only);
    let table = table::markdown(&args.base, &rows);
    print!("{table}");
    if let Some(out) = &args.out {
        std::fs::write(out, table).with_context(|| out.display().to_string())?;
    }
    Ok(())
}
