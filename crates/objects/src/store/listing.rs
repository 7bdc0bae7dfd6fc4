//! The objects below an address.

use futures::TryStreamExt;
use gnarl_common::Result;
use object_store::ObjectMeta;

use crate::store::failure::{is_forbidden, within};
use crate::store::target::Target;

/// Makes sure that the bucket of `target` is there: a store says of an object in no bucket only that there is no such
/// object. Who may write need not be allowed to list.
///
/// # Errors
/// If there is no such bucket, or the store cannot be reached.
pub(crate) async fn reach(target: &Target) -> Result<()> {
    let Target { uri, path, store, limits } = target;
    let listed = async {
        match store.list(Some(path)).try_next().await {
            Err(e) if is_forbidden(&e) => Ok(()),
            Err(e) => Err(e),
            Ok(_) => Ok(()),
        }
    };
    within(limits.deadline, uri, "looking for the bucket", listed).await
}

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
