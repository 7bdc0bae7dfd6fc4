//! Memory of this process: taken so far ([`peak_rss`], [`current_rss`], [`resident`]) and still free to take
//! ([`available`], by [`sharers`] together); and pieces of it that are used again ([`SparePages`]).

mod available;
mod pages;
mod process;

pub use available::{Available, available, gib, share_among, sharers};
pub use pages::{Pages, SparePages, Table};
pub use process::{Resident, current_rss, open_descriptors, peak_rss, resident};
