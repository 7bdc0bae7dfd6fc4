//! The description of a partition at a server.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use gnarl_common::folders::is_inside;
use gnarl_common::threads::pool;
use gnarl_common::{Context, Error, Result, ResultExt, fnv1a};
use gnarl_partition::{CATALOG_MANIFEST, PARTITION, PartitionManifest, verify_description};

use crate::calls::Act;
use crate::client::Client;
use crate::codec::bytes_of;
use crate::command::{self, FILES, FilePiece};
use crate::files::ServedFile;

/// Most bytes of a manifest, which is read into memory.
const LONGEST_MANIFEST: u64 = 256 << 20;

/// The description of a partition at a server.
#[derive(Clone)]
pub struct RemoteDescription {
    client: Client,
    files: Vec<ServedFile>,
    bytes: u64,
    manifest: PartitionManifest,
    /// The manifests of the partition and of the catalog, which have the checksums of all other files.
    texts: Vec<u8>,
}

impl RemoteDescription {
    /// Asks a server what its partition consists of.
    ///
    /// # Errors
    /// If the server does not reply, has no description, or one that is none.
    pub fn of(client: &Client) -> Result<Self> {
        let uri = client.uri();
        let act = Act { action: FILES, body: Vec::new() };
        let files: Vec<ServedFile> = command::read("the list of files", &client.start(act)()?)?;
        // They become paths: names that leave the folder are those of no server of ours.
        if let Some(wrong) = files.iter().find(|file| !is_inside(&file.name)) {
            return Err(Error::invalid(format!("{uri} lists a file named '{}'", wrong.name)));
        }
        let sum = files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.bytes));
        let bytes = sum.ok_or_else(|| Error::invalid(format!("{uri} lists files of no size")))?;
        let text = |name: &str| {
            let file = files.iter().find(|file| file.name == name);
            file.map(|file| text_of(client, file)).transpose()
        };
        let missing = || Error::invalid(format!("{uri} lists no {PARTITION}"));
        let mut texts = text(PARTITION)?.ok_or_else(missing)?;
        let manifest = serde_json::from_slice(&texts)
            .map_err(|e| Error::invalid(format!("{PARTITION} of {uri}: {e}")))?;
        texts.extend(text(CATALOG_MANIFEST)?.unwrap_or_default());
        Ok(Self { client: client.clone(), bytes, manifest, texts, files })
    }

    /// The manifest of the partition.
    pub fn manifest(&self) -> &PartitionManifest {
        &self.manifest
    }

    /// Returns whether the catalog of nodes is part of it.
    pub fn has_catalog(&self) -> bool {
        self.files.iter().any(|file| file.name == CATALOG_MANIFEST)
    }

    /// A number of the manifests, which have checksums of all files: it differs between descriptions.
    pub fn key(&self) -> u64 {
        fnv1a(self.texts.iter().copied())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
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
            read(&self.client, file, |piece| out.write_all(piece).at(&path))?;
        }
        // Threads of its own: those of the process would be missing in one that is forked off.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let checked = pool(threads)?.install(|| verify_description(dir));
        checked.while_doing(|| format!("fetching from {}", self.client.uri()))
    }
}

/// A manifest of a server.
fn text_of(client: &Client, file: &ServedFile) -> Result<Vec<u8>> {
    if file.bytes > LONGEST_MANIFEST {
        let ServedFile { name, bytes } = file;
        return Err(Error::invalid(format!("{}: {name} has {bytes} bytes", client.uri())));
    }
    let mut text = Vec::new();
    read(client, file, |piece| {
        text.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(text)
}

/// Reads a file of a server, a piece at a time.
fn read(
    client: &Client,
    file: &ServedFile,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut from = 0;
    while from < file.bytes {
        let batches = client.whole(FilePiece { file: file.name.clone(), from })?;
        let bytes = bytes_of(&batches)?;
        if bytes.is_empty() || bytes.len() as u64 > file.bytes - from {
            let uri = client.uri();
            let ServedFile { name, bytes } = file;
            return Err(Error::invalid(format!("{uri}: {name} ends at {from} of {bytes} bytes")));
        }
        from += bytes.len() as u64;
        write(bytes)?;
    }
    Ok(())
}
