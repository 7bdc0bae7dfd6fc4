//! Golden runs: the numbers of every combination of task, model, strategy and sampler on small graphs.
//!
//! A change that only moves code leaves them equal bit by bit. Sums depend on the width of the vector
//! registers, so the record names the machine's; on others numbers are compared to [`TOLERANCE`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

mod cases;
mod examples;
mod graphs;
mod outcome;
mod runner;

use cases::Case;
use outcome::{Change, Outcome};
use runner::Runner;

/// Largest relative difference of a loss or a score from that of another kind of machine.
const TOLERANCE: f64 = 1e-3;

/// `cargo xtask golden`
#[derive(Debug, Args)]
pub struct GoldenArgs {
    /// Write what the runs give instead of comparing it
    #[arg(long)]
    record: bool,
    /// Only runs whose name has this in it
    #[arg(long, default_value = "")]
    only: String,
    /// A binary of gnarl, instead of one built now in the development profile
    #[arg(long)]
    gnarl: Option<PathBuf>,
    /// Also run cases of engine mpi; the binary must have it
    #[arg(long)]
    mpi: bool,
    /// Also train the run files under examples/, for which GNARL_DATA must name the real graphs
    #[arg(long)]
    examples: bool,
    /// A setting for all runs that changes no number, such as train.preparation_threads=3
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "record")]
    sets: Vec<String>,
    /// Print names instead of running
    #[arg(long)]
    list: bool,
}

/// The recorded numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// Vector registers of the machine that made them.
    registers: String,
    runs: BTreeMap<String, Outcome>,
}

/// Runs the cases, then compares or records them.
///
/// # Errors
/// A run differs from the record, is not in it, or a dataset cannot be made.
pub fn run(args: &GoldenArgs, repository: &Path) -> Result<()> {
    let mut cases = cases::all();
    if args.mpi {
        cases.extend(cases::mpi());
    }
    if args.examples {
        cases.extend(examples::all(repository)?);
    }
    cases.retain(|case| case.name.contains(&args.only));
    ensure!(!cases.is_empty(), "no golden run has '{}' in its name", args.only);
    if args.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }

    for case in &mut cases {
        case.sets.extend(args.sets.iter().cloned());
    }
    let gnarl = match &args.gnarl {
        Some(gnarl) => gnarl.canonicalize().with_context(|| gnarl.display().to_string())?,
        None => build(repository, args.mpi)?,
    };
    let runner = Runner::new(gnarl, repository)?;
    let found = outcomes(&runner, &cases)?;

    let file = repository.join("xtask/golden.json");
    let mut record = read(&file)?;
    if args.record {
        record.registers = registers().to_string();
        record.runs.extend(found);
        write(&file, &record)?;
        println!("{} golden runs recorded", cases.len());
        return Ok(());
    }
    compare(&record, &found)
}

fn outcomes(runner: &Runner, cases: &[Case]) -> Result<BTreeMap<String, Outcome>> {
    let mut names = std::collections::BTreeSet::new();
    for case in cases {
        ensure!(names.insert(&case.name), "two golden runs are named '{}'", case.name);
    }
    cases
        .par_iter()
        .map(|case| {
            let outcome = runner.run(case).with_context(|| case.name.clone())?;
            Ok((case.name.clone(), outcome))
        })
        .collect()
}

fn compare(record: &Record, found: &BTreeMap<String, Outcome>) -> Result<()> {
    let exact = record.registers == registers();
    if !exact {
        println!(
            "recorded with {}, this machine has {}: numbers are compared to {TOLERANCE}",
            record.registers,
            registers()
        );
    }
    let mut broken = 0;
    for (name, outcome) in found {
        let change = match record.runs.get(name) {
            None => Change::Broken("not recorded".into()),
            Some(before) => before.change(outcome, (!exact).then_some(TOLERANCE)),
        };
        match change {
            Change::None => {}
            Change::Noted(what) => println!("note: {name}: {what}"),
            Change::Broken(what) => {
                println!("DIFFERS: {name}: {what}");
                broken += 1;
            }
        }
    }
    let trained = found.values().filter(|outcome| outcome.is_trained()).count();
    println!("{} golden runs, {trained} of them trained, {broken} differ", found.len());
    if broken > 0 {
        bail!("{broken} golden runs differ; --record takes the new numbers, if each has a reason");
    }
    Ok(())
}

fn build(repository: &Path, mpi: bool) -> Result<PathBuf> {
    let features = if mpi { "serve,mpi" } else { "serve" };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--locked", "-p", "gnarl-cli", "--features", features])
        .current_dir(repository)
        .status()?;
    ensure!(status.success(), "gnarl did not build");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository.join("target"), PathBuf::from);
    Ok(target.join("debug").join(format!("gnarl{}", std::env::consts::EXE_SUFFIX)))
}

/// What decides the order of sums within a product.
fn registers() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return "avx512";
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return "avx2";
        }
    }
    std::env::consts::ARCH
}

fn read(file: &Path) -> Result<Record> {
    if !file.exists() {
        return Ok(Record::default());
    }
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// One line per run, so that a change shows as a line.
fn write(file: &Path, record: &Record) -> Result<()> {
    let mut text = format!("{{\"registers\": {:?}, \"runs\": {{\n", record.registers);
    for (i, (name, outcome)) in record.runs.iter().enumerate() {
        let comma = if i + 1 == record.runs.len() { "" } else { "," };
        text += &format!("{:?}: {}{comma}\n", name, serde_json::to_string(outcome)?);
    }
    text += "}}\n";
    std::fs::write(file, text).with_context(|| file.display().to_string())
}
