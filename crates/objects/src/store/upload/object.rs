//! A file as an object.

use std::path::Path as LocalPath;

use bytes::Bytes;
use gnarl_common::{Result, ResultExt};
use object_store::{Error as StoreError, PutMode, PutOptions};

use super::check::check;
use super::parts;
use crate::store::failure::{failed, within};
use crate::store::target::Target;

/// Uploads `file` to `target`.
///
/// # Errors
/// As [`check`]; if a request fails.
pub(crate) async fn upload(target: &Target, file: &LocalPath, replace: bool) -> Result<()> {
    let size = std::fs::metadata(file).at(file)?.len();
    if size > target.limits.part as u64 {
        return parts::upload(target, file, size, replace).await;
    }
    let content = Bytes::from(std::fs::read(file).at(file)?);
    if replace {
        return put(target, content, PutMode::Overwrite).await?.map_err(|e| lost(target, &e));
    }
    match put(target, content.clone(), PutMode::Create).await? {
        // The store has no conditions.
        Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
            check(target, false).await?;
            put(target, content, PutMode::Overwrite).await?.map_err(|e| lost(target, &e))
        }
        done => done.map_err(|e| lost(target, &e)),
    }
}

/// Puts an object in one request: the store's answer, or an error after the deadline.
async fn put(target: &Target, content: Bytes, mode: PutMode) -> Result<object_store::Result<()>> {
    let Target { uri, path, store, limits } = target;
    let request = async {
        let options = PutOptions::from(mode);
        Ok(store.put_opts(path, content.into(), options).await.map(drop))
    };
    within(limits.deadline, uri, "uploading", request).await
}

fn lost(target: &Target, e: &StoreError) -> gnarl_common::Error {
    failed(&target.uri, "uploading", e)
}
