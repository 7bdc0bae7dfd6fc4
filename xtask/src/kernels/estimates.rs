//! Criterion's estimates in its files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Median seconds of an iteration, by the name of the benchmark.
pub(super) type Estimates = BTreeMap<String, f64>;

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

#[derive(Deserialize)]
struct Estimate {
    median: Point,
}

#[derive(Deserialize)]
struct Point {
    /// Nanoseconds.
    point_estimate: f64,
}

/// Reads the newest estimates under `home`.
pub(super) fn read(home: &Path) -> Result<Estimates> {
    let mut found = Estimates::new();
    if home.exists() {
        visit(home, &mut found)?;
    }
    Ok(found)
}

fn visit(folder: &Path, found: &mut Estimates) -> Result<()> {
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name == "new") && path.is_dir() {
            let benchmark: Benchmark = parse(&path.join("benchmark.json"))?;
            let estimate: Estimate = parse(&path.join("estimates.json"))?;
            found.insert(benchmark.full_id, estimate.median.point_estimate * 1e-9);
        } else if path.is_dir() {
            visit(&path, found)?;
        }
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(file: &Path) -> Result<T> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_found_by_the_full_name() {
        let home = tempfile::tempdir().unwrap();
        assert!(read(&home.path().join("none")).unwrap().is_empty());
        let folder = home.path().join("neighbors/labor/15_10_5/new");
        std::fs::create_dir_all(&folder).unwrap();
        let id = r#"{"group_id":"neighbors","full_id":"neighbors/labor/15,10,5"}"#;
        std::fs::write(folder.join("benchmark.json"), id).unwrap();
        let median = r#"{"mean":{"point_estimate":9.0},"median":{"point_estimate":2500000.0}}"#;
        std::fs::write(folder.join("estimates.json"), median).unwrap();
        let found = read(home.path()).unwrap();
        assert_eq!(found, Estimates::from([("neighbors/labor/15,10,5".into(), 2.5e-3)]));
        std::fs::write(folder.join("estimates.json"), "{}").unwrap();
        assert!(format!("{:#}", read(home.path()).unwrap_err()).contains("estimates.json"));
    }
}
