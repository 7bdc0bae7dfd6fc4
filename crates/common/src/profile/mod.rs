//! Spans of the time of a process, recorded while a profile is taken.
//!
//! **In:** spans that begin and end on threads of ranks ([`stage`], [`kernel`], [`collective`]), with the work done in them.
//! **Out:** a [`Profile`]: the first spans, each with its thread, and sums over all of them. While none is taken ([`Taking`]), a
//! span is the load of a flag. A profile has the spans of the whole process, whatever runs in it.
//!
//! ```
//! use gnarl_common::profile::{self, Kind, Taking, Work};
//!
//! let taking = Taking::start(100).expect("no other is taken");
//! profile::stage("sample").within(|| std::thread::yield_now());
//! drop(profile::kernel("matrix product", || Work { flops: 2e9, bytes: 1e6 }));
//! let profile = taking.finish();
//! assert_eq!(profile.spans.len(), 2);
//! assert_eq!((profile.sums[1].kind, profile.sums[1].work.flops), (Kind::Kernel, 2e9));
//! ```

mod kind;
mod recorder;
mod span;

pub use kind::{Kind, Work};
pub use recorder::{Profile, Recorded, Sum, Taking, Thread};
pub use span::{Span, collective, kernel, rank, set_rank, stage, without_kernels};
