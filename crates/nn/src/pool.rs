//! Recycled buffers. A training step asks for the same sizes over and over; taking them from a
//! pool keeps the kernel from mapping and zeroing fresh pages, which otherwise costs as much as
//! the arithmetic.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use bytemuck::{Pod, Zeroable};

/// Sixteen floats on a cache line of their own: keeps every buffer aligned for vector loads.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// Largest buffer kept for reuse, unless [`keep_all`] is in effect: whole-graph inference asks for
/// a few larger ones, and never again.
const LARGEST_KEPT: usize = 256 << 20;
/// Limit of free buffers in total, in bytes, unless [`keep_all`] is in effect.
const KEPT: usize = 1 << 30;

#[derive(Default)]
struct Free {
    by_lines: HashMap<usize, Vec<Vec<Line>>>,
    bytes: usize,
    /// Number of live [`Kept`] guards.
    keepers: usize,
    /// Limits of live [`Limited`] guards, in bytes.
    limits: Vec<usize>,
}

impl Free {
    /// Returns whether a free buffer of `bytes` is kept.
    fn keeps(&self, bytes: usize) -> bool {
        match self.limits.iter().min() {
            Some(&limit) => self.bytes + bytes <= limit,
            None => self.keepers > 0 || (bytes <= LARGEST_KEPT && self.bytes + bytes <= KEPT),
        }
    }
}

static FREE: LazyLock<Mutex<Free>> = LazyLock::new(Mutex::default);

/// A buffer of at least the requested length, which returns to the pool when dropped.
pub(crate) struct Buffer(Vec<Line>);

impl Buffer {
    /// A buffer for `len` floats with arbitrary content.
    pub(crate) fn scratch(len: usize) -> Self {
        let lines = size_class(len.div_ceil(16));
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(buffer) = free.by_lines.get_mut(&lines).and_then(Vec::pop) {
            free.bytes -= lines * size_of::<Line>();
            return Self(buffer);
        }
        drop(free);
        Self(bytemuck::allocation::zeroed_vec(lines))
    }

    pub(crate) fn data(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }

    pub(crate) fn data_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = self.0.len();
        let bytes = lines * size_of::<Line>();
        if lines == 0 {
            return;
        }
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        if free.keeps(bytes) {
            free.bytes += bytes;
            free.by_lines.entry(lines).or_default().push(std::mem::take(&mut self.0));
        }
    }
}

/// Rounds up to a power of two or one of three steps between, so that mini-batches of slightly
/// different sizes share buffers and at most a quarter is wasted.
fn size_class(lines: usize) -> usize {
    if lines <= 4 {
        return lines;
    }
    let step = 1 << (lines.ilog2() - 2);
    lines.div_ceil(step) * step
}

/// A guard that keeps all buffers, whatever their size.
#[derive(Debug)]
pub struct Kept(());

/// Keeps all buffers until the guard is dropped, which pays where every step is over the whole
/// graph.
pub fn keep_all() -> Kept {
    FREE.lock().unwrap_or_else(|e| e.into_inner()).keepers += 1;
    Kept(())
}

impl Drop for Kept {
    /// The last guard returns free buffers to the system.
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        free.keepers -= 1;
        if free.keepers == 0 {
            let limits = std::mem::take(&mut free.limits);
            *free = Free { limits, ..Free::default() };
        }
    }
}

/// A guard that limits the bytes of free buffers.
#[derive(Debug)]
pub struct Limited(usize);

/// Limits free buffers to `bytes` until the guard is dropped, where memory is short. The lowest
/// limit counts.
pub fn keep_at_most(bytes: usize) -> Limited {
    trim();
    FREE.lock().unwrap_or_else(|e| e.into_inner()).limits.push(bytes);
    Limited(bytes)
}

impl Drop for Limited {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(own) = free.limits.iter().position(|limit| *limit == self.0) {
            free.limits.swap_remove(own);
        }
    }
}

/// Bytes of free buffers at the moment.
pub fn held_bytes() -> usize {
    FREE.lock().unwrap_or_else(|e| e.into_inner()).bytes
}

/// Returns all free buffers to the system.
pub fn trim() {
    let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
    let limits = std::mem::take(&mut free.limits);
    *free = Free { keepers: free.keepers, limits, ..Free::default() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_and_waste_at_most_a_quarter() {
        for lines in 1..5000 {
            let class = size_class(lines);
            assert!(class >= lines && class * 4 <= lines * 5, "{lines} -> {class}");
            assert_eq!(class, size_class(class));
        }
    }

    #[test]
    fn buffers_are_aligned_and_long_enough() {
        for len in [0, 1, 16, 17, 1000] {
            let buffer = Buffer::scratch(len);
            assert!(buffer.data().len() >= len);
            assert_eq!(buffer.data().as_ptr() as usize % 64, 0);
        }
    }
}
