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
//! Sums over neighbors are in the order of the lists whatever the ranges, and products of a row depend on that row
//! alone: embeddings do not depend on the budget, nor on which nodes are wanted, beyond the rounding of products.
//!
//! ```
//! use gnarl_common::Result;
//! use gnarl_infer::rows::Before;
//! use gnarl_infer::{Budget, Layers, run};
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
//!     fn inputs_of(&self, _: usize, _: usize, node: u32, visit: &mut dyn FnMut(usize, u32)) {
//!         visit(0, node);
//!         visit(0, node.saturating_sub(1));
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
//! run(&Sums(1000), &[(0, vec![5, 9])], &Budget::new(1 << 20), |_, nodes, rows| {
//!     found.extend(nodes.iter().zip(rows.data()).map(|(&node, &value)| (node, value)));
//!     Ok(())
//! })?;
//! assert_eq!(found, [(5, 16.0), (9, 32.0)]);
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod backwards;
mod budget;
mod engine;
pub mod export;
mod layers;
mod needed;
pub mod ranges;
pub mod rows;

pub use budget::Budget;
pub use engine::{Figures, LayerFigures, run};
pub use layers::Layers;
pub use needed::Needed;
