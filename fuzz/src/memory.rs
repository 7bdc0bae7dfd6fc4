//! An allocator that counts, and ends the process where a reader takes more than it may.
//!
//! A file of some kilobytes must not make a reader allocate gigabytes. libFuzzer's own limits need a sanitizer's
//! allocator, or watch the resident size, of which untouched zeros are no part; this one counts what is asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

impl Counting {
    fn take(&self, bytes: usize) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if live > LIMIT.load(Ordering::Relaxed) {
            // The message allocates too.
            LIMIT.store(usize::MAX, Ordering::Relaxed);
            eprintln!("the reader takes {live} bytes of memory, the last {bytes} at once");
            // An allocator must not unwind. libFuzzer keeps the input of a process that aborts.
            let backtrace = std::backtrace::Backtrace::force_capture();
            eprintln!("{backtrace}");
            std::process::abort();
        }
    }

    fn give(&self, bytes: usize) {
        LIVE.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call goes on to the system's allocator as it is; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: the caller keeps the contract of this very function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.take(size);
        self.give(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.give(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `work`, which may take `bytes` of memory beside what is taken already.
///
/// The process ends where it takes more.
pub fn within<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    LIMIT.store(LIVE.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    let done = work();
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    done
}
