//! The choice of a run's folder, given existing ones.

use std::path::{Path, PathBuf};

use gnarl_common::staging::is_temporary;
use gnarl_common::{Error, Result, ResultExt};

use super::begin::Begin;
use super::names::{CONFIG, LOCK, SUMMARY, WRITER};
use crate::run::checkpoint::CHECKPOINT;

/// State of a candidate folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Empty or without a run.
    Free,
    /// A run that reached a checkpoint and did not finish.
    Unfinished,
    /// A finished run.
    Finished,
}

/// Contents of a place, on this host or in a store.
pub(super) enum Contents {
    Nothing,
    File,
    /// Files and folders of these names.
    Folder(Vec<String>),
}

/// The contents of a place on this host.
pub(super) fn on_disk(dir: &Path) -> Result<Contents> {
    if !dir.exists() {
        return Ok(Contents::Nothing);
    }
    if !dir.is_dir() {
        return Ok(Contents::File);
    }
    let entries = std::fs::read_dir(dir).at(dir)?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(Contents::Folder(names.collect()))
}

/// The folder of a run that is to be in `dir`, where `at` tells the contents of places. Runs are kept: a new one goes to
/// the first free name of `dir`, `dir-2`, `dir-3` and so on; one that continues or starts over is the last of them.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the last is unfinished and a new run is to begin, or if the folder
/// holds something other than a run.
pub(super) fn choose(
    dir: &Path,
    begin: Begin,
    at: impl Fn(&Path) -> Result<Contents>,
) -> Result<PathBuf> {
    let first = at(dir)?;
    if state(dir, &first)? == State::Free {
        return Ok(dir.into());
    }
    let (mut last, mut contents) = (dir.to_path_buf(), first);
    for number in 2.. {
        let next = numbered(dir, number);
        let there = at(&next)?;
        if let Contents::Nothing = there {
            return match (begin, state(&last, &contents)?) {
                (Begin::Fresh, State::Finished) => Ok(next),
                (Begin::Fresh, State::Unfinished) => {
                    Err(Error::usage(format!("{}: holds an unfinished run", last.display())).hint(
                        "continue with --resume, start over with --restart, or set output.dir",
                    ))
                }
                _ => Ok(last),
            };
        }
        (last, contents) = (next, there);
    }
    Ok(last)
}

/// `dir` with a number appended to its name.
fn numbered(dir: &Path, number: usize) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(format!("-{number}"));
    name.into()
}

/// The folders of runs for `dir` on this host, in order.
pub(super) fn all(dir: &Path) -> Vec<PathBuf> {
    let numbers = (2..).map(|number| numbered(dir, number));
    let folders = std::iter::once(dir.to_path_buf()).chain(numbers);
    folders.take_while(|folder| folder.exists()).collect()
}

/// The state of a place, given what is there.
fn state(dir: &Path, contents: &Contents) -> Result<State> {
    let refuse = |holds: &str| {
        Err(Error::usage(format!("output.dir: {} {holds}", dir.display()))
            .hint("name a folder for the run alone, such as runs/first"))
    };
    let names = match contents {
        Contents::Nothing => return Ok(State::Free),
        Contents::File => return refuse("is a file"),
        Contents::Folder(names) => names,
    };
    let has = |name: &str| names.iter().any(|other| other == name);
    for (marker, kind) in [("dataset.json", "a dataset"), ("partition.json", "a partition")] {
        if has(marker) {
            return refuse(&format!("holds {kind}, not a run"));
        }
    }
    // A lock and half-written files alone are leftovers of a run that was killed before it began.
    let begun =
        |name: &String| ![LOCK, WRITER].contains(&name.as_str()) && !is_temporary(Path::new(name));
    match names.iter().any(begun) {
        false => Ok(State::Free),
        true if !has(CONFIG) => refuse("holds other files than those of a run"),
        true if has(SUMMARY) => Ok(State::Finished),
        true if has(CHECKPOINT) => Ok(State::Unfinished),
        true => Ok(State::Free),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(dir: &Path, files: &[&str]) {
        std::fs::create_dir_all(dir).unwrap();
        files.iter().for_each(|file| std::fs::write(dir.join(file), "").unwrap());
    }

    #[test]
    fn finished_runs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let chosen = |begin| choose(&run, begin, on_disk).unwrap();
        assert_eq!(chosen(Begin::Fresh), run);
        // Killed before its configuration was complete, and before its first checkpoint.
        make(&run, &[super::super::LOCK, "config.toml.tmp-a1B2c3"]);
        assert_eq!(chosen(Begin::Fresh), run);
        make(&run, &[CONFIG]);
        assert_eq!(chosen(Begin::Fresh), run);
        make(&run, &[CHECKPOINT, SUMMARY]);
        let second = dir.path().join("run-2");
        assert_eq!(chosen(Begin::Fresh), second);
        assert_eq!((chosen(Begin::Restart), chosen(Begin::Resume)), (run.clone(), run.clone()));
        make(&second, &[CONFIG, CHECKPOINT]);
        assert_eq!((chosen(Begin::Restart), chosen(Begin::Resume)), (second.clone(), second));
        let error = choose(&run, Begin::Fresh, on_disk).unwrap_err().to_string();
        assert!(error.contains("run-2: holds an unfinished run"), "{error}");
    }

    #[test]
    fn folders_of_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (name, file, says) in [
            ("data", "dataset.json", "a dataset"),
            ("parts", "partition.json", "a partition"),
            ("work", "thesis.tex", "other files than those of a run"),
        ] {
            let dir = dir.path().join(name);
            make(&dir, &[file]);
            for begin in [Begin::Fresh, Begin::Restart] {
                let error = choose(&dir, begin, on_disk).unwrap_err();
                assert_eq!(error.exit_code(), 2);
                assert!(error.to_string().contains(says), "{error}");
            }
        }
        let error = choose(&dir.path().join("work/thesis.tex"), Begin::Fresh, on_disk).unwrap_err();
        assert!(error.to_string().contains("is a file"), "{error}");
    }
}
