//! Object stores: S3, Google Cloud Storage, Azure Blob Storage, and folders that stand for one.
//!
//! **In:** a [`Uri`] such as `s3://bucket/prefix/nodes.parquet`, and files of this host. **Out:** objects that
//! are whole or not there. A file is uploaded when it is complete, in several parts at once where it is large;
//! an object has its old content until the last part has arrived. The folder of a dataset is fetched into a
//! cache on this host, whole or not at all ([`fetch`]).
//!
//! Credentials, endpoints and further settings come from the environment, by the names that the crate
//! [`object_store`] reads: `AWS_…`, `GOOGLE_…`, `AZURE_…`. Every wait has a deadline.
//!
//! ```
//! use gnarl_objects::{Remote, Uri};
//!
//! # fn main() -> gnarl_common::Result<()> {
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
//! ```

mod cache;
mod connect;
mod download;
mod failure;
mod limits;
mod listing;
mod remote;
mod target;
mod tasks;
#[cfg(test)]
mod tests;
mod upload;
mod uri;

pub use cache::{CacheSettings, fetch};
pub use remote::Remote;
pub use uri::{SCHEMES, Uri};
