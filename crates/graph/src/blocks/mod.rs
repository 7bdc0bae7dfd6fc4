//! Message-passing blocks: the seam between samplers, which make them, and models, which compute on
//! them.

mod around;
mod block;
mod fused;
mod schema;

pub use around::Around;
pub use block::{Block, EdgeRows, MiniBatch, NodeInfo, Transpose};
pub use fused::{FusedBatch, FusedBlock, Segment};
pub use schema::Schema;
