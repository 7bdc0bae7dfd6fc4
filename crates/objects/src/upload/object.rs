//! A file as an object.

use std::path::Path as LocalPath;

use bytes::Bytes;
use gnarl_common::{Result, ResultExt};
use object_store::{Error as StoreError, ObjectStoreExt, PutMode, PutOptions};

use super::parts;
use crate::failure::{exists, failed, within};
use crate::remote::Target;

/// Makes sure that an object can be uploaded to `target`.
///
/// # Errors
/// If it exists and is not to be replaced, or the store cannot be reached.
pub(crate) async fn check(target: &Target, replace: bool) -> Result<()> {
    let Target { uri, path, store, limits } = target;
    let found = async {
        match store.head(path).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    };
    match within(limits.deadline, uri, "looking for the object", found).await? {
        true if !replace => Err(exists(uri)),
        _ => Ok(()),
    }
}

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
