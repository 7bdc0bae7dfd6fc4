//! Layer-wise inference (GLISP §III-D): every node's embedding, in bounded memory.
//!
//! In: a model over a graph as [`Layers`], one layer at a time, and the nodes whose embeddings are wanted. Out: their
//! embeddings, in ascending order of nodes, handed over range by range.
//!
//! A layer is computed once for each node that a later layer reads, not once for each path to a seed: the nodes of each
//! layer are found backwards from the wanted ones ([`Needed`]). They are computed in [`ranges`] that are bounded by
//! edges and by nodes, the inputs of a range being gathered while the range before is computed. Between two layers rows
//! are in memory, or in a file of a scratch folder where they would exceed the [`Budget`] ([`rows`]).
//!
//! Where the rows before are in files beyond the memory for their pages, sums are made by [sweeps](Sweeper) over them.
//!
//! Nodes are computed, and their rows kept, by number or in another [`order`]. Several ranks compute the nodes they own,
//! and fetch before each layer the rows that they read of the others ([`Peers`]).
//!
//! Sums over neighbors are in the order of the lists whatever the ranges, and products of a row depend on that row
//! alone: embeddings do not depend on the budget, nor on which nodes are wanted, beyond the rounding of products.
//!
//! ```
//! use gnarl_common::Result;
//! use gnarl_infer::rows::Before;
//! use gnarl_infer::{Budget, Inference, Layers};
//! use gnarl_nn::Tensor;
//!
//! /// Adds up the values of a node and of the one before it, twice. The first values are the numbers of nodes.
//! struct Sums(u32);
//!
//! impl Layers for Sums {
//!     type Inputs = Vec<f32>;
//!     type Scratch = ();
//!
//!     fn num_layers(&self) -> usize {
//!         2
//!     }
//!
//!     fn num_nodes(&self) -> Vec<usize> {
//!         vec![self.0 as usize]
//!     }
//!
//!     fn inputs_of(
//!         &self,
//!         _: usize,
//!         _: usize,
//!         nodes: &[u32],
//!         visit: &mut dyn FnMut(usize, u32),
//!     ) -> Result<()> {
//!         nodes.iter().flat_map(|&node| [node, node.saturating_sub(1)]).for_each(|v| visit(0, v));
//!         Ok(())
//!     }
//!
//!     fn num_inputs(&self, _: usize, _: usize, _: u32) -> usize {
//!         2
//!     }
//!
//!     fn range_bytes(&self, _: usize, _: usize, _: u32) -> usize {
//!         12
//!     }
//!
//!     fn gather(&self, _: usize, _: usize, nodes: &[u32], before: Option<&Before>, _: &mut ()) -> Result<Vec<f32>> {
//!         let both: Vec<u32> = nodes.iter().flat_map(|&v| [v, v.saturating_sub(1)]).collect();
//!         match before {
//!             Some(before) => Ok(before.gather(0, &both)?.data().to_vec()),
//!             None => Ok(both.iter().map(|&v| v as f32).collect()),
//!         }
//!     }
//!
//!     fn compute(&self, _: usize, inputs: Vec<f32>) -> Result<Tensor> {
//!         let sums: Vec<f32> = inputs.chunks(2).map(|pair| pair[0] + pair[1]).collect();
//!         Ok(Tensor::from_vec(sums.len(), 1, sums))
//!     }
//! }
//!
//! let mut found = Vec::new();
//! let inference = Inference::within(&Budget::new(1 << 20));
//! inference.run(&Sums(1000), &[(0, vec![5, 9])], |_, nodes, rows| {
//!     found.extend(nodes.iter().zip(rows.data()).map(|(&node, &value)| (node, value)));
//!     Ok(())
//! })?;
//! assert_eq!(found, [(5, 16.0), (9, 32.0)]);
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod backwards;
mod bits;
mod budget;
mod copied;
mod engine;
pub mod export;
mod figures;
mod journal;
mod layers;
mod needed;
pub mod order;
mod pass;
mod peers;
mod places;
pub mod ranges;
mod record;
pub mod rows;
mod sweep;

pub use budget::Budget;
pub use engine::{Inference, Parts};
pub use figures::{Figures, Hub, LayerFigures};
pub use journal::LayerFolder;
pub use layers::Layers;
pub use needed::Needed;
pub use peers::{EvenOwners, Owners, PartOwners, Peers};
pub use places::Places;
pub use sweep::{SweepMemory, Sweeper, Sweeps};
