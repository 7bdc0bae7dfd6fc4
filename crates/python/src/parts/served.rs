//! Opening of partitioned datasets, with clients of the servers of their parts.

use std::fs;
use std::path::Path;
use std::time::Duration;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_loader::{LoaderGraph, PartsOptions};
use gnarl_objects::{CacheSettings, CachedFolder};
use gnarl_partition::PARTITION;
use gnarl_serve::{Access, find_description, read_token};

use super::Parts;

/// Bytes of memory for features that servers sent, unless others are given.
const CACHE: u64 = 256 << 20;

/// The hint for servers that want another token.
const TOKEN_HINT: &str = "token_file names the file with the server's token";

/// The settings of connections to servers.
fn access(parts: &Parts) -> Result<Access> {
    let deadline = Duration::try_from_secs_f64(parts.deadline).ok().filter(|time| !time.is_zero());
    let certificate = parts.certificate.as_ref();
    Ok(Access {
        token: parts.token_file.as_deref().map(read_token).transpose()?,
        certificate: certificate.map(|path| fs::read(path).at(path)).transpose()?,
        deadline: deadline.ok_or_else(|| {
            Error::usage("invalid deadline: expected a positive number of seconds")
        })?,
    })
}

/// Opens the partition of some servers, whose description is fetched into the cache of this host.
pub fn connect(parts: &Parts, batches: bool) -> Result<LoaderGraph> {
    let description = find_description(&parts.servers, &access(parts)?, TOKEN_HINT)?;
    let settings = CacheSettings::of_environment()?;
    let key = description.key();
    let folder = CachedFolder {
        address: &parts.servers.join(", "),
        name: &format!("partition-{key:016x}"),
        marker: PARTITION,
        bytes: description.bytes(),
    };
    let folder = folder.fetch(&settings, |place| description.write(place))?;
    open(&folder, parts, batches)
}

/// Opens the partition in a folder.
pub fn open(path: &Path, parts: &Parts, batches: bool) -> Result<LoaderGraph> {
    let options = PartsOptions {
        servers: parts.servers.clone(),
        access: access(parts)?,
        cache: parts.cache.unwrap_or(CACHE),
        batches,
    };
    LoaderGraph::open_parts(path, &options)
}
