//! Spans, and the rank that they belong to.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::Instant;

use super::kind::{Kind, Work};
use super::recorder::{self, Ended};

/// A span that lasts until it is dropped.
#[must_use]
pub struct Span(Option<Open>);

struct Open {
    kind: Kind,
    name: Cow<'static, str>,
    start: Instant,
    work: Work,
}

impl Span {
    /// Runs `work` within the span.
    pub fn within<T>(self, work: impl FnOnce() -> T) -> T {
        let done = work();
        drop(self);
        done
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(Open { kind, name, start, work }) = self.0.take() {
            let took = start.elapsed();
            recorder::add(Ended { kind, name, start, took, work, rank: rank() });
        }
    }
}

/// A stage of a run.
pub fn stage(name: &'static str) -> Span {
    open(Kind::Stage, || name.into(), Work::default)
}

/// An operation on numbers; its work is computed only while a profile is taken.
pub fn kernel(name: &'static str, work: impl FnOnce() -> Work) -> Span {
    match SILENT.get() {
        true => Span(None),
        false => open(Kind::Kernel, || name.into(), work),
    }
}

/// Runs work of which each thread has a piece of its own: its kernels are no spans, which are those of all threads together.
pub fn without_kernels<T>(work: impl FnOnce() -> T) -> T {
    let before = SILENT.replace(true);
    let done = work();
    SILENT.set(before);
    done
}

/// A collective to which a rank contributes so many bytes.
pub fn collective(name: &str, bytes: usize) -> Span {
    open(Kind::Collective, || name.to_owned().into(), || Work { flops: 0.0, bytes: bytes as f64 })
}

fn open(kind: Kind, name: impl FnOnce() -> Cow<'static, str>, work: impl FnOnce() -> Work) -> Span {
    let open = || Open { kind, name: name(), work: work(), start: Instant::now() };
    Span(recorder::is_taken().then(open))
}

thread_local! {
    static RANK: Cell<usize> = const { Cell::new(0) };
    /// True while kernels of this thread are no spans.
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// The rank of this thread's spans; 0 unless it was set.
pub fn rank() -> usize {
    RANK.get()
}

/// Sets the rank of this thread's spans. A thread that starts others hands it on to them.
pub fn set_rank(rank: usize) {
    RANK.set(rank);
}
