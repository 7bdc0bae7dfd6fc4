//! The placeholder for embeddings without a model.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::Result;
use gnarl_nn::{Exchange, Tape, Tensor, Var};

use super::counted::Counted;
use super::whole::WholeModel;
use crate::data::edge_set::EdgeSet;

/// An uninhabited type: embeddings without a model pass no messages.
pub(crate) enum NoColumns {}

impl WholeModel for NoColumns {
    type Graph = ();

    fn exchange(&self) -> &dyn Exchange {
        match *self {}
    }

    fn counted(&self) -> &Counted {
        match *self {}
    }

    fn graph(&self) -> Arc<()> {
        match *self {}
    }

    fn without(&self, _: &EdgeSet) -> Result<Arc<()>> {
        match *self {}
    }

    fn prepare(&self, (): &()) {
        match *self {}
    }

    fn num_edges(&self, (): &()) -> usize {
        match *self {}
    }

    fn embedding_ids(&self) -> Arc<[Vec<u64>]> {
        match *self {}
    }

    fn own_nodes(&self) -> Range<usize> {
        match *self {}
    }

    fn own_rows(&self, _: &[u32]) -> Vec<u32> {
        match *self {}
    }

    fn rows(&self, _: &[Vec<u32>]) -> Vec<u32> {
        match *self {}
    }

    fn forward<'t>(
        &'t self,
        _: &mut Tape<'t>,
        (): &'t (),
        _: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        match *self {}
    }
}
