//! The command line.

use std::ffi::OsString;

use clap::{Command as ClapCommand, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    bench, compare, eval, generate, import, infer, inspect, partition, plan, sample, serve,
    serve_model, train, work,
};
use crate::help;

/// Graph neural networks at really large scale.
#[derive(Debug, Parser)]
#[command(name = "gnarl", version, long_version = help::long_version(), about, propagate_version = true)]
pub struct Args {
    /// More log lines; twice for all of them
    #[arg(short, long, action = clap::ArgAction::Count, global = true, display_order = 1000)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

/// The command line with its complete help.
pub fn command() -> ClapCommand {
    help::complete(Args::command())
}

/// Parses the arguments in `words`, of which the first is the program's name.
///
/// # Errors
/// Help and the version, if requested; invalid words.
pub fn try_parse(words: &[OsString]) -> Result<Args, clap::Error> {
    Args::from_arg_matches(&command().try_get_matches_from(words)?)
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a dataset from files
    Import(Box<import::ImportArgs>),
    /// Make a synthetic dataset of any size
    Generate(generate::GenerateArgs),
    /// Cut a dataset into parts
    Partition(partition::PartitionArgs),
    /// Predict the cost and quality of partitioners, or of a run's strategies, before running any
    Plan(plan::PlanArgs),
    /// Train a model from a run file
    Train(train::TrainArgs),
    /// Prepare the batches of a run once, as Arrow files to train on many times
    Sample(sample::SampleArgs),
    /// Prepare batches for a training run, or coordinate those who do
    Work(Box<work::WorkArgs>),
    /// Train run files with several seeds and average the scores
    Repeat(bench::accuracy::RepeatArgs),
    /// Evaluate a trained model on its dataset's splits
    Eval(eval::EvalArgs),
    /// Compare runs: settings that differ, scores, curves
    Compare(compare::CompareArgs),
    /// Write an embedding or a prediction for every node, by the ids of the input
    Infer(Box<infer::InferArgs>),
    /// Describe a dataset, a part or a partition
    Inspect(inspect::InspectArgs),
    /// Serve parts to other machines over Arrow Flight: neighbor sampling and features
    Serve(serve::ServeArgs),
    /// Answer requests for predictions of a trained model over HTTP
    ServeModel(Box<serve_model::ServeModelArgs>),
    /// Measure and compare
    Bench(bench::BenchArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }
}
