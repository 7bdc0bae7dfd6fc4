//! Folders of a store, read by ranges.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gnarl_common::{Error, FileRange, Kind, Place, Result};
use object_store::{Error as StoreError, GetOptions, ObjectMeta};
use tokio::task::JoinSet;

use super::failure::{failed, is_lasting, silent};
use super::remote::Remote;
use super::target::Target;

/// Most bytes of a request.
const PIECE: usize = 4 << 20;
/// Requests at once: edge buckets are many small ranges. With [`PIECE`], 64 MiB of memory.
const CONCURRENT: usize = 16;
/// Pause before a request is made again, doubled each time.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The objects below an address, as they were when it was opened.
///
/// A request that fails is made again until its deadline: a store that is away for a while holds up its readers.
#[derive(Debug)]
pub(crate) struct RemotePlace {
    remote: Remote,
    objects: HashMap<String, ObjectMeta>,
}

/// A piece of a range: an object, and bytes of it.
struct Piece {
    meta: ObjectMeta,
    range: Range<u64>,
    /// Where the bytes go: number of the range, and position there.
    to: (usize, usize),
}

impl RemotePlace {
    /// The `objects` of `remote`, by name.
    pub fn new(remote: Remote, objects: Vec<(String, ObjectMeta)>) -> Self {
        Self { remote, objects: objects.into_iter().collect() }
    }

    fn target(&self) -> &Target {
        &self.remote.target
    }

    fn meta(&self, file: &str) -> Result<&ObjectMeta> {
        self.objects.get(file).ok_or_else(|| {
            Error::new(Kind::Io, format!("{}: there is no such object", self.path_of(file)))
        })
    }

    /// The pieces of all `ranges`.
    fn pieces(&self, ranges: &[FileRange<'_>]) -> Result<Vec<Piece>> {
        let most = self.target().limits.part.min(PIECE);
        let mut pieces = Vec::new();
        for (number, range) in ranges.iter().enumerate() {
            let meta = self.meta(range.file)?;
            let len = range.out.len();
            let size = meta.size;
            if range.start + len as u64 > size {
                let path = self.path_of(range.file);
                let message = format!("{path}: {size} bytes end before {len} from {}", range.start);
                return Err(Error::new(Kind::Io, message));
            }
            pieces.extend((0..len).step_by(most).map(|at| {
                let first = range.start + at as u64;
                let end = first + most.min(len - at) as u64;
                Piece { meta: meta.clone(), range: first..end, to: (number, at) }
            }));
        }
        Ok(pieces)
    }
}

impl Place for RemotePlace {
    fn path_of(&self, file: &str) -> String {
        self.target().uri.child(file).to_string()
    }

    fn size(&self, file: &str) -> Result<u64> {
        Ok(self.meta(file)?.size)
    }

    fn read(&self, ranges: &mut [FileRange<'_>]) -> Result<Vec<u32>> {
        let pieces = self.pieces(ranges)?;
        self.remote.wait(async {
            let mut receiving = JoinSet::new();
            let mut left = pieces.into_iter();
            loop {
                while receiving.len() < CONCURRENT
                    && let Some(piece) = left.next()
                {
                    receiving.spawn(receive(self.target().clone(), piece));
                }
                let Some(received) = receiving.join_next().await else { return Ok(()) };
                let ended = |e| Error::new(Kind::Io, format!("a transfer ended early: {e}"));
                let ((number, at), content) = received.map_err(ended)??;
                ranges[number].out[at..at + content.len()].copy_from_slice(&content);
            }
        })?;
        Ok(ranges.iter().map(|range| crc32fast::hash(range.out)).collect())
    }
}

/// Fetches a piece; again and again until the deadline, if what fails may pass.
async fn receive(target: Target, piece: Piece) -> Result<((usize, usize), Bytes)> {
    let uri = target.uri.child(&name_of(&target, &piece.meta));
    let start = Instant::now();
    let mut pause = PAUSE;
    let mut last: Option<Error> = None;
    loop {
        let options = GetOptions {
            // Pieces of two versions would make a file that never was.
            if_match: piece.meta.e_tag.clone(),
            range: Some(piece.range.clone().into()),
            ..GetOptions::default()
        };
        let request = async {
            let found = target.store.get_opts(&piece.meta.location, options).await?;
            found.bytes().await
        };
        let left = target.limits.deadline.saturating_sub(start.elapsed());
        let error = match tokio::time::timeout(left, request).await {
            Ok(Ok(content)) if content.len() as u64 == piece.range.end - piece.range.start => {
                return Ok((piece.to, content));
            }
            Ok(Ok(_) | Err(StoreError::Precondition { .. })) => {
                let message = format!("{uri}: changed since it was opened");
                return Err(Error::new(Kind::Io, message)
                    .hint("parts are written once: run again when it is written no more"));
            }
            // What a folder of this host says is so.
            Ok(Err(error)) if is_lasting(&error) || uri.scheme() == "file" => {
                return Err(failed(&uri, "reading", &error));
            }
            Ok(Err(error)) => failed(&uri, "reading", &error),
            // The last answer says more than that there was none since.
            Err(_) => {
                return Err(last.unwrap_or_else(|| silent(target.limits.deadline, &uri, "reading")));
            }
        };
        if start.elapsed() + pause > target.limits.deadline {
            return Err(error);
        }
        tracing::warn!("{error}; trying again in {} ms", pause.as_millis());
        last = Some(error);
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Name of an object below `target`.
fn name_of(target: &Target, meta: &ObjectMeta) -> String {
    let parts = meta.location.prefix_match(&target.path).into_iter().flatten();
    parts.map(|part| part.as_ref().to_string()).collect::<Vec<_>>().join("/")
}
