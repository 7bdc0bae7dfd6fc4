//! `metrics.jsonl`: one line per epoch. A checkpoint has the checksum of those that it includes.

use gnarl_common::{Error, Result, ResultExt};

use super::RunFolder;
use super::metrics_file::MetricsFile;
use super::names::{METRICS, TENSORBOARD};
use crate::run::checkpoint::Lines;
use crate::telemetry::{EpochRecord, EventFile};

/// The epochs of a run to continue.
#[derive(Debug, Default)]
pub struct History {
    /// The lines as they are in the file.
    pub text: String,
    /// One record per line.
    pub records: Vec<EpochRecord>,
}

impl RunFolder {
    /// The first `epochs` epochs of a run to continue, after a comparison with the `lines` of its checkpoint, if it has them.
    ///
    /// # Errors
    /// If one is missing, or its line is damaged.
    pub fn history(&self, epochs: usize, lines: Option<Lines>) -> Result<History> {
        let path = self.dir.join(METRICS);
        let place = path.display();
        let text =
            if epochs > 0 { std::fs::read_to_string(&path).at(&path)? } else { String::new() };
        let hint = "the run can be started over with --restart";
        let mut records = Vec::with_capacity(epochs);
        let mut length = 0;
        let mut rest = text.split_inclusive('\n');
        for epoch in 1..=epochs {
            let line = rest.next().unwrap_or_default();
            let record: Option<EpochRecord> = serde_json::from_str(line).ok();
            let record = record.filter(|record| record.epoch == epoch).ok_or_else(|| {
                Error::invalid(format!(
                    "{place}: line {epoch}: missing epoch {epoch}, which the checkpoint includes"
                ))
                .hint(hint)
            })?;
            records.push(record);
            length += line.len();
        }
        if let Some(Lines { count, crc32 }) = lines {
            let included = text.split_inclusive('\n').take(count).map(str::len).sum();
            if crc32fast::hash(&text.as_bytes()[..included]) != crc32 {
                return Err(Error::invalid(format!(
                    "{place}: the checksum of the first {count} lines differs from the checkpoint's"
                ))
                .hint(hint));
            }
        }
        let mut text = text[..length].to_string();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(History { text, records })
    }

    /// Rewrites `metrics.jsonl` with the known epochs: after a crash it may hold lines
    /// of epochs that are trained again. So does the event file for TensorBoard.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn start_metrics(&self, history: &History) -> Result<()> {
        let History { text, records } = history;
        let begun = MetricsFile::begin(&self.dir.join(METRICS), text, records.len())?;
        *self.metrics.lock().unwrap_or_else(|e| e.into_inner()) = Some(begun);
        let Some(events) = &self.events else { return Ok(()) };
        let mut begun = EventFile::create(&self.dir.join(TENSORBOARD))?;
        records.iter().try_for_each(|record| begun.append(record))?;
        *events.lock().unwrap_or_else(|e| e.into_inner()) = Some(begun);
        Ok(())
    }

    /// Flushes all appended epochs to disk, and returns what is there; none if they are not begun.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync_metrics(&self) -> Result<Option<Lines>> {
        let path = self.dir.join(METRICS);
        let begun = self.metrics.lock().unwrap_or_else(|e| e.into_inner());
        begun.as_ref().map(|begun| begun.sync(&path)).transpose()
    }

    /// Appends an epoch to `metrics.jsonl`, and to the event file for TensorBoard.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append(&self, record: &EpochRecord) -> Result<()> {
        let path = self.dir.join(METRICS);
        if let Some(begun) = self.metrics.lock().unwrap_or_else(|e| e.into_inner()).as_mut() {
            begun.append(&path, &(record.line() + "\n"))?;
        }
        let Some(events) = &self.events else { return Ok(()) };
        let mut events = events.lock().unwrap_or_else(|e| e.into_inner());
        events.as_mut().map_or(Ok(()), |begun| begun.append(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Stages;

    #[test]
    fn history_is_read_back_up_to_the_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::join(dir.path().into());
        let record = |epoch| EpochRecord { epoch, loss: 0.1 * epoch as f64, ..Default::default() };
        folder.start_metrics(&History::default()).unwrap();
        folder.append(&record(1)).unwrap();
        let one = folder.sync_metrics().unwrap().unwrap();
        (2..=4).for_each(|epoch| folder.append(&record(epoch)).unwrap());
        folder.sync_metrics().unwrap();
        let four = folder.sync_metrics().unwrap().unwrap();
        // Killed while it wrote the fifth line.
        let path = dir.path().join(METRICS);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"epo")).unwrap();
        let three = folder.history(3, None).unwrap();
        assert_eq!(three.records, [record(1), record(2), record(3)]);
        let again = folder.history(4, Some(four)).unwrap();
        assert_eq!((again.records.len(), again.text), (4, text.clone()));
        let error = folder.history(5, Some(four)).unwrap_err().to_string();
        assert!(error.contains("line 5: missing epoch 5"), "{error}");
        // Resumed, and killed again.
        folder.start_metrics(&folder.history(1, Some(one)).unwrap()).unwrap();
        assert_eq!(folder.sync_metrics().unwrap().unwrap(), one);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), record(1).line() + "\n");
    }

    #[test]
    fn a_flipped_bit_of_an_epoch_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::join(dir.path().into());
        folder.start_metrics(&History::default()).unwrap();
        (1..=2).for_each(|epoch| {
            folder.append(&EpochRecord { epoch, loss: 0.125, ..Default::default() }).unwrap();
        });
        let lines = folder.sync_metrics().unwrap().unwrap();
        let path = dir.path().join(METRICS);
        let text = std::fs::read_to_string(&path).unwrap();
        for bit in 0..8 * text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, flipped).unwrap();
            let error = folder.history(2, Some(lines)).unwrap_err().to_string();
            assert!(error.contains(METRICS), "bit {bit}: {error}");
        }
        std::fs::write(&path, text.replace("0.125", "0.25")).unwrap();
        assert_eq!(folder.history(2, None).unwrap().records[1].loss, 0.25);
        let error = folder.history(2, Some(lines)).unwrap_err().to_string();
        assert!(error.contains("of the first 2 lines differs"), "{error}");
    }

    #[test]
    fn a_line_is_the_record_with_its_verdict() {
        let stages = Stages { compute: 0.9, ..Stages::default() };
        let record = EpochRecord { epoch: 3, seconds: 1.0, stages, ..EpochRecord::default() };
        let line = record.line();
        assert_eq!(serde_json::from_str::<EpochRecord>(&line).unwrap(), record);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["verdict"], record.verdict().to_string());
    }
}
