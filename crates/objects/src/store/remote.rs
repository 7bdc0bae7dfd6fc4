//! Objects of a store, and the threads of requests.

use std::future::Future;
use std::path::Path as LocalPath;
use std::sync::Arc;

use gnarl_common::{Error, Kind, Result};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::{Builder, Runtime};

use crate::store::connect::connect;
use crate::store::limits::Limits;
use crate::store::listing::reach;
use crate::store::target::Target;
use crate::store::upload::check::check;
use crate::store::upload::{group, object};
use crate::uri::Uri;

/// An address in a store that is connected to. Calls block the thread.
#[derive(Debug)]
pub struct Remote {
    pub(crate) target: Target,
    runtime: Runtime,
}

impl Remote {
    /// Opens the store of `uri`, with settings of the environment. No request is made.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn open(uri: &Uri) -> Result<Self> {
        let (store, path) = connect(uri)?;
        Self::new(uri, store, path, Limits::default())
    }

    /// A place in a store of any kind.
    pub(crate) fn new(
        uri: &Uri,
        store: Arc<dyn ObjectStore>,
        path: Path,
        limits: Limits,
    ) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime =
            runtime.map_err(|e| Error::new(Kind::Io, format!("starting threads: {e}")))?;
        let target = Target { uri: uri.clone(), path, store, limits };
        Ok(Self { target, runtime })
    }

    /// The address.
    pub fn uri(&self) -> &Uri {
        &self.target.uri
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(future)
    }

    /// Makes sure that objects `names` in the folder of the address can be uploaded: none exists, unless it
    /// is to be replaced. This is asked before long work; uploads ask again.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if one is in the way; if there is no such bucket, or the store cannot be
    /// reached.
    pub fn check_objects(&self, names: &[&str], replace: bool) -> Result<()> {
        self.wait(async {
            reach(&self.target).await?;
            for name in names {
                check(&self.target.sibling(name), replace).await?;
            }
            Ok(())
        })
    }

    /// Uploads a file as the object `name` in the folder of the address. The object appears whole, or stays
    /// as it was: in one request, or, beyond 16 MiB, in several parts at once, in about 64 MiB of memory.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if it exists and is not to be replaced; if a request fails or misses its
    /// deadline.
    pub fn upload_object(&self, name: &str, file: &LocalPath, replace: bool) -> Result<()> {
        self.wait(object::upload(&self.target.sibling(name), file, replace))
    }

    /// Makes sure that a Zarr group can be uploaded to the address.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if a group is in the way and not to be replaced, or anything else is; if
    /// the store cannot be reached.
    pub fn check_group(&self, replace: bool) -> Result<()> {
        self.wait(async { group::check(&self.target, replace).await.map(drop) })
    }

    /// Uploads the Zarr group in `folder`, a file per object, several at once. `zarr.json`, which makes a
    /// group of them, is removed first and uploaded last: while an older group is replaced, there is none.
    /// After a failure there is none either, and no object of it is left.
    ///
    /// # Errors
    /// As [`Self::check_group`]; if a request fails or misses its deadline.
    pub fn upload_group(&self, folder: &LocalPath, replace: bool) -> Result<()> {
        self.wait(group::upload(&self.target, folder, replace))
    }
}
