//! Parts in memory that change during an epoch, for graphs larger than memory (Armada §3; `[disaggregated]`).
//!
//! `deal/` says which parts are in memory when, `course.rs` for all epochs and the `examples.rs` of a run; `part.rs` reads
//! one, `reader.rs` one after the other, as far as `rooms.rs` has room; `loader.rs` makes the graph of an era, and
//! `window.rs` hands eras to the ranks of this process, `shelf.rs` to whoever asks.

mod course;
mod deal;
mod examples;
mod loader;
mod nodes;
mod part;
mod reader;
mod rooms;
#[cfg(feature = "serve")]
mod shelf;
mod window;

pub(crate) use course::EraCourse;
pub(crate) use deal::visits;
pub(crate) use examples::Examples;
pub(crate) use loader::{Loader, Resident};
pub(crate) use nodes::NodesInMemory;
pub(crate) use part::{LoadedPart, StoredParts};
pub(crate) use reader::Coming;
pub(crate) use rooms::Rooms;
#[cfg(feature = "serve")]
pub(crate) use shelf::{Sequel, Shelf, Wanted};
pub(crate) use window::Window;
