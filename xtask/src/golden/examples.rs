//! The run files under `examples`, shortened.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::cases::Case;
use super::graphs::Graph;

/// A case for each, two epochs long.
///
/// # Errors
/// A folder cannot be read.
pub fn all(repository: &Path) -> Result<Vec<Case>> {
    let root = repository.join("examples");
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let case = |file: PathBuf| {
        let name = file.strip_prefix(&root).expect("found there").with_extension("");
        let name = format!("examples/{}", name.display());
        let mut case = Case::new(&name, Graph::Plain, &["train.epochs=2", "train.eval_every=2"]);
        case.file = Some(file);
        case
    };
    // For one's own graph, which is not there.
    files.retain(|file| file != &root.join("sage.toml"));
    Ok(files.into_iter().map(case).collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "toml")
            && path.file_name().is_some_and(|name| name != "Cargo.toml")
        {
            files.push(path);
        }
    }
    Ok(())
}
