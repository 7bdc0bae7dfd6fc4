//! Events of a run for TensorBoard: records of TensorFlow's format, each an `Event` of Protocol Buffers with scalars.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gnarl_common::{Result, ResultExt};
use serde_json::Value;

use super::record::EpochRecord;

/// The beginning of the names of event files, by which TensorBoard finds them.
const PREFIX: &str = "events.out.tfevents";
/// The end of the names of those that are written here: others in the folder stay.
const SUFFIX: &str = ".gnarl";

/// The event file of a run: one event per epoch, with the numbers of its record by their paths, such as `valid/accuracy`.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Makes the event file in `folder`, in place of earlier ones.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).at(folder)?;
        Self::remove(folder)?;
        let started = now();
        let host = gethostname::gethostname().to_string_lossy().replace(['/', '\\'], "_");
        let name = format!("{PREFIX}.{}.{host}.{}{SUFFIX}", started as u64, std::process::id());
        let path = folder.join(name);
        let file = File::create(&path).at(&path)?;
        let mut events = Self { path, file };
        let mut version = timed(started, 0);
        bytes(&mut version, 3, b"brain.Event:2");
        events.write(&version)?;
        Ok(events)
    }

    /// Removes the event files of earlier runs in `folder`, if it is there.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove(folder: &Path) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        for entry in std::fs::read_dir(folder).at(folder)? {
            let path = entry.at(folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
                std::fs::remove_file(&path).at(&path)?;
            }
        }
        Ok(())
    }

    /// Appends the event of an epoch.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, record: &EpochRecord) -> Result<()> {
        let mut summary = Vec::new();
        let numbers = serde_json::to_value(record).unwrap_or_default();
        for_each_number("", &numbers, &mut |tag, value| {
            let mut scalar = Vec::new();
            bytes(&mut scalar, 1, tag.as_bytes());
            key(&mut scalar, 2, FIXED_32);
            scalar.extend_from_slice(&(value as f32).to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        });
        let mut event = timed(now(), record.epoch as u64);
        bytes(&mut event, 5, &summary);
        self.write(&event)
    }

    /// Writes a record: its length and the data, each with its checksum.
    fn write(&mut self, data: &[u8]) -> Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(data.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked(&length).to_le_bytes());
        record.extend_from_slice(data);
        record.extend_from_slice(&masked(data).to_le_bytes());
        self.file.write_all(&record).at(&self.path)
    }
}

/// Calls `each` with the numbers of a record but its epoch, by their paths.
fn for_each_number(path: &str, value: &Value, each: &mut impl FnMut(&str, f64)) {
    match value {
        Value::Object(items) => {
            for (name, value) in items.iter().filter(|(name, _)| *name != "epoch") {
                let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                for_each_number(&path, value, each);
            }
        }
        // Lists are by rank, of any number.
        Value::Number(number) => number.as_f64().into_iter().for_each(|value| each(path, value)),
        _ => {}
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The CRC-32C of `data`, rotated and shifted, so that checksums of data with checksums differ.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Wire types of Protocol Buffers.
const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH: u8 = 2;
const FIXED_32: u8 = 5;

/// An `Event` with its wall time and step.
fn timed(seconds: f64, step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    key(&mut event, 1, FIXED_64);
    event.extend_from_slice(&seconds.to_le_bytes());
    key(&mut event, 2, VARINT);
    varint(&mut event, step);
    event
}

fn key(out: &mut Vec<u8>, field: u8, wire: u8) {
    out.push(field << 3 | wire);
}

fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    key(out, field, LENGTH);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_and_numbers_are_those_of_the_formats() {
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        // Of no bytes the checksum is 0, and the mask remains.
        assert_eq!(masked(&[]), 0xa282_ead8);
        let mut out = Vec::new();
        varint(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
    }

    #[test]
    fn an_epoch_is_an_event_with_its_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let valid = [("accuracy".to_owned(), 0.5)].into();
        let record = EpochRecord { epoch: 300, loss: 0.25, valid, ..Default::default() };
        EventFile::create(dir.path()).unwrap();
        let mut events = EventFile::create(dir.path()).unwrap();
        events.append(&record).unwrap();
        let mut files = std::fs::read_dir(dir.path()).unwrap();
        let path = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none(), "earlier ones are gone");
        let mut rest = &std::fs::read(path).unwrap()[..];
        let mut records = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            let data = &rest[12..12 + length];
            assert_eq!(rest[8..12], masked(&rest[..8]).to_le_bytes());
            assert_eq!(rest[12 + length..][..4], masked(data).to_le_bytes());
            records.push(data.to_vec());
            rest = &rest[16 + length..];
        }
        assert!(records[0].ends_with(b"\x1a\x0dbrain.Event:2"));
        let event = &records[1];
        assert_eq!(event[9..12], [0x10, 0xac, 0x02], "the step");
        let scalar = |tag: &str, value: f32| {
            let mut scalar = vec![0x0a, tag.len() as u8];
            scalar.extend_from_slice(tag.as_bytes());
            scalar.push(0x15);
            scalar.extend_from_slice(&value.to_le_bytes());
            scalar
        };
        for (tag, value) in [("loss", 0.25), ("valid/accuracy", 0.5)] {
            let scalar = scalar(tag, value);
            assert!(event.windows(scalar.len()).any(|part| part == scalar), "{tag}");
        }
        assert!(!event.windows(5).any(|part| part == b"epoch"));
    }
}
