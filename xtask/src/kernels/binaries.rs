//! Benchmarks as programs, of this and of other revisions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

/// A checkout of a revision beside the working tree, removed in the end.
pub(super) struct Worktree {
    repository: PathBuf,
    folder: TempDir,
}

impl Worktree {
    /// Checks `revision` out in a temporary folder.
    pub(super) fn add(repository: &Path, revision: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gnarl-base-").tempdir()?;
        let tree = Self { repository: repository.to_owned(), folder };
        let add = ["worktree", "add", "--quiet", "--detach", "--force"].map(OsStr::new);
        tree.git(&add, &[tree.folder.path().as_os_str(), OsStr::new(revision)])
            .with_context(|| format!("checking out {revision}"))?;
        Ok(tree)
    }

    /// The folder of the checkout.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn git(&self, words: &[&OsStr], more: &[&OsStr]) -> Result<()> {
        let mut git = Command::new("git");
        let status = git.current_dir(&self.repository).args(words).args(more).status()?;
        ensure!(status.success(), "git: {status}");
        Ok(())
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let remove = ["worktree", "remove", "--force"].map(OsStr::new);
        // What is left is a temporary folder, and an entry that `git worktree prune` removes.
        let _ = self.git(&remove, &[self.folder.path().as_os_str()]);
    }
}

/// The program of a benchmark.
#[derive(Debug, PartialEq)]
pub(super) struct Binary {
    /// The name of its target.
    pub(super) name: String,
    program: PathBuf,
    /// The folder of its crate.
    folder: PathBuf,
}

/// Builds the benchmarks of `crates` in the repository at `tree`.
pub(super) fn build(tree: &Path, target: &Path, crates: &[String]) -> Result<Vec<Binary>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["bench", "--locked", "--quiet", "--no-run", "--benches"]);
    cargo.arg("--message-format=json-render-diagnostics").current_dir(tree);
    cargo.env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit());
    crates.iter().for_each(|name| _ = cargo.args(["-p", name]));
    let output = cargo.output().context("cargo")?;
    ensure!(output.status.success(), "cargo bench --no-run: {}", output.status);
    let found = programs(&String::from_utf8_lossy(&output.stdout))?;
    ensure!(!found.is_empty(), "no benchmarks in {}", crates.join(", "));
    Ok(found)
}

/// The benchmarks among the messages of cargo, one in a line.
fn programs(messages: &str) -> Result<Vec<Binary>> {
    let mut found = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("a message of cargo")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let of_bench =
            message["target"]["kind"].as_array().is_some_and(|k| k.contains(&"bench".into()));
        let name = text(&message["target"]["name"]);
        let program = text(&message["executable"]);
        let folder = text(&message["manifest_path"]).map(PathBuf::from);
        let folder = folder.as_deref().and_then(Path::parent);
        if let (true, Some(name), Some(program), Some(folder)) = (of_bench, name, program, folder) {
            found.push(Binary { name, program: program.into(), folder: folder.to_owned() });
        }
    }
    Ok(found)
}

impl Binary {
    /// Measures the benchmarks with `only` in their names; Criterion's files go to `home`.
    pub(super) fn measure(&self, home: &Path, only: &str, seconds: f64) -> Result<()> {
        let mut program = Command::new(&self.program);
        program.args(["--bench", "--noplot", "--quiet"]).current_dir(&self.folder);
        program.args(["--measurement-time", &seconds.to_string()]);
        program.args(["--warm-up-time", &(seconds / 2.0).to_string()]);
        if !only.is_empty() {
            program.arg(only);
        }
        program.env("CRITERION_HOME", home).stdout(Stdio::null()).stderr(Stdio::null());
        let status = program.status().with_context(|| self.program.display().to_string())?;
        ensure!(status.success(), "the benchmark '{}' failed: {status}", self.name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_told_from_other_artifacts() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/r/crates/nn/Cargo.toml","target":{"kind":["lib"],"name":"gnarl_nn"},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/r/crates/nn/Cargo.toml","target":{"kind":["bench"],"name":"step"},"executable":"/t/step-1"}
{"reason":"build-script-executed","package_id":"x"}
{"reason":"build-finished","success":true}
"#;
        let step = Binary {
            name: "step".into(),
            program: "/t/step-1".into(),
            folder: "/r/crates/nn".into(),
        };
        assert_eq!(programs(messages).unwrap(), [step]);
        assert!(programs("{").is_err());
    }
}
