//! Removal of objects.

use futures::{StreamExt, TryStreamExt};
use gnarl_common::Result;
use object_store::Error as StoreError;
use object_store::path::Path;

use crate::store::failure::within;
use crate::store::target::Target;

/// Removes objects; those that are not there are no error.
pub(crate) async fn remove(target: &Target, paths: Vec<Path>) -> Result<()> {
    let Target { uri, store, limits, .. } = target;
    let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
    let mut removed = store.delete_stream(paths);
    loop {
        let next = async {
            match removed.try_next().await {
                Err(StoreError::NotFound { path, .. }) => Ok(Some(Path::from(path))),
                done => done,
            }
        };
        if within(limits.deadline, uri, "removing objects", next).await?.is_none() {
            return Ok(());
        }
    }
}
