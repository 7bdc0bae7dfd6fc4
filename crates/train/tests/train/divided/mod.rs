//! Training on parts, here and behind servers: the losses and scores of training on the whole graph.

mod averaging;
mod common;
mod edge_tasks;
mod edges;
mod heterogeneous;
mod homogeneous;
mod links;
