//! The report of a run while it lasts.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gnarl_common::Result;
use gnarl_train::{EpochRecord, Recorded};

use super::write_run_report;

/// Time from the start to the first writing, and least time between two.
const PAUSE: Duration = Duration::from_secs(5);
/// Time between two writings over the time of one, if that is more: a long run's page takes longer.
const RARE: u32 = 20;

/// Rewrites the report of a run as it goes on, on a thread of its own: the run never waits for it, nor fails if it cannot be
/// written. When dropped, it writes the epochs that are not in the page yet.
#[derive(Debug)]
pub struct LiveReport {
    records: Option<Sender<EpochRecord>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveReport {
    /// Begins to write the report of the run in `folder`.
    pub fn start(folder: &Path) -> Self {
        let (records, received) = channel();
        let mut page = Page { folder: folder.into(), run: None, failed: false };
        let keep = move || keep(&received, |records| page.write(records));
        let thread = std::thread::Builder::new().name("report".into()).spawn(keep);
        if let Err(e) = &thread {
            tracing::warn!("the report is written at the end of the run only: {e}");
        }
        Self { records: Some(records), thread: thread.ok() }
    }

    /// Takes note of an epoch that has ended.
    pub fn epoch(&self, record: &EpochRecord) {
        if let Some(records) = &self.records {
            // Nobody receives it if there is no thread, of which a warning was logged.
            let _ = records.send(record.clone());
        }
    }
}

impl Drop for LiveReport {
    fn drop(&mut self) {
        self.records = None;
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, has been printed.
            let _ = thread.join();
        }
    }
}

/// Hands records to `write`, those of some time together, until the sender is gone.
fn keep(received: &Receiver<EpochRecord>, mut write: impl FnMut(Vec<EpochRecord>)) {
    let mut due = Instant::now() + PAUSE;
    let mut records = Vec::new();
    while let Ok(record) = received.recv() {
        records.push(record);
        while let Ok(record) = received.recv_timeout(due.saturating_duration_since(Instant::now()))
        {
            records.push(record);
        }
        let start = Instant::now();
        write(std::mem::take(&mut records));
        due = Instant::now() + PAUSE.max(RARE * start.elapsed());
    }
}

/// The page of a run.
struct Page {
    folder: PathBuf,
    /// None before the first epoch.
    run: Option<Recorded>,
    failed: bool,
}

impl Page {
    /// Adds epochs, and writes the page.
    fn write(&mut self, records: Vec<EpochRecord>) {
        let written = self.add(records).and_then(|run| write_run_report(&run.folder, run));
        if let Err(e) = written
            && !self.failed
        {
            tracing::warn!("the report of the epochs so far is not written: {e}");
            self.failed = true;
        }
    }

    fn add(&mut self, records: Vec<EpochRecord>) -> Result<&Recorded> {
        let run = match self.run.take() {
            Some(run) => run,
            None => {
                let mut run = Recorded::read(&self.folder)?;
                // A run that is continued has earlier epochs; the folder may have those at hand, too.
                let first = records.first().map_or(0, |record| record.epoch);
                run.history.retain(|record| record.epoch < first);
                run
            }
        };
        let run = self.run.insert(run);
        run.extend(records);
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use gnarl_config::RunConfig;

    use super::*;
    use crate::page::REPORT;

    #[test]
    fn the_page_of_a_run_that_lasts_has_its_epochs() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = RunConfig::default();
        config.dataset.path = "data/cora".into();
        std::fs::write(dir.path().join("config.toml"), config.to_toml().unwrap()).unwrap();
        let record = |epoch| EpochRecord { epoch, loss: 0.5, ..Default::default() };
        // A first epoch of an earlier process, and one that it did not save.
        let lines: String = [1, 2].map(|epoch| record(epoch).line() + "\n").concat();
        std::fs::write(dir.path().join("metrics.jsonl"), lines).unwrap();
        let live = LiveReport::start(dir.path());
        (2..=30).for_each(|epoch| live.epoch(&record(epoch)));
        drop(live);
        let page = std::fs::read_to_string(dir.path().join(REPORT)).unwrap();
        assert!(
            page.contains("epoch 30 of at most 100") && page.contains("http-equiv=\"refresh\"")
        );
        super::super::tests::check_xml(&page);
    }

    #[test]
    fn folders_that_are_gone_are_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let live = LiveReport::start(&dir.path().join("gone"));
        live.epoch(&EpochRecord { epoch: 1, ..Default::default() });
    }
}
