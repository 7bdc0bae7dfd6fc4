//! Vertex-cut parts (GLISP §III-C): each edge in one part, a node in every part that has an edge of
//! it.
//!
//! [`cut`] assigns the edges, [`write`](write::write) distributes them, and [`build`] makes each
//! part's [`VertexCutPart`].

mod build;
pub(crate) mod cut;
mod dealt;
mod degrees;
mod emit;
mod lists;
mod manifest;
mod neighbors;
mod part;
mod side;
pub(crate) mod write;

pub use manifest::{CutEdgeType, CutNodeType, TOPOLOGY, VERTEX_CUT_VERSION, VertexCutManifest};
pub use neighbors::{CutNeighbors, Neighbor};
pub use part::{InLists, TypeList, VertexCutPart};
pub use side::Direction;
