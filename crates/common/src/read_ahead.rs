//! Reads of mapped files at random places, many at a time: a thread that touches a page that is not in memory waits for
//! the disk, which serves many such reads in the time of a few.

use std::ops::Range;
use std::sync::Mutex;

use rayon::ThreadPool;
use rayon::prelude::*;

/// Reads that wait for the disk at a time: a virtual disk served 39,900 of 4 KiB a second at depth 32, 58,200 at 64 and 59,800 at
/// 128.
pub const READS: usize = 64;
/// Bytes of a page; larger pages are read once all the same.
const PAGE: usize = 4096;
/// Looks for the pool before all is read by one thread.
const TRIES: usize = 10_000;
/// Ranges that one thread reads one after the other.
pub const GRAIN: usize = 8;

/// Reads a value of each page of `count` ranges of `values`, so that reads soon after find them in memory; ranges end at the
/// end of the values. Returns when all are read. Pages of many ranges may be gone again before they are used: the system
/// gives new ones a part of the memory only.
pub fn bring<T: Copy + Sync>(
    values: &[T],
    count: usize,
    range: &(dyn Fn(usize) -> Range<usize> + Sync),
) {
    let step = (PAGE / size_of::<T>().max(1)).max(1);
    let touch = |i: usize| {
        let range = range(i);
        let range = range.start..range.end.min(values.len());
        let pages = range.clone().step_by(step).chain(range.clone().next_back());
        pages.for_each(|at| _ = std::hint::black_box(values[at]));
    };
    install(|| (0..count).into_par_iter().with_min_len(GRAIN).for_each(touch));
}

/// Runs `f`, whose parallel loops have as many threads as reads may wait for the disk.
pub fn install<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    match readers() {
        Some(readers) => readers.install(f),
        None => f(),
    }
}

/// The threads that wait for the disk; none if the system starts no more.
fn readers() -> Option<&'static ThreadPool> {
    /// Those of a process. One that is forked off has none of the threads it was forked from, whose pool stays behind.
    static POOL: Mutex<Option<(u32, Option<&'static ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    // Held for a moment only, but by somebody who is missing if that was the moment of a fork: not waited for without end.
    let tries =
        std::iter::repeat_with(|| POOL.try_lock().inspect_err(|_| std::thread::yield_now()));
    let mut known = tries.take(TRIES).find_map(Result::ok)?;
    match *known {
        Some((of, pool)) if of == process => pool,
        _ => {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(READS);
            let pool = builder.thread_name(|i| format!("read-{i}")).build().ok();
            let pool = pool.map(|pool| &*Box::leak(Box::new(pool)));
            *known = Some((process, pool));
            pool
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_range_is_read_once() {
        let asked = AtomicUsize::new(0);
        let values = vec![0u32; 10_000];
        bring(&values, 1000, &|i| {
            asked.fetch_add(i + 1, Ordering::Relaxed);
            // Empty, within a page, over several, beyond the end.
            [3..3, 5..9, 100..5000, 9_990..20_000][i % 4].clone()
        });
        assert_eq!(asked.into_inner(), 1000 * 1001 / 2);
        bring(&[] as &[f32], 3, &|_| 0..7);
    }
}
