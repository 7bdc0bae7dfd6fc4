//! Edges of a dataset as a task reads them.

use gnarl_common::Result;

/// An edge of the dataset. Endpoints are by their numbers within their node types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadEdge {
    pub row: u64,
    /// 0 for training, 1 for validation, 2 for test edges; none for edges that are not predicted.
    pub split: Option<usize>,
    pub head: u32,
    pub relation: u32,
    pub tail: u32,
    /// 0 if times are not read.
    pub time: i64,
}

/// Receives the edges of a dataset in their order.
pub(crate) type TakeEdge<'a> = dyn FnMut(ReadEdge) -> Result<()> + 'a;
