//! Memory of this process: taken so far ([`peak_rss`], [`current_rss`], [`resident`]) and still free to take
//! ([`available`]).

mod available;
mod process;

pub use available::{Available, available, gib};
pub use process::{Resident, current_rss, open_descriptors, peak_rss, resident};
