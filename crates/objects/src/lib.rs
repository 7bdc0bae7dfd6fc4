//! Object stores: S3, Google Cloud Storage, Azure Blob Storage, and folders that stand for one.
//!
//! **In:** a [`Uri`] such as `s3://bucket/prefix/nodes.parquet`, and files of this host. **Out:** objects that
//! are whole or not there. A file is uploaded when it is complete, in several parts at once where it is large;
//! an object has its old content until the last part has arrived. The folder of a dataset is fetched into a
//! cache on this host, whole or not at all ([`local`]). The files of a folder that changes can be kept in a store, too
//! ([`Mirror`]).
//!
//! Requests are made by builds with the feature `cloud`; others know an address when they see one, and refuse it.
//!
//! Credentials, endpoints and further settings come from the environment, by the names that the crate
//! [object_store](https://docs.rs/object_store) reads: `AWS_…`, `GOOGLE_…`, `AZURE_…`. Every wait has a deadline.
//!
//! ```
//! # #[cfg(feature = "cloud")]
//! # fn main() -> gnarl_common::Result<()> {
//! use gnarl_objects::{Remote, Uri};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let file = dir.path().join("nodes.csv");
//! # std::fs::write(&file, "id\n7\n").unwrap();
//! let uri = format!("file://{}/bucket/nodes.csv", dir.path().display());
//! let remote = Remote::open(&Uri::parse(&uri)?)?;
//! remote.check_objects(&["nodes.csv"], false)?;
//! remote.upload_object("nodes.csv", &file, false)?;
//! assert!(remote.check_objects(&["nodes.csv"], false).is_err());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "cloud"))]
//! # fn main() {}
//! ```

#[cfg(not(feature = "cloud"))]
mod missing;
#[cfg(feature = "cloud")]
mod store;
mod uri;

#[cfg(not(feature = "cloud"))]
pub use missing::{Mirror, local, place_of, refused, working_folder};
#[cfg(feature = "cloud")]
pub use store::{
    CacheSettings, CachedFolder, Mirror, Remote, Wanted, fetch, local, place_of, working_folder,
};
pub use uri::{SCHEMES, Uri, is_uri};
