//! The allocator: that of the system, or mimalloc in a process that only runs a command.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use mimalloc::MiMalloc;

/// The variable that asks for mimalloc.
const VARIABLE: &CStr = c"GNARL_ALLOCATOR";

const UNKNOWN: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;

/// The allocator of this process, chosen when it first allocates.
static CHOSEN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The system's allocator, which is whole in a process that was forked off: mimalloc has locks that a thread of the parent
/// may have held, as when it began or ended, and a child then waits for ever. Data loaders fork. Commands have a process of
/// their own, and take mimalloc as the binary does.
struct Chosen;

#[global_allocator]
static ALLOCATOR: Chosen = Chosen;

impl Chosen {
    fn is_mimalloc() -> bool {
        match CHOSEN.load(Ordering::Relaxed) {
            UNKNOWN => choose(),
            chosen => chosen == MIMALLOC,
        }
    }
}

/// Name of the allocator of this process.
pub fn name() -> &'static str {
    if Chosen::is_mimalloc() { "mimalloc" } else { "system" }
}

/// Chooses by the environment, without memory of its own.
#[cold]
fn choose() -> bool {
    // SAFETY: the name is a string of C. The first allocation is that of the interpreter's thread that imports the module,
    // while nothing here changes the environment; the value is read at once.
    let value = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    // SAFETY: a value that is not null is a string of C.
    let is_mimalloc = !value.is_null() && unsafe { CStr::from_ptr(value) } == c"mimalloc";
    CHOSEN.store(if is_mimalloc { MIMALLOC } else { SYSTEM }, Ordering::Relaxed);
    is_mimalloc
}

// SAFETY: each method is that of one of two allocators, and it is the same one for as long as the process lives: the choice
// is made before the first memory is handed out, and kept.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe {
            match Self::is_mimalloc() {
                true => MiMalloc.alloc(layout),
                false => System.alloc(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe {
            match Self::is_mimalloc() {
                true => MiMalloc.alloc_zeroed(layout),
                false => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; the memory is of the same allocator.
        unsafe {
            match Self::is_mimalloc() {
                true => MiMalloc.dealloc(memory, layout),
                false => System.dealloc(memory, layout),
            }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; the memory is of the same allocator.
        unsafe {
            match Self::is_mimalloc() {
                true => MiMalloc.realloc(memory, layout, size),
                false => System.realloc(memory, layout, size),
            }
        }
    }
}
