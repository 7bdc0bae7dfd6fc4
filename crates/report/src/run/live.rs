//! The report of a run while it lasts.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gnarl_common::Result;
use gnarl_train::{EpochRecord, Recorded};

use super::write_run_report;

/// Time from the start to the first writing, and least time between two.
const PAUSE: Duration = Duration::from_secs(5);
/// Time between two writings over the time of one, if that is more: a long run's page takes longer.
const RARE: u32 = 20;

/// Rewrites the report of a run as it goes on, on a thread of its own: epochs never wait for it, nor does the run fail if it
/// cannot be written.
#[derive(Debug)]
pub struct LiveReport {
    events: Option<Sender<Event>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveReport {
    /// Begins to write the report of the run in `folder`.
    pub fn start(folder: &Path) -> Self {
        let (events, received) = channel();
        let mut page = Page { folder: folder.into(), run: None, failed: false };
        let keep = move || keep(&received, |records, stopped| page.write(records, stopped));
        let thread = std::thread::Builder::new().name("report".into()).spawn(keep);
        if let Err(e) = &thread {
            tracing::warn!("the report is written at the end of the run only: {e}");
        }
        Self { events: Some(events), thread: thread.ok() }
    }

    /// Takes note of an epoch that has ended.
    pub fn epoch(&self, record: &EpochRecord) {
        self.send(Event::Epoch(Box::new(record.clone())));
    }

    /// Ends the report of a run that has ended. Nothing more is written of a run that is `finished`, whose report is
    /// written as a whole; of another one the page says that the run ended before its end.
    pub fn end(self, finished: bool) {
        if !finished {
            self.send(Event::Stopped);
        }
    }

    fn send(&self, event: Event) {
        if let Some(events) = &self.events {
            // Nobody receives it if there is no thread, of which a warning was logged.
            let _ = events.send(event);
        }
    }
}

/// News of the run.
#[derive(Debug)]
enum Event {
    Epoch(Box<EpochRecord>),
    /// It ended before it was finished.
    Stopped,
}

impl Drop for LiveReport {
    fn drop(&mut self) {
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, has been printed.
            let _ = thread.join();
        }
    }
}

/// Hands records to `write`, those of some time together, until the run has ended; `true` with the last ones of a run that
/// is not finished.
fn keep(received: &Receiver<Event>, mut write: impl FnMut(Vec<EpochRecord>, bool)) {
    let mut due = Instant::now() + PAUSE;
    let mut records = Vec::new();
    loop {
        let event = match records.is_empty() {
            true => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => received.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match event {
            Ok(Event::Epoch(record)) => records.push(*record),
            Ok(Event::Stopped) => return write(records, true),
            Err(RecvTimeoutError::Timeout) => {
                let start = Instant::now();
                write(std::mem::take(&mut records), false);
                due = Instant::now() + PAUSE.max(RARE * start.elapsed());
            }
            // Whoever dropped the sender writes a report with all results, if any.
            Err(RecvTimeoutError::Disconnected) => return,
        }
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
    /// Adds epochs, and writes the page, the last one of a run that is `stopped`. No page is begun without epochs.
    fn write(&mut self, records: Vec<EpochRecord>, stopped: bool) {
        if records.is_empty() && self.run.is_none() {
            return;
        }
        let written = self.add(records, stopped).and_then(|run| write_run_report(&run.folder, run));
        if let Err(e) = written
            && !self.failed
        {
            tracing::warn!("the report of the epochs so far is not written: {e}");
            self.failed = true;
        }
    }

    fn add(&mut self, records: Vec<EpochRecord>, stopped: bool) -> Result<&Recorded> {
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
        run.stopped = stopped;
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use gnarl_config::RunConfig;

    use super::*;
    use crate::page::REPORT;

    #[test]
    fn the_page_of_a_run_that_was_stopped_has_its_epochs() {
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
        live.end(false);
        let page = std::fs::read_to_string(dir.path().join(REPORT)).unwrap();
        assert!(page.contains("ended after epoch 30 of at most 100"));
        assert!(!page.contains("http-equiv"), "it changes no more");
        super::super::tests::check_xml(&page);
        // A run that lasts.
        let mut run = Recorded::read(dir.path()).unwrap();
        run.extend([record(3)]);
        write_run_report(dir.path(), &run).unwrap();
        let page = std::fs::read_to_string(dir.path().join(REPORT)).unwrap();
        assert!(page.contains("epoch 3 of at most 100") && page.contains("http-equiv=\"refresh\""));
        super::super::tests::check_xml(&page);
    }

    #[test]
    fn a_finished_run_has_no_page_of_its_epochs() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), RunConfig::default().to_toml().unwrap())
            .unwrap();
        let live = LiveReport::start(dir.path());
        live.epoch(&EpochRecord { epoch: 1, ..Default::default() });
        live.end(true);
        assert!(!dir.path().join(REPORT).exists());
        // Nor one that ended before its first epoch.
        LiveReport::start(dir.path()).end(false);
        assert!(!dir.path().join(REPORT).exists());
    }

    #[test]
    fn folders_that_are_gone_are_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let live = LiveReport::start(&dir.path().join("gone"));
        live.epoch(&EpochRecord { epoch: 1, ..Default::default() });
        live.end(false);
    }
}
