//! Checksums of mapped files, compared on use.
//!
//! **In:** the values of a file and the checksum that was taken of them ([`expect`]). **Out:** an error that names the file if
//! they differ: at once for a small file; for a larger one in the background ([`in_background`]), where a comparison takes a
//! fiftieth of the time and of the disk, or when all must be known ([`finish`]). Without the background, as in processes that
//! only import the library, larger files are not compared. A file is compared once while it is mapped, and again if it was
//! written to since.
//!
//! ```
//! use gnarl_common::integrity::{self, Sealed};
//!
//! let mut file = tempfile::NamedTempFile::new()?;
//! std::io::Write::write_all(&mut file, b"values")?;
//! // SAFETY: nobody else has the file.
//! let map = std::sync::Arc::new(unsafe { memmap2::Mmap::map(file.as_file()) }?);
//! let sealed = Sealed::new(file.path().into(), 0..6, crc32fast::hash(b"valuex"));
//! let error = integrity::expect(sealed, &map).unwrap_err();
//! assert!(error.to_string().contains("checksum differs"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod queue;
mod sealed;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use memmap2::Mmap;

use crate::error::{Error, Result};
use crate::memory;
use queue::Queue;
pub use sealed::{Sealed, damaged};

/// Bytes up to which a file is compared at once.
const SMALL: u64 = 4 << 20;

/// Number of files from which on small ones are forgotten that are not mapped any more.
const MANY: usize = 1024;

/// Most bytes that are compared before a result is final: others may wait for it.
const AT_THE_END: u64 = 16 << 30;

/// The files of this process.
static FILES: LazyLock<Files> = LazyLock::new(Files::default);

#[derive(Debug, Default)]
struct Files {
    /// Those that were compared or wait for it, by their digests.
    known: Mutex<HashMap<u64, Mapped>>,
    queue: Queue,
    /// Held while files that were written to are compared: ranks of a process have the same ones.
    comparing: Mutex<()>,
    /// True once the log has a word about files that are not compared.
    told: AtomicBool,
}

/// A file and the mappings of it.
#[derive(Debug)]
struct Mapped {
    sealed: Sealed,
    maps: Vec<Weak<Mmap>>,
}

impl Mapped {
    fn is_mapped(&self) -> bool {
        self.maps.iter().any(|map| map.strong_count() > 0)
    }

    /// Returns whether it was written to while it is mapped: what happens to it later is nobody's loss.
    fn is_changed(&self) -> bool {
        self.is_mapped() && self.sealed.is_changed()
    }
}

fn known() -> MutexGuard<'static, HashMap<u64, Mapped>> {
    FILES.known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares the checksum of a small file that is mapped, unless it was compared before; that of a larger one is compared in the
/// background, or by [`finish`].
///
/// # Errors
/// If it differs, naming the file.
pub fn expect(sealed: Sealed, map: &Arc<Mmap>) -> Result<()> {
    let digest = sealed.digest();
    if let Some(Mapped { maps, .. }) = known().get_mut(&digest) {
        maps.retain(|map| map.strong_count() > 0);
        maps.push(Arc::downgrade(map));
        return Ok(());
    }
    if sealed.num_bytes() <= SMALL {
        sealed.check()?;
    } else if !FILES.queue.push(sealed.clone()) {
        return Ok(());
    }
    let mut files = known();
    if files.len() >= MANY && files.len().is_power_of_two() {
        // Larger ones are few, and may still wait.
        files.retain(|_, of| of.is_mapped() || of.sealed.num_bytes() > SMALL);
    }
    files.insert(digest, Mapped { sealed, maps: vec![Arc::downgrade(map)] });
    Ok(())
}

/// Compares the checksums of larger files that are opened from now on, on a thread of its own, until the guard is dropped.
///
/// # Errors
/// If no thread can be started.
pub fn in_background() -> Result<Background> {
    if FILES.queue.start()? {
        // What happened to the files of an earlier job is none of this one's.
        known().clear();
        FILES.told.store(false, Ordering::Relaxed);
    }
    Ok(Background(()))
}

/// Comparisons in the background.
#[derive(Debug)]
pub struct Background(());

impl Drop for Background {
    fn drop(&mut self) {
        if FILES.queue.stop() {
            // What was let go, or found to be damaged, is compared anew by the next.
            known().clear();
        }
    }
}

/// Returns whether no file is known to be damaged.
///
/// # Errors
/// If one is, naming it.
pub fn so_far() -> Result<()> {
    FILES.queue.found()
}

/// Returns whether no file is known to be damaged, and compares those anew that were written to.
///
/// # Errors
/// As [`unchanged`] and [`so_far`].
pub fn unharmed() -> Result<()> {
    unchanged()?;
    so_far()
}

/// Compares the files anew that were written to after they were opened, if there is a background: what is mapped has changed
/// with them. It takes a call of the system for each file; one with the same values is not compared again until it is written
/// to once more. Files of more than 16 GiB together are left to the background.
///
/// # Errors
/// If one has other values since, naming it.
pub fn unchanged() -> Result<()> {
    if !FILES.queue.is_wanted() {
        return Ok(());
    }
    let _turn = FILES.comparing.lock().unwrap_or_else(PoisonError::into_inner);
    let mut most = AT_THE_END;
    for (digest, sealed) in changed() {
        // As of now: it may be written to while it is read.
        let renewed = sealed.renewed();
        match most.checked_sub(sealed.num_bytes()) {
            Some(left) => {
                check_again(&sealed)?;
                most = left;
            }
            None => drop(FILES.queue.push(renewed.clone())),
        }
        if sealed.is_same() {
            renew(digest, renewed);
        }
    }
    Ok(())
}

/// The error of a file that was written to while it was mapped, and has other values since, if there is one. It is known to be
/// damaged from then on.
pub fn written_to() -> Option<Error> {
    let error = changed().iter().find_map(|(_, sealed)| check_again(sealed).err())?;
    FILES.queue.note_damage(error.clone());
    Some(error)
}

/// Files that were written to while they are mapped, with their digests.
fn changed() -> Vec<(u64, Sealed)> {
    let files = known();
    let changed = files.iter().filter(|(_, of)| of.is_changed());
    changed.map(|(digest, of)| (*digest, of.sealed.clone())).collect()
}

/// Takes a file as it is now for the one that was opened.
fn renew(digest: u64, renewed: Sealed) {
    let mut files = known();
    let Some(Mapped { maps, .. }) = files.remove(&digest) else { return };
    let known = files.entry(renewed.digest());
    known.or_insert(Mapped { sealed: renewed, maps: Vec::new() }).maps.extend(maps);
}

/// Compares a file that was written to; one that another file has replaced meanwhile is nobody's damage.
fn check_again(sealed: &Sealed) -> Result<()> {
    match sealed.check() {
        Err(error) if sealed.is_same() => {
            Err(error.hint("replace files by renaming new ones over them; go on with --resume"))
        }
        _ => Ok(()),
    }
}

/// Compares the checksums that were not compared yet before a result is final, as far as the files fit the memory that is
/// free; a word in the log says what is left.
///
/// # Errors
/// As [`finish`].
pub fn settle() -> Result<()> {
    let free = memory::available().map_or(u64::MAX, |available| available.left);
    let left = finish(free.min(AT_THE_END))?;
    if left > 0 && !FILES.told.swap(true, Ordering::Relaxed) {
        tracing::info!(
            "checksums of {} were not compared: 'gnarl inspect --verify' does",
            memory::gib(left as f64)
        );
    }
    Ok(())
}

/// Compares the checksums that were not compared yet, by all threads, as far as the files have no more than `most` bytes
/// together, and those of files that were written to. Returns the bytes that are left.
///
/// # Errors
/// If one differs, now or before, naming the file.
pub fn finish(most: u64) -> Result<u64> {
    unchanged()?;
    FILES.queue.finish(most)
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The files are those of the process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn files_that_are_gone_are_forgotten() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("values");
        std::fs::write(&path, b"values").unwrap();
        let file = std::fs::File::open(&path).unwrap();
        // SAFETY: the mapping is not read.
        let map = || Arc::new(unsafe { Mmap::map(&file) }.unwrap());
        let kept = map();
        for first in 0..3 {
            let sealed =
                Sealed::new(path.clone(), first..6, crc32fast::hash(&b"values"[first as usize..]));
            expect(sealed, &kept).unwrap();
        }
        for i in 0..4 * MANY {
            let other = dir.path().join(format!("{i}"));
            std::fs::write(&other, b"values").unwrap();
            let sealed = Sealed::new(other, 0..6, crc32fast::hash(b"values"));
            expect(sealed, &map()).unwrap();
        }
        let files = known();
        assert!(files.len() <= MANY + 1, "{}", files.len());
        assert_eq!(files.values().filter(|of| of.is_mapped()).count(), 3);
    }

    #[test]
    fn files_are_watched_while_they_are_mapped() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("values");
        std::fs::write(&path, b"values").unwrap();
        let _background = in_background().unwrap();
        let open = || {
            let file = std::fs::File::open(&path).unwrap();
            // SAFETY: the mapping is not read.
            let map = Arc::new(unsafe { Mmap::map(&file) }.unwrap());
            let sealed = Sealed::new(path.clone(), 0..6, crc32fast::hash(b"values"));
            expect(sealed, &map).unwrap();
            map
        };
        let maps = [open(), open()];
        unchanged().unwrap();
        std::fs::write(&path, b"valuex").unwrap();
        let set_time = |seconds| {
            let now = std::fs::File::options().write(true).open(&path).unwrap();
            // Clocks of file systems are coarse.
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            now.set_modified(time).unwrap();
        };
        set_time(1);
        let error = unchanged().unwrap_err().to_string();
        assert!(
            error.contains("values: checksum differs") && error.contains("--resume"),
            "{error}"
        );
        // The same values again: compared once.
        std::fs::write(&path, b"values").unwrap();
        set_time(2);
        assert_eq!(changed().len(), 1);
        unchanged().unwrap();
        assert_eq!(changed().len(), 0);
        let third = open();
        assert_eq!(known().len(), 1, "it is known as it is now");
        std::fs::write(&path, b"valuex").unwrap();
        set_time(3);
        let [first, second] = maps;
        drop((first, third));
        assert!(unchanged().is_err(), "it is mapped once more");
        drop(second);
        unchanged().unwrap();
    }
}
