//! The input matrix from the features or embeddings of each node type.

use gnarl_common::error::{Error, Result};
use gnarl_graph::blocks::Schema;

use super::Source;
use crate::{Activation, Init, ParamId, ParamsBuilder, Span, Tape, Var};

/// A linear map from the features of each node type to `width` values. Embeddings are that wide
/// already.
pub(super) struct Input {
    types: Vec<(String, Source)>,
    maps: Vec<Option<(ParamId, ParamId)>>,
    width: usize,
    activation: Activation,
}

impl Input {
    /// The maps' parameters are called `input.TYPE.weight` and `input.TYPE.bias`.
    pub fn new(
        schema: &Schema,
        sources: &[Source],
        width: usize,
        activation: Activation,
        params: &mut ParamsBuilder,
    ) -> Self {
        let named = schema.node_types().iter().cloned().zip(sources.iter().copied());
        let types: Vec<(String, Source)> = named.collect();
        let map = |(name, source): &(String, Source)| match source {
            Source::Embeddings => None,
            Source::Features(features) => Some((
                params.add(format!("input.{name}.weight"), *features, width, Init::XavierUniform),
                params.add(format!("input.{name}.bias"), 1, width, Init::Zeros),
            )),
        };
        let maps = types.iter().map(map).collect();
        Self { types, maps, width, activation }
    }

    /// The input rows of all types in the order of `spans`.
    pub fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        spans: &'b [Span],
        rows: &[Option<Var>],
    ) -> Result<Var> {
        let mut parts = Vec::with_capacity(self.types.len());
        for (number, (name, source)) in self.types.iter().enumerate() {
            let of = spans.iter().filter(|span| span.weight == number);
            let count: usize = of.map(|span| span.rows.len()).sum();
            let width = match source {
                Source::Features(width) => *width,
                Source::Embeddings => self.width,
            };
            let given = rows.get(number).copied().flatten();
            if count == 0 {
                parts.push(None);
                continue;
            }
            let Some(x) = given.filter(|&x| tape.shape(x) == (count, width)) else {
                let found = given.map_or((0, 0), |x| tape.shape(x));
                return Err(Error::usage(format!(
                    "node type '{name}': {found:?} rows and columns of input for {count} nodes of \
                     width {width}"
                )));
            };
            parts.push(Some(match self.maps[number] {
                Some((weight, bias)) => tape.linear(x, weight, Some(bias), self.activation),
                None => x,
            }));
        }
        Ok(tape.interleave(&parts, spans, self.width))
    }
}
