//! Runs from the configuration to the summary: one program for all of them, which is linked once.

mod auto;
mod averaging;
mod bench;
mod disaggregated;
mod diverged;
#[cfg(feature = "serve")]
mod divided;
mod edge_features;
mod edges;
mod evaluating;
mod heterogeneous;
mod heterogeneous_links;
mod link_encoder;
mod links;
mod precision;
mod prepared;
mod profile;
mod read_ahead;
mod registry;
mod regression;
mod support;
mod tensor;
mod times;
mod walks;
