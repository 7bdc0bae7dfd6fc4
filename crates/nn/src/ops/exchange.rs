//! Exchanges between ranks as operations: the gradient takes the inverse exchange.

use gnarl_common::Result;

use crate::exchange::{Exchange, Routes};
use crate::tape::Gradients;
use crate::{Tape, Tensor, Var};

impl<'b> Tape<'b> {
    /// [`Exchange::split`] of `x`.
    ///
    /// # Errors
    /// If a rank fails; [`Tape::backward`] likewise.
    pub fn split(&mut self, exchange: &'b dyn Exchange, x: Var) -> Result<Var> {
        let cols = self.shape(x).1;
        let y = exchange.split(self.value(x))?;
        Ok(self.push(y, self.needs_grad(x), move |grads, grad| {
            add_or_fail(grads, x, exchange.gather(&grad, cols));
        }))
    }

    /// [`Exchange::gather`] of `x`, this rank's columns of `cols`.
    ///
    /// # Errors
    /// As [`Tape::split`].
    pub fn gather(&mut self, exchange: &'b dyn Exchange, x: Var, cols: usize) -> Result<Var> {
        let y = exchange.gather(self.value(x), cols)?;
        Ok(self.push(y, self.needs_grad(x), move |grads, grad| {
            add_or_fail(grads, x, exchange.split(&grad));
        }))
    }

    /// [`Exchange::all_rows`] of `x`.
    ///
    /// # Errors
    /// As [`Tape::split`].
    pub fn all_rows(&mut self, exchange: &'b dyn Exchange, x: Var) -> Result<Var> {
        let y = exchange.all_rows(self.value(x))?;
        Ok(self.push(y, self.needs_grad(x), move |grads, grad| {
            add_or_fail(grads, x, exchange.sum_rows(&grad));
        }))
    }

    /// [`Exchange::sum_heads`] of `x`. Each rank that has a head uses its sum for columns of its own,
    /// so that the gradient is the sum of theirs.
    ///
    /// # Errors
    /// As [`Tape::split`].
    pub fn sum_heads(
        &mut self,
        exchange: &'b dyn Exchange,
        x: Var,
        cols: usize,
        heads: usize,
    ) -> Result<Var> {
        let y = exchange.sum_heads(self.value(x), cols, heads)?;
        Ok(self.push(y, self.needs_grad(x), move |grads, grad| {
            add_or_fail(grads, x, exchange.sum_heads(&grad, cols, heads));
        }))
    }

    /// [`Exchange::fetch`] of `x`.
    ///
    /// # Errors
    /// As [`Tape::split`].
    pub fn fetch_rows(
        &mut self,
        exchange: &'b dyn Exchange,
        x: Var,
        routes: &'b Routes,
    ) -> Result<Var> {
        let y = exchange.fetch(self.value(x), routes)?;
        Ok(self.push(y, self.needs_grad(x), move |grads, grad| {
            add_or_fail(grads, x, exchange.give_back(&grad, routes));
        }))
    }
}

fn add_or_fail(grads: &mut Gradients<'_>, x: Var, found: Result<Tensor>) {
    match found {
        Ok(grad) => grads.add(x, grad),
        Err(error) => grads.fail(error),
    }
}
