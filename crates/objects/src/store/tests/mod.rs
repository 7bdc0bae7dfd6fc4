//! Transfers with stores in memory: whole, or as it was.

mod cache;
mod faulty;
mod groups;
mod mirrors;
mod objects;
mod place;

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::Result;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::store::Remote;
use crate::store::limits::Limits;
use crate::uri::Uri;

/// A file of 10,000 bytes has ten parts.
const LIMITS: Limits = Limits { part: 1000, concurrent: 3, deadline: Duration::from_millis(300) };

/// The address `text` in a store.
fn remote(text: &str, store: Arc<dyn ObjectStore>) -> Remote {
    let uri = Uri::parse(text).unwrap();
    let path = Path::parse(uri.path()).unwrap();
    Remote::new(&uri, store, path, LIMITS).unwrap()
}

/// The content of an object of the store, none if there is no object.
fn content(remote: &Remote, path: &str) -> Option<Vec<u8>> {
    let read = async {
        let found = remote.target.store.get(&Path::from(path)).await.ok();
        Ok(match found {
            Some(found) => found.bytes().await.ok().map(Vec::from),
            None => None,
        })
    };
    remote.wait(read).unwrap()
}

/// Puts an object into the store.
fn put(remote: &Remote, path: &str, content: &[u8]) {
    let put = async {
        let content = content.to_vec().into();
        remote.target.store.put(&Path::from(path), content).await.unwrap();
        Ok(())
    };
    remote.wait(put).unwrap();
}

/// The error of an upload, as text.
fn refused(done: Result<()>, code: u8) -> String {
    let error = done.unwrap_err();
    assert_eq!(error.exit_code(), code, "{error}");
    error.to_string()
}
