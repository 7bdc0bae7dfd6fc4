//! One file for each command: from arguments to a JSON result.

pub mod bench;
mod child;
mod dataset;
mod eval;
pub mod generate;
pub mod import;
mod inspect;
mod partition;
pub mod plan;
mod plan_run;
#[cfg(feature = "serve")]
mod serve;
pub mod train;

#[cfg(not(feature = "serve"))]
use gnarl_graph::Error;
use gnarl_graph::Result;
use serde::Serialize;
use serde_json::Value;

use crate::args::Command;

/// Runs a command; the value is printed as the last line.
pub fn run(command: Command) -> Result<Value> {
    match command {
        Command::Import(args) => import::run(&args),
        Command::Generate(args) => generate::run(args),
        Command::Partition(args) => partition::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => Err(Error::usage("this gnarl was built without its server")
            .hint("build with --features serve, see docs/serving.md")),
        Command::Bench(args) => bench::run(args.what),
    }
}

/// A result as JSON.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
