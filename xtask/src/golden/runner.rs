//! Runs of the binary, each in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::cases::Case;
use super::graphs;
use super::outcome::{Numbers, Outcome};

/// A binary and the folder where it runs.
pub struct Runner {
    gnarl: PathBuf,
    folder: TempDir,
}

impl Runner {
    /// Makes the graphs.
    pub fn new(gnarl: PathBuf, repository: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gnarl-golden-").tempdir()?;
        graphs::make(&gnarl, repository, folder.path())?;
        // Relative paths of the run files under examples start there.
        std::fs::create_dir(folder.path().join("data"))?;
        Ok(Self { gnarl, folder })
    }

    /// Trains one case; a resumed one is stopped after its first epoch.
    pub fn run(&self, case: &Case) -> Result<Outcome> {
        let file = self.run_file(case)?;
        // Names end in numbers of workers, and so do those of runs beside a finished one.
        let name = format!("{}.run", case.name.replace(['/', ' '], "_"));
        let out = Path::new("runs").join(name);
        let mut sets = case.sets.clone();
        sets.push(format!("output.dir={}", out.display()));
        if case.resumed {
            let mut first = sets.clone();
            first.push("train.epochs=1".into());
            if let Ended::Refused(reason) = self.train(case, &file, &first, false)? {
                return Ok(Outcome::Refused(reason));
            }
        }
        match self.train(case, &file, &sets, case.resumed)? {
            Ended::Refused(reason) => Ok(Outcome::Refused(reason)),
            Ended::Well(result) => {
                let numbers = Numbers::read(&result, &self.folder.path().join(&out))?;
                Ok(Outcome::Trained(numbers))
            }
        }
    }

    fn run_file(&self, case: &Case) -> Result<PathBuf> {
        if let Some(file) = &case.file {
            return Ok(file.clone());
        }
        let file = self.folder.path().join(format!("{}.toml", case.name.replace(['/', ' '], "_")));
        std::fs::write(&file, format!("[dataset]\npath = '{}'\n", case.graph.name()))?;
        Ok(file)
    }

    fn train(&self, case: &Case, file: &Path, sets: &[String], resume: bool) -> Result<Ended> {
        let mut command = if case.ranks > 0 {
            let mut mpirun = Command::new("mpirun");
            mpirun.args(["--oversubscribe", "-n", &case.ranks.to_string()]).arg(&self.gnarl);
            mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            mpirun
        } else {
            Command::new(&self.gnarl)
        };
        command.arg("train").arg(file);
        for set in sets {
            command.args(["--set", set]);
        }
        if resume {
            command.arg("--resume");
        }
        if case.ranks > 0 {
            command.args(["--engine", "mpi"]);
        }
        let output = command.current_dir(self.folder.path()).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => Ok(Ended::Well(result(&output.stdout)?)),
            Some(1 | 2) if !text.contains("panicked") => Ok(Ended::Refused(reason(&text))),
            code => bail!("ended with {code:?}:\n{text}"),
        }
    }
}

enum Ended {
    Well(Value),
    Refused(String),
}

/// The result of a command that must succeed in `folder`.
pub fn command(gnarl: &Path, folder: &Path, words: &[&str]) -> Result<Value> {
    let output = Command::new(gnarl).args(words).current_dir(folder).output()?;
    if !output.status.success() {
        bail!("gnarl {words:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    result(&output.stdout)
}

fn result(stdout: &[u8]) -> Result<Value> {
    let text = String::from_utf8_lossy(stdout);
    serde_json::from_str(text.lines().last().unwrap_or_default()).context("the last line is JSON")
}

/// The lines of the first error, without those of the log before it, and of other ranks and `mpirun` after.
fn reason(stderr: &str) -> String {
    let (_, error) = stderr.split_once("error: ").unwrap_or(("", stderr));
    let error = error.trim_start_matches("error: ");
    let end = ["error: ", "-----"].iter().filter_map(|end| error.find(end)).min();
    let first = &error[..end.unwrap_or(error.len())];
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}
