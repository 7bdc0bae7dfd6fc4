//! Objects as files of a folder, several ranges at once.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path as LocalPath, PathBuf};

use bytes::Bytes;
use gnarl_common::{Error, Kind, Result, ResultExt};
use object_store::{Error as StoreError, GetOptions, ObjectMeta};
use tokio::task::JoinSet;

use crate::store::failure::within;
use crate::store::target::Target;
use crate::store::tasks::arrived;

/// Objects and the names of their files, with slashes.
pub(crate) type Objects = [(String, ObjectMeta)];

/// Writes `objects` below `target` as files of `folder`, which exists.
///
/// # Errors
/// If a request fails, an object changes meanwhile, or the disk is full.
pub(crate) async fn download(target: &Target, objects: &Objects, folder: &LocalPath) -> Result<()> {
    let mut receiving = JoinSet::new();
    for (name, meta) in objects {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).at(parent)?;
        }
        let file = File::create(&path).at(&path)?;
        file.set_len(meta.size).at(&path)?;
        let mut start = 0;
        while start < meta.size {
            let end = meta.size.min(start + target.limits.part as u64);
            while receiving.len() >= target.limits.concurrent {
                arrived(receiving.join_next().await)?;
            }
            let range = Piece { name: name.clone(), meta: meta.clone(), range: start..end };
            receiving.spawn(receive(target.clone(), range, path.clone()));
            start = end;
        }
    }
    while !receiving.is_empty() {
        arrived(receiving.join_next().await)?;
    }
    Ok(())
}

/// A range of an object.
struct Piece {
    name: String,
    meta: ObjectMeta,
    range: Range<u64>,
}

/// Fetches a piece into its place in a file.
async fn receive(target: Target, piece: Piece, path: PathBuf) -> Result<()> {
    let Piece { name, meta, range } = piece;
    let uri = target.uri.child(&name);
    let changed = || {
        Error::new(Kind::Io, format!("{uri}: changed while it was fetched"))
            .hint("try again when it is written no more")
    };
    let request = async {
        // Pieces of two versions would make a file that never was.
        let options = GetOptions {
            if_match: meta.e_tag.clone(),
            range: Some(range.clone().into()),
            ..GetOptions::default()
        };
        match target.store.get_opts(&meta.location, options).await {
            Err(StoreError::Precondition { .. }) => Ok(None),
            Err(e) => Err(e),
            Ok(found) => found.bytes().await.map(Some),
        }
    };
    let fetched = within(target.limits.deadline, &uri, "fetching", request).await?;
    let content: Bytes = fetched.ok_or_else(changed)?;
    if content.len() as u64 != range.end - range.start {
        return Err(changed());
    }
    let mut file = File::options().write(true).open(&path).at(&path)?;
    file.seek(SeekFrom::Start(range.start)).at(&path)?;
    file.write_all(&content).at(&path)
}
