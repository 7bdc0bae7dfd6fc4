//! Objects in the way of an upload.

use gnarl_common::Result;
use object_store::{Error as StoreError, ObjectStoreExt};

use crate::store::failure::{exists, within};
use crate::store::target::Target;

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
