//! Comparison of runs: settings that differ, scores, curves over one another.

mod page;

use std::collections::BTreeSet;
use std::path::Path;

use gnarl_common::{Context, Result};
use gnarl_train::evaluation::Scores;
use gnarl_train::{EpochRecord, Recorded};

use crate::page::text::seconds;
use crate::page::write_to;
use crate::settings::{differing, of};

/// Runs beside one another.
#[derive(Debug)]
pub struct Comparison {
    /// The runs, each with its name: the last part of its folder's path, or all of it where two would be alike.
    pub runs: Vec<(String, Recorded)>,
    /// Settings that differ: the key, and its value in each run; empty where a run has none.
    pub settings: Vec<(String, Vec<String>)>,
    /// Results: the name of each, and its value in each run; empty where a run has none.
    pub results: Vec<(String, Vec<String>)>,
}

impl Comparison {
    /// Compares runs.
    ///
    /// # Errors
    /// If a setting has no form in TOML.
    pub fn new(runs: Vec<Recorded>) -> Result<Self> {
        let settings = runs.iter().map(|run| of(&run.config)).collect::<Result<Vec<_>>>()?;
        let settings = differing(&settings);
        let results = results(&runs);
        let names = names(&runs);
        Ok(Self { runs: names.into_iter().zip(runs).collect(), settings, results })
    }

    fn page(&self) -> String {
        let Self { runs, settings, results } = self;
        page::page(&page::Shown { runs, settings, results })
    }

    /// Writes a page to `path`, entirely or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_to(path, &self.page()).while_doing(|| "writing the comparison")
    }
}

/// Names of the runs, all different unless a run is compared with itself.
fn names(runs: &[Recorded]) -> Vec<String> {
    let last = |run: &Recorded| {
        let name = run.folder.file_name().unwrap_or(run.folder.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let short: Vec<String> = runs.iter().map(last).collect();
    match short.iter().collect::<BTreeSet<_>>().len() == short.len() {
        true => short,
        false => runs.iter().map(|run| run.folder.display().to_string()).collect(),
    }
}

/// The results of each run, by name.
fn results(runs: &[Recorded]) -> Vec<(String, Vec<String>)> {
    let row = |name: &str, of: &dyn Fn(&Recorded) -> String| {
        (name.to_string(), runs.iter().map(of).collect())
    };
    let mut rows = Vec::new();
    for (split, of) in [("test", test as fn(&Recorded) -> &Scores), ("validation", valid)] {
        let names: BTreeSet<&String> = runs.iter().flat_map(|run| of(run).keys()).collect();
        for name in names {
            let score =
                |run: &Recorded| of(run).get(name).map_or(String::new(), |v| format!("{v:.4}"));
            rows.push(row(&format!("{split} {}", name.replace('_', " ")), &score));
        }
    }
    rows.push(row("best epoch", &|run| run.summary.best_epoch.to_string()));
    rows.push(row("epochs", &epochs));
    rows.push(row("last training loss", &|run| last(run, |record| format!("{:.4}", record.loss))));
    rows.push(row("median epoch", &|run| seconds(run.summary.epoch_seconds)));
    rows
}

fn test(run: &Recorded) -> &Scores {
    &run.summary.test
}

fn valid(run: &Recorded) -> &Scores {
    &run.summary.valid
}

/// `60`, or `12 of 60` of a run that is not finished.
fn epochs(run: &Recorded) -> String {
    match run.finished {
        true => run.history.len().to_string(),
        false => format!("{} of {}", run.history.len(), run.config.train.epochs),
    }
}

fn last(run: &Recorded, text: impl Fn(&EpochRecord) -> String) -> String {
    run.history.last().map_or(String::new(), text)
}

#[cfg(test)]
mod tests {
    use gnarl_config::RunConfig;

    use super::*;

    fn run(folder: &str, rate: f32, epochs: usize) -> Recorded {
        let mut config = RunConfig::default();
        config.train.lr = rate;
        config.train.epochs = 3;
        let mut run = Recorded::new(config, folder.into());
        let scores = |value| Scores::from([("accuracy".into(), value)]);
        let record = |epoch| EpochRecord {
            epoch,
            loss: f64::from(rate),
            valid: scores(0.5),
            ..Default::default()
        };
        run.history = (1..=epochs).map(record).collect();
        run.finished = epochs == 3;
        run.summary.metric = "accuracy".into();
        run.summary.valid = scores(0.5);
        run
    }

    #[test]
    fn runs_have_their_own_values() {
        let runs = vec![run("runs/a", 0.1, 3), run("runs/<b>", 0.2, 1), run("runs/c", 0.1, 0)];
        let compared = Comparison::new(runs).unwrap();
        assert_eq!(
            compared.settings,
            [("train.lr".into(), ["0.1", "0.2", "0.1"].map(String::from).to_vec())]
        );
        let row = |name: &str| {
            compared.results.iter().find(|(found, _)| found == name).unwrap().1.clone()
        };
        assert_eq!(row("epochs"), ["3", "1 of 3", "0 of 3"]);
        assert_eq!(row("last training loss"), ["0.1000", "0.2000", ""]);
        let page = compared.page();
        crate::run::tests::check_xml(&page);
        assert!(page.contains("&lt;b&gt;") && page.contains("train.lr"), "{page}");
    }

    #[test]
    fn names_tell_runs_apart() {
        let two = [run("a/run", 0.1, 0), run("b/run", 0.1, 0)];
        assert_eq!(names(&two), ["a/run", "b/run"]);
        assert_eq!(names(&[run("a/one", 0.1, 0), run("b/two", 0.1, 0)]), ["one", "two"]);
    }
}
