//! The files that describe a partition, for clients that have no folder of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use gnarl_common::threads::pool;
use gnarl_common::{Context, Error, Result, ResultExt, fnv1a};
use gnarl_partition::{
    CATALOG_MANIFEST, PARTITION, PartitionedDataset, describing_files, verify_description,
};
use serde::{Deserialize, Serialize};

use crate::calls::Act;
use crate::client::Client;
use crate::codec::{bytes_batch, bytes_of};
use crate::command::{self, FILES, FilePiece};

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
    pub fn open(cut: &PartitionedDataset) -> Result<Self> {
        let open = |name: String| {
            let path = cut.dir().join(&name);
            let file = File::open(&path).at(&path)?;
            let bytes = file.metadata().at(&path)?.len();
            Ok((name, (Mutex::new(file), bytes)))
        };
        describing_files(cut)?.into_iter().map(open).collect::<Result<_>>().map(Self)
    }

    /// Names and sizes, ascending.
    pub fn list(&self) -> Vec<ServedFile> {
        let file = |(name, (_, bytes)): (&String, &(_, u64))| ServedFile {
            name: name.clone(),
            bytes: *bytes,
        };
        self.0.iter().map(file).collect()
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
        let size = bytes.saturating_sub(*from).min(PIECE);
        let mut read = vec![0; size as usize];
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let found = file.seek(SeekFrom::Start(*from)).and_then(|_| file.read_exact(&mut read));
        found.at(Path::new(name))?;
        bytes_batch(&read)
    }
}

/// The description of a partition at a server.
#[derive(Clone)]
pub struct RemoteDescription {
    client: Client,
    files: Vec<ServedFile>,
    manifest: Vec<u8>,
}

impl RemoteDescription {
    /// Asks a server what its partition consists of.
    ///
    /// # Errors
    /// If the server does not reply, or has no description.
    pub fn of(client: &Client) -> Result<Self> {
        let act = Act { action: FILES, body: Vec::new() };
        let files: Vec<ServedFile> = command::read("the list of files", &client.start(act)()?)?;
        // They become paths: names that leave the folder are those of no server of ours.
        if let Some(wrong) = files.iter().find(|file| !is_inside(&file.name)) {
            let message = format!("{} lists a file named '{}'", client.uri(), wrong.name);
            return Err(Error::invalid(message));
        }
        let mut description = Self { client: client.clone(), files, manifest: Vec::new() };
        let own = description.files.iter().find(|file| file.name == PARTITION);
        let missing = || {
            let uri = description.client.uri();
            Error::invalid(format!("{uri} lists no {PARTITION}"))
        };
        let mut manifest = Vec::new();
        let write = |piece: &[u8]| {
            manifest.extend_from_slice(piece);
            Ok(())
        };
        description.read(own.ok_or_else(missing)?, write)?;
        description.manifest = manifest;
        Ok(description)
    }

    /// The partition's manifest as its server has it. Those of one partition are equal, and checksums in it differ between
    /// others.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Returns whether the catalog of nodes is part of it.
    pub fn has_catalog(&self) -> bool {
        self.files.iter().any(|file| file.name == CATALOG_MANIFEST)
    }

    /// A number of the manifest and the sizes of files, which differs between partitions.
    pub fn key(&self) -> u64 {
        let sizes = self.files.iter().flat_map(|file| file.bytes.to_le_bytes());
        fnv1a(self.manifest.iter().copied().chain(sizes))
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Writes the files below `dir`, and compares their checksums.
    ///
    /// # Errors
    /// If the server does not reply, a file cannot be written, or came damaged.
    pub fn write(&self, dir: &Path) -> Result<()> {
        for file in &self.files {
            let path = dir.join(&file.name);
            let parent = path.parent().unwrap_or(dir);
            std::fs::create_dir_all(parent).at(parent)?;
            let mut out = File::create(&path).at(&path)?;
            self.read(file, |piece| std::io::Write::write_all(&mut out, piece).at(&path))?;
        }
        // Threads of its own: those of the process would be missing in one that is forked off.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let checked = pool(threads)?.install(|| verify_description(dir));
        checked.while_doing(|| format!("fetching from {}", self.client.uri()))
    }

    /// Reads a file, a piece at a time.
    fn read(&self, file: &ServedFile, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut from = 0;
        while from < file.bytes {
            let piece = FilePiece { file: file.name.clone(), from };
            let batches = self.client.whole(piece)?;
            let bytes = bytes_of(&batches)?;
            if bytes.is_empty() || bytes.len() as u64 > file.bytes - from {
                let (uri, name) = (self.client.uri(), &file.name);
                let message = format!("{uri}: {name} ends at {from} of {} bytes", file.bytes);
                return Err(Error::invalid(message));
            }
            from += bytes.len() as u64;
            write(bytes)?;
        }
        Ok(())
    }
}

/// Returns whether a name stays in the folder that it is relative to.
fn is_inside(name: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0', ':']);
    name.split('/').all(part)
}
