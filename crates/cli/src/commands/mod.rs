//! One file per command: from arguments to a JSON result.

pub mod bench;
mod child;
pub mod compare;
mod dataset;
pub mod eval;
pub mod generate;
pub mod import;
pub mod infer;
pub mod inspect;
mod objects;
mod parse;
pub mod partition;
pub mod plan;
pub mod sample;
mod security;
pub mod serve;
pub mod serve_model;
pub mod train;
#[cfg(feature = "serve")]
mod watched;
pub mod work;

use std::ffi::OsString;

use gnarl_common::{Result, integrity};
use serde_json::Value;

use crate::args::Command;

/// Runs a command, of the words `words`; the value is printed as the last line.
pub fn run(command: Command, words: &[OsString]) -> Result<Value> {
    match command {
        Command::Import(args) => import::run(&args),
        Command::Generate(args) => generate::run(args),
        Command::Partition(args) => checked(|| partition::run(&args)),
        Command::Plan(args) => checked(|| plan::run(&args)),
        Command::Train(args) => train::run(&args, words),
        Command::Sample(args) => checked(|| sample::run(&args)),
        Command::Work(args) => work::run(&args),
        Command::Repeat(args) => bench::accuracy::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Eval(args) => checked(|| eval::run(&args)),
        Command::Infer(args) => checked(|| infer::run(&args)),
        Command::Inspect(args) => inspect::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::ServeModel(args) => serve_model::run(&args),
        Command::Bench(args) => bench::run(args.what),
    }
}

/// The result of a command that reads files, once their checksums are known to agree.
fn checked(run: impl FnOnce() -> Result<Value>) -> Result<Value> {
    let _checksums = integrity::in_background()?;
    let result = run()?;
    integrity::settle()?;
    Ok(result)
}
