//! Chores of the repository: `cargo xtask golden` compares every kind of run with recorded numbers, `cargo xtask
//! circles` finds import circles, `cargo xtask kernels` compares benchmarks with those of another revision.

use std::path::Path;

use clap::{Parser, Subcommand};

mod circles;
mod golden;
mod kernels;

/// Chores of the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train every supported combination for two epochs and compare losses, scores and weights
    Golden(golden::GoldenArgs),
    /// Find files of a crate that import each other in a loop
    Circles,
    /// Measure the kernels' benchmarks at another revision and now, in turns, and print the changes
    Kernels(kernels::KernelsArgs),
}

fn main() -> anyhow::Result<()> {
    let repository =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of the repository");
    match Args::parse().command {
        Command::Golden(args) => golden::run(&args, repository),
        Command::Circles => circles::run(repository),
        Command::Kernels(args) => kernels::run(&args, repository),
    }
}
