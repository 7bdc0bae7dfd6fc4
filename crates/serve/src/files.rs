//! The files that describe a partition, for clients that have no folder of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use gnarl_common::{Error, Result, ResultExt};
use gnarl_partition::{PartitionedDataset, describing_files};
use serde::{Deserialize, Serialize};

use crate::codec::bytes_batch;
use crate::command::FilePiece;

/// Bytes of a file in a reply.
const PIECE: u64 = 4 << 20;

/// A file of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedFile {
    /// Name in the folder of the partition, with slashes.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// The describing files of a partition, opened: they stay those of the parts that are served when the folder is replaced.
#[derive(Debug)]
pub(crate) struct Files(BTreeMap<String, (Mutex<File>, u64)>);

impl Files {
    /// Opens them.
    ///
    /// # Errors
    /// As [`describing_files`]; if one cannot be read.
    pub fn open(parts: &PartitionedDataset) -> Result<Self> {
        let open = |name: String| {
            let path = parts.dir().join(&name);
            let file = File::open(&path).at(&path)?;
            let bytes = file.metadata().at(&path)?.len();
            Ok((name, (Mutex::new(file), bytes)))
        };
        describing_files(parts)?.into_iter().map(open).collect::<Result<_>>().map(Self)
    }

    /// Names and sizes, ascending.
    pub fn list(&self) -> Vec<ServedFile> {
        let file = |(name, (_, bytes)): (&String, &(_, u64))| ServedFile {
            name: name.clone(),
            bytes: *bytes,
        };
        self.0.iter().map(file).collect()
    }

    /// Bytes of a file from the first of a piece on, as many as a piece has; 0 of a file that is not given.
    pub fn left(&self, piece: &FilePiece) -> u64 {
        self.0.get(&piece.file).map_or(0, |(_, bytes)| bytes.saturating_sub(piece.from).min(PIECE))
    }

    /// Reads a piece of a file; without bytes at its end.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    pub fn read(&self, piece: &FilePiece) -> Result<RecordBatch> {
        let FilePiece { file: name, from } = piece;
        let (file, bytes) = self.0.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            Error::usage(format!("the server does not give a file '{name}'"))
                .hint(format!("it gives: {}", known.join(", ")))
        })?;
        // Files have no positions beyond 2⁶³, which a client may ask for.
        let from = (*from).min(*bytes);
        let size = (bytes - from).min(PIECE);
        let mut read = vec![0; size as usize];
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let found = file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(&mut read));
        found.at(Path::new(name))?;
        bytes_batch(&read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::codec::bytes_of;

    /// A place beyond 2⁶³ was an error of the server's system.
    #[test]
    fn pieces_beyond_the_end_are_empty() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abc").unwrap();
        let files = Files(BTreeMap::from([("a".into(), (Mutex::new(file), 3))]));
        for (from, expected) in [(0, &b"abc"[..]), (2, b"c"), (3, b""), (4, b""), (u64::MAX, b"")] {
            let piece = files.read(&FilePiece { file: "a".into(), from }).unwrap();
            assert_eq!(bytes_of(&[piece]).unwrap(), expected, "{from}");
        }
    }
}
