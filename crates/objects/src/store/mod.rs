//! Requests to stores.

mod cache;
mod connect;
mod download;
mod failure;
mod limits;
mod listing;
mod local;
mod mirror;
mod place;
mod remote;
mod target;
mod tasks;
#[cfg(test)]
mod tests;
mod upload;
mod versions;

pub use cache::{CacheSettings, CachedFolder, Wanted, fetch};
pub use local::{local, place_of};
pub use mirror::{Mirror, working_folder};
pub use remote::Remote;
