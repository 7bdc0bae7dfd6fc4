//! A folder as a Zarr group of objects.

use std::collections::HashSet;
use std::path::{Path as LocalPath, PathBuf};

use gnarl_common::{Error, Result, ResultExt};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStoreExt};
use tokio::task::JoinSet;

use super::removal::remove;
use super::{check as single, object};
use crate::store::failure::{exists, within};
use crate::store::listing::list;
use crate::store::target::Target;
use crate::store::tasks::arrived;

/// The object that makes a group of the others.
const MARKER: &str = "zarr.json";

/// Makes sure that a group can be uploaded to `target`: the objects of the group to be replaced.
///
/// # Errors
/// If objects are in the way, or the store cannot be reached.
pub(crate) async fn check(target: &Target, replace: bool) -> Result<Vec<Path>> {
    // An object of the group's own name, beside which there could be objects below it.
    single::check(target, false).await.map_err(|e| match e.kind() {
        gnarl_common::Kind::Usage => foreign(target),
        _ => e,
    })?;
    let found: Vec<Path> = list(target).await?.into_iter().map(|object| object.location).collect();
    if found.is_empty() {
        return Ok(found);
    }
    if !is_group(target).await? {
        return Err(foreign(target));
    }
    match replace {
        true => Ok(found),
        false => Err(exists(&target.uri)),
    }
}

fn foreign(target: &Target) -> Error {
    Error::usage(format!("{}: exists and is not a Zarr group", target.uri))
        .hint("choose another --out, or remove its objects")
}

/// Uploads the group in `folder` to `target`.
///
/// # Errors
/// As [`check`]; if a request fails.
pub(crate) async fn upload(target: &Target, folder: &LocalPath, replace: bool) -> Result<()> {
    let mut names = Vec::new();
    files(folder, "", &mut names)?;
    let old = check(target, replace).await?;
    if !old.is_empty() {
        // Objects of two groups would pass for one.
        remove(target, vec![target.child(MARKER).path]).await?;
    }
    let sent = send(target, folder, &names).await;
    let new: HashSet<Path> = names.iter().map(|name| target.child(name).path).collect();
    match sent {
        Ok(()) => {
            let gone = old.into_iter().filter(|path| !new.contains(path)).collect();
            remove(target, gone).await
        }
        Err(e) => {
            // Neither group is whole. What failed first is what matters.
            let all = old.into_iter().chain(new).collect::<HashSet<_>>();
            let _ = remove(target, all.into_iter().collect()).await;
            Err(e)
        }
    }
}

/// Uploads the files `names` of `folder`, several at once; the marker is the last.
async fn send(target: &Target, folder: &LocalPath, names: &[String]) -> Result<()> {
    let mut sending = JoinSet::new();
    for name in names.iter().filter(|name| *name != MARKER) {
        while sending.len() >= target.limits.concurrent {
            arrived(sending.join_next().await)?;
        }
        let (to, file) = (target.child(name), folder.join(name));
        sending.spawn(async move { object::upload(&to, &file, true).await });
    }
    while !sending.is_empty() {
        arrived(sending.join_next().await)?;
    }
    object::upload(&target.child(MARKER), &folder.join(MARKER), true).await
}

/// True if the objects below `target` are a Zarr group.
async fn is_group(target: &Target) -> Result<bool> {
    let Target { uri, store, limits, .. } = target;
    let marker = target.child(MARKER).path;
    let read = async {
        match store.get(&marker).await {
            Ok(found) => found.bytes().await.map(Some),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    };
    let text = within(limits.deadline, uri, "reading zarr.json", read).await?;
    let metadata: Option<serde_json::Value> =
        text.and_then(|text| serde_json::from_slice(&text).ok());
    Ok(metadata.is_some_and(|metadata| metadata["node_type"] == "group"))
}

/// The files of `folder` and of folders below it, by names with slashes that begin with `prefix`.
fn files(folder: &LocalPath, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).at(folder)? {
        entries.push(entry.at(folder)?.path());
    }
    entries.sort();
    for path in entries {
        let path: PathBuf = path;
        let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
        match path.is_dir() {
            true => files(&path, &format!("{name}/"), found)?,
            false => found.push(name),
        }
    }
    Ok(())
}
