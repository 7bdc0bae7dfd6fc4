//! Edge prediction: classification or regression of edges, from the embeddings of both endpoints
//! (DistDGLv2, section 3.1).

mod divide;
mod evaluate;
mod labels;
mod leakage;
#[cfg(feature = "serve")]
mod parts;
mod predict;
mod reader;
mod scoring;
mod setup;
mod splits;
mod targets;

pub(crate) use divide::{divide, message_form};
#[cfg(feature = "serve")]
pub(crate) use parts::open_parts;
pub(crate) use setup::open;
