//! A large file as an object, in several parts at once.

use std::fs::File;
use std::io::Read;
use std::path::Path as LocalPath;

use bytes::Bytes;
use gnarl_common::{Result, ResultExt};
use object_store::{MultipartUpload, ObjectStoreExt};
use tokio::task::JoinSet;

use super::check::check;
use crate::store::failure::within;
use crate::store::limits::PARTS;
use crate::store::target::Target;
use crate::store::tasks::arrived;

/// Uploads `file`, of `size` bytes, to `target`. The object changes when the last part has arrived.
///
/// # Errors
/// If the object exists and is not to be replaced, or a request fails.
pub(super) async fn upload(
    target: &Target,
    file: &LocalPath,
    size: u64,
    replace: bool,
) -> Result<()> {
    let Target { uri, path, store, limits } = target;
    check(target, replace).await?;
    let started = store.put_multipart(path);
    let mut upload = within(limits.deadline, uri, "starting an upload", started).await?;
    let uploaded = async {
        send(target, &mut *upload, file, size).await?;
        // Stores have no conditions here: as late as possible.
        check(target, replace).await?;
        within(limits.deadline, uri, "completing an upload", upload.complete()).await
    };
    let uploaded = uploaded.await;
    if uploaded.is_err() {
        // Stores charge for parts until they are told. What failed first is what matters.
        let _ = within(limits.deadline, uri, "giving up an upload", upload.abort()).await;
    }
    uploaded.map(drop)
}

/// Sends all parts, of one size but the last: some stores demand it.
async fn send(
    target: &Target,
    upload: &mut dyn MultipartUpload,
    file: &LocalPath,
    size: u64,
) -> Result<()> {
    let limits = target.limits;
    let part = (limits.part as u64).max(size.div_ceil(PARTS));
    let mut reader = File::open(file).at(file)?;
    let mut sending = JoinSet::new();
    let mut left = size;
    while left > 0 {
        while sending.len() >= limits.concurrent {
            arrived(sending.join_next().await)?;
        }
        let mut content = vec![0; part.min(left) as usize];
        reader.read_exact(&mut content).at(file)?;
        left -= content.len() as u64;
        let sent = upload.put_part(Bytes::from(content).into());
        let uri = target.uri.clone();
        sending.spawn(async move { within(limits.deadline, &uri, "uploading a part", sent).await });
    }
    // An error drops the set, which stops the parts that are still on their way.
    while !sending.is_empty() {
        arrived(sending.join_next().await)?;
    }
    Ok(())
}
