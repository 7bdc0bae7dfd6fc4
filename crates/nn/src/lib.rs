//! Tensors, a tape of differentiable operations and the kernels of message passing.
//!
//! In: blocks from a sampler ([`gnarl_graph::blocks::Block`]), features ([`Tensor`] or [`SparseRows`]) and
//! parameters ([`Params`], one flat buffer). Out: logits, a loss, and a flat gradient of the same
//! length as the parameters.
//!
//! ```
//! use gnarl_common::rng::Key;
//! use gnarl_nn::{Activation, Init, Mode, ParamsBuilder, Tape, Tensor};
//!
//! let mut builder = ParamsBuilder::new(Key::new(1));
//! let w = builder.add("w", 3, 2, Init::XavierUniform);
//! let params = builder.build();
//! let mut grads = vec![0.0; params.len()];
//!
//! let mut tape = Tape::new(&params, Mode::train(Key::new(2)));
//! let x = tape.dense(Tensor::from_vec(2, 3, vec![1.0, 0.0, 2.0, 0.5, 1.0, -1.0]));
//! let logits = tape.linear(x, w, None, Activation::None);
//! let loss = tape.cross_entropy(logits, &[0, 1], &[1, 0], None, 2.0);
//! assert!(tape.value(loss).data()[0] > 0.0);
//! tape.backward(loss, &mut grads).unwrap();
//! assert!(grads.iter().any(|&g| g != 0.0));
//! ```
//!
//! Every result is bitwise the same whatever the number of threads: work is split into chunks of
//! fixed size, and partial results are added in order. Operations run on the rayon pool they are
//! called from.

pub mod decoders;
pub mod exchange;
pub mod heads;
mod kernel;
mod lists;
pub mod losses;
pub mod metrics;
mod mixing;
pub mod models;
pub mod ops;
pub mod optim;
pub mod params;
pub mod pool;
mod relations;
pub mod sparse;
pub mod state;
pub mod tape;
pub mod tensor;

pub use exchange::{Exchange, Routes, heads_in};
pub use kernel::precision::Precision;
pub use lists::{EdgeLists, Lists};
pub use ops::activation::Activation;
pub use ops::attend::EdgeAttention;
pub use ops::gat::Gat;
pub use ops::spmm::Reduce;
pub use params::{Init, ParamId, ParamSpec, Params, ParamsBuilder};
pub use relations::{Homogeneous, RelBlock, Span};
pub use sparse::SparseRows;
pub use tape::{Mode, Tape, Var};
pub use tensor::Tensor;
