//! The record of the rows that an inference kept.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use gnarl_common::staging::AtomicFile;
use gnarl_common::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

use crate::rows::Kept;

/// Hint at the remedy of damage.
pub(crate) const ANEW: &str = "delete the folder to begin anew";

/// The rows of a rank that are on disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The inference, as described by all that rows depend on.
    pub inference: String,
    /// The layer that is being computed.
    pub at: usize,
    /// Rows of each type of that layer, and of the one before.
    pub layers: BTreeMap<usize, Vec<Kept>>,
}

impl Record {
    /// Reads a record: a line of JSON, and one with its checksum, which those of earlier versions lack.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(path: &Path) -> Result<Self> {
        let damaged = |why: String| Error::invalid(format!("{}: {why}", path.display())).hint(ANEW);
        let text = std::fs::read_to_string(path).at(path)?;
        let (line, checksum) = text.split_once('\n').unwrap_or((&text, ""));
        let found = format!("{:08x}\n", crc32fast::hash(line.as_bytes()));
        if !checksum.is_empty() && checksum != found {
            return Err(damaged("the record of rows is damaged: its checksum differs".into()));
        }
        serde_json::from_str(line).map_err(|e| damaged(e.to_string()))
    }

    /// Writes the record in place of the one before.
    ///
    /// # Errors
    /// If the disk is full or fails.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self)
            .map_err(|e| Error::invalid(format!("the record of rows cannot be written: {e}")))?;
        let mut file = AtomicFile::create(path)?;
        writeln!(file, "{text}\n{:08x}", crc32fast::hash(text.as_bytes())).at(path)?;
        file.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Piece;

    #[test]
    fn damage_of_a_record_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank-0.json");
        let piece = Piece { bytes: 800, crc32: 77 };
        let kept = Kept { width: 4, pieces: vec![piece] };
        let layers = BTreeMap::from([(1, vec![kept])]);
        let record = Record { inference: "of a test".into(), at: 1, layers };
        record.write(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, flipped).unwrap();
            let text = Record::read(&path).unwrap_err().to_string();
            assert!(text.contains("rank-0.json"), "bit {bit}: {text}");
        }
        let (line, _) = whole.split_at(whole.iter().position(|&byte| byte == b'\n').unwrap());
        std::fs::write(&path, line).unwrap();
        assert_eq!(Record::read(&path).unwrap().layers, record.layers);
    }
}
