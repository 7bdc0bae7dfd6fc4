//! Files whose checksums are yet to be compared.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::sealed::Sealed;
use crate::error::{Error, Kind, Result};

/// Pauses in the background for each unit of work: a fiftieth of the time is worked.
const PAUSES: u32 = 49;
/// Longest pause: a piece may have waited for a slow disk.
const LONGEST: Duration = Duration::from_secs(5);

/// Files that wait, in the order in which they were opened.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Sealed>,
    damage: Option<Error>,
    /// Guards that want the background.
    wanted: usize,
    is_running: bool,
    /// True while the background is at a file, which does not wait then.
    is_hashing: bool,
    /// Those who finish the queue themselves, and files they are at.
    finishing: usize,
    in_hand: usize,
}

impl State {
    /// Returns whether the background is to work.
    fn is_wanted(&self) -> bool {
        self.wanted > 0 && self.finishing == 0
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file, if the background is wanted.
    pub fn push(&self, sealed: Sealed) -> bool {
        let mut state = self.lock();
        if state.wanted == 0 {
            return false;
        }
        state.waiting.push_back(sealed);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Starts the background, if it does not run. Returns whether nobody wanted it before.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(&'static self) -> Result<bool> {
        let mut state = self.lock();
        if !state.is_running {
            let thread = std::thread::Builder::new().name("checksums".into());
            thread.spawn(|| self.run()).map_err(|e| {
                Error::new(Kind::Limit, format!("cannot start a thread for checksums: {e}"))
            })?;
            state.is_running = true;
        }
        if state.wanted == 0 {
            // Damage of an earlier job's files is none of this one's.
            state.damage = None;
        }
        state.wanted += 1;
        Ok(state.wanted == 1)
    }

    /// Returns whether anybody wants the background.
    pub fn is_wanted(&self) -> bool {
        self.lock().wanted > 0
    }

    /// Ends the background when nobody wants it any more, which is returned; files that wait then are let go.
    pub fn stop(&self) -> bool {
        let mut state = self.lock();
        state.wanted -= 1;
        let is_last = state.wanted == 0;
        if is_last {
            state.waiting.clear();
        }
        drop(state);
        self.changed.notify_all();
        is_last
    }

    /// The damage that was found.
    ///
    /// # Errors
    /// If there is some.
    pub fn found(&self) -> Result<()> {
        self.lock().damage.clone().map_or(Ok(()), Err)
    }

    /// See [`finish`](super::finish).
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self, most: u64) -> Result<u64> {
        let mut state = self.lock();
        state.finishing += 1;
        self.changed.notify_all();
        // The background gives the file back that it is at.
        let given_back = self.changed.wait_while(state, |state| state.is_hashing);
        drop(given_back.unwrap_or_else(PoisonError::into_inner));
        self.check_waiting(most);
        // Others may be at files that are this one's, too.
        let mut state = self.lock();
        state.finishing -= 1;
        self.changed.notify_all();
        let state = self.changed.wait_while(state, |state| state.in_hand > 0);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match &state.damage {
            Some(damage) => Err(damage.clone()),
            None => Ok(state.waiting.iter().map(Sealed::num_bytes).sum()),
        }
    }

    /// Compares waiting files that have no more than `most` bytes together; larger ones stay.
    fn check_waiting(&self, mut most: u64) {
        loop {
            let mut state = self.lock();
            let fits = |sealed: &Sealed| sealed.num_bytes() <= most;
            let Some(place) = state.waiting.iter().position(fits) else { return };
            let Some(sealed) = state.waiting.remove(place) else { return };
            state.in_hand += 1;
            drop(state);
            most -= sealed.num_bytes();
            self.note(&sealed, sealed.check());
            self.lock().in_hand -= 1;
            self.changed.notify_all();
        }
    }

    /// Notes damage of a file that is still the one that was opened.
    fn note(&self, sealed: &Sealed, checked: Result<()>) {
        if let Err(error) = checked
            && sealed.is_there()
        {
            self.note_damage(error);
        }
    }

    /// Notes damage; the first that is found counts.
    pub fn note_damage(&self, error: Error) {
        self.lock().damage.get_or_insert(error);
    }

    /// Compares one file after the other, with pauses, while that is wanted.
    fn run(&self) {
        while let Some(sealed) = self.next() {
            let checked = self.check_slowly(&sealed).transpose();
            let is_left = checked.is_none();
            if let Some(checked) = checked {
                self.note(&sealed, checked);
            }
            let mut state = self.lock();
            state.is_hashing = false;
            if is_left && state.wanted > 0 {
                state.waiting.push_front(sealed);
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next file, once there is one; none when the background ends.
    fn next(&self) -> Option<Sealed> {
        let mut state = self.lock();
        loop {
            if state.wanted == 0 {
                state.is_running = false;
                return None;
            }
            let next = if state.is_wanted() { state.waiting.pop_front() } else { None };
            if next.is_some() {
                state.is_hashing = true;
                return next;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Compares the checksum of a file with pauses; none if it is wanted at once, or not at all.
    fn check_slowly(&self, sealed: &Sealed) -> Result<Option<()>> {
        let mut reader = sealed.reader()?;
        let mut crc = crc32fast::Hasher::new();
        let mut left = sealed.num_bytes();
        while left > 0 {
            let start = Instant::now();
            left -= reader.hash_piece(left, &mut crc)?;
            let pause = (PAUSES * start.elapsed()).min(LONGEST);
            let paused =
                self.changed.wait_timeout_while(self.lock(), pause, |state| state.is_wanted());
            if !paused.unwrap_or_else(PoisonError::into_inner).0.is_wanted() {
                return Ok(None);
            }
        }
        sealed.compare(crc).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LENGTH: usize = 5 << 20;

    fn sealed(dir: &Path, name: &str, bytes: &[u8], crc32: u32) -> Sealed {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        Sealed::new(path, 0..bytes.len() as u64, crc32)
    }

    fn queue() -> &'static Queue {
        Box::leak(Box::default())
    }

    #[test]
    fn a_flipped_bit_is_found_by_whoever_finishes() {
        let dir = tempfile::tempdir().unwrap();
        let queue = queue();
        let mut bytes = vec![7; LENGTH];
        let crc32 = crc32fast::hash(&bytes);
        assert!(!queue.push(sealed(dir.path(), "none", &bytes, 1)), "nobody compares it");
        queue.start().unwrap();
        queue.push(sealed(dir.path(), "whole", &bytes, crc32));
        assert_eq!(queue.finish(u64::MAX).unwrap(), 0);
        bytes[LENGTH / 2] ^= 4;
        queue.push(sealed(dir.path(), "flipped", &bytes, crc32));
        let error = queue.finish(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("flipped: checksum differs"), "{error}");
        assert!(queue.found().is_err());
        assert!(queue.stop());
        queue.start().unwrap();
        queue.found().unwrap();
        assert!(queue.stop());
    }

    #[test]
    fn files_that_were_replaced_are_nobodys_damage() {
        let dir = tempfile::tempdir().unwrap();
        let queue = queue();
        queue.start().unwrap();
        let bytes = vec![7; LENGTH];
        queue.push(sealed(dir.path(), "removed", &bytes, crc32fast::hash(&bytes)));
        queue.push(sealed(dir.path(), "replaced", &bytes, crc32fast::hash(&bytes)));
        std::fs::remove_file(dir.path().join("removed")).unwrap();
        std::fs::write(dir.path().join("new"), vec![8; LENGTH + 1]).unwrap();
        std::fs::rename(dir.path().join("new"), dir.path().join("replaced")).unwrap();
        assert_eq!(queue.finish(u64::MAX).unwrap(), 0);
        queue.stop();
    }

    #[test]
    fn files_that_were_made_anew_at_the_same_place_are_nobodys_damage() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = vec![7; LENGTH];
        // Many file systems give the number of a removed file to the next one.
        for _ in 0..20 {
            let file = sealed(dir.path(), "again", &bytes, crc32fast::hash(&bytes));
            std::thread::sleep(Duration::from_millis(12));
            std::fs::remove_file(dir.path().join("again")).unwrap();
            std::fs::write(dir.path().join("again"), [1, 2, 3]).unwrap();
            assert!(!file.is_there() && !file.is_changed());
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_that_were_written_to_are_damaged() {
        use std::io::{Seek, SeekFrom, Write};

        let dir = tempfile::tempdir().unwrap();
        let queue = queue();
        queue.start().unwrap();
        let bytes = vec![7; LENGTH];
        let whole = sealed(dir.path(), "written", &bytes, crc32fast::hash(&bytes));
        assert!(!whole.is_changed());
        queue.push(whole.clone());
        let path = dir.path().join("written");
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(LENGTH as u64 / 2)).unwrap();
        file.write_all(&[8]).unwrap();
        // Clocks of file systems are coarse.
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert!(whole.is_there() && whole.is_changed());
        let error = queue.finish(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("written: checksum differs"), "{error}");
        queue.stop();
    }

    #[test]
    fn the_background_finds_it_and_can_be_hurried() {
        let dir = tempfile::tempdir().unwrap();
        let queue = queue();
        queue.start().unwrap();
        let bytes = vec![7; LENGTH];
        queue.push(sealed(dir.path(), "whole", &bytes, crc32fast::hash(&bytes)));
        queue.push(sealed(dir.path(), "flipped", &bytes, 1));
        assert!(queue.finish(u64::MAX).is_err());
        queue.stop();

        let alone = self::queue();
        alone.start().unwrap();
        alone.push(sealed(dir.path(), "alone", &bytes, 1));
        let start = Instant::now();
        while alone.found().is_ok() {
            assert!(start.elapsed() < Duration::from_secs(60), "nothing was found");
            std::thread::sleep(Duration::from_millis(5));
        }
        alone.stop();
    }
}
