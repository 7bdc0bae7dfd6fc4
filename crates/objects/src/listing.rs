//! The objects below an address.

use futures::TryStreamExt;
use gnarl_common::Result;
use object_store::ObjectMeta;

use crate::failure::within;
use crate::remote::Target;

/// The objects below `target`, at any depth.
///
/// # Errors
/// If the store cannot be reached.
pub(crate) async fn list(target: &Target) -> Result<Vec<ObjectMeta>> {
    let Target { uri, path, store, limits } = target;
    let mut found = Vec::new();
    let mut stream = store.list(Some(path));
    let doing = "listing the objects";
    while let Some(object) = within(limits.deadline, uri, doing, stream.try_next()).await? {
        found.push(object);
    }
    Ok(found)
}
