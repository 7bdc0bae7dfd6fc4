//! Edge prediction: classification or regression of edges, from the embeddings of both endpoints
//! (DistDGLv2, section 3.1).

mod endpoints;
mod evaluate;
mod labels;
mod leakage;
mod predict;
mod reader;
mod scoring;
mod setup;
mod splits;
mod targets;

pub(crate) use setup::open;
