//! Memory of this process: taken so far ([`peak_rss`], [`current_rss`]) and still free to take
//! ([`available`]).

mod available;
mod process;

pub use available::{Available, available, gib};
pub use process::{current_rss, open_descriptors, peak_rss};
