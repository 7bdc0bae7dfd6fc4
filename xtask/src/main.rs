//! Chores of the repository: `cargo xtask golden` compares every kind of run with recorded numbers.

use clap::{Parser, Subcommand};

mod golden;

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
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Golden(args) => golden::run(&args),
    }
}
