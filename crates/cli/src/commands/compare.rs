//! `gnarl compare`

use std::path::PathBuf;

use clap::Args;
use gnarl_common::Result;
use gnarl_report::Comparison;
use gnarl_train::{Recorded, record_folder};
use serde_json::{Value, json};

/// `gnarl compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Folders of runs, finished or not, or their addresses in an object store
    #[arg(required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,
    /// Write a page with overlaid curves to this file, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

pub fn run(args: &CompareArgs) -> Result<Value> {
    let read = |place: &PathBuf| -> Result<Recorded> {
        let run = Recorded::read(&record_folder(place)?)?;
        // The name that the user knows it by, where the folder is a copy.
        Ok(Recorded { folder: place.clone(), ..run })
    };
    let compared = Comparison::new(args.runs.iter().map(read).collect::<Result<_>>()?)?;
    if let Some(path) = &args.html {
        compared.write(path)?;
    }
    eprint!("{}", tables(&compared));
    let settings: serde_json::Map<String, Value> =
        compared.settings.iter().map(|(key, values)| (key.clone(), json!(values))).collect();
    let runs: Vec<Value> = compared.runs.iter().map(|(_, run)| described(run)).collect();
    Ok(json!({ "runs": runs, "settings": settings, "html": args.html }))
}

/// The results of a run, for programs.
fn described(run: &Recorded) -> Value {
    let summary = &run.summary;
    json!({
        "run_dir": run.folder,
        "finished": run.finished,
        "epochs": run.history.len(),
        "metric": summary.metric,
        "best_epoch": summary.best_epoch,
        "valid": summary.valid,
        "test": summary.test,
        "loss": run.history.last().map(|record| record.loss),
        "epoch_seconds": summary.epoch_seconds,
    })
}

/// Results and settings as text, with a column for each run.
fn tables(compared: &Comparison) -> String {
    let names = compared.runs.iter().map(|(name, _)| name.clone()).collect();
    let head = [(String::new(), names)];
    let gap = [(String::new(), Vec::new())];
    let rows: Vec<&(String, Vec<String>)> =
        head.iter().chain(&compared.results).chain(&gap).chain(&compared.settings).collect();
    let width = |cells: &mut dyn Iterator<Item = &String>| {
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let first = width(&mut rows.iter().map(|(name, _)| name));
    let columns: Vec<usize> = (0..compared.runs.len())
        .map(|column| width(&mut rows.iter().filter_map(|(_, values)| values.get(column))).max(1))
        .collect();
    let line = |(name, values): &&(String, Vec<String>)| {
        let mut line = format!("{name:<first$}");
        for (value, width) in values.iter().zip(&columns) {
            let value = if value.is_empty() { "–" } else { value };
            line += &format!("  {value:<width$}");
        }
        line.trim_end().to_string() + "\n"
    };
    let text: String = rows.iter().map(line).collect();
    match compared.settings.is_empty() {
        true => text + "all settings but the folder are equal\n",
        false => text,
    }
}
