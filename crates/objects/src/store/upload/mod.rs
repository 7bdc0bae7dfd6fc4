//! Uploads: files as objects, folders as groups of them.

pub(crate) mod check;
pub(crate) mod group;
pub(crate) mod object;
mod parts;
pub(crate) mod removal;
