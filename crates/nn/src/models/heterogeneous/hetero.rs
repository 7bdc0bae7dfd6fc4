//! A homogeneous layer per edge type.

use gnarl_common::error::{Error, Result};
use gnarl_graph::blocks::Schema;

use super::Source;
use super::slices::{HeteroSlices, WholeRelations};
use super::stack::{HeteroLayer, HeteroStack};
use crate::models::relation_layer::RelationLayer;
use crate::models::stack::After;
use crate::models::{ModelConfig, gat, gin, sage};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, RelBlock, Tape, Var};

/// Every edge type passes messages by a layer of its own (`model.relation_layer`); a node's
/// messages over several edge types are combined by `model.across`. A node type that no edge type
/// ends in keeps a linear map of its own features.
pub(super) struct Hetero {
    pub(super) relations: Vec<Box<dyn RelationLayer>>,
    /// For node types that no edge type ends in.
    pub(super) own: Vec<Option<(ParamId, ParamId)>>,
    pub(super) across: Reduce,
    output: usize,
}

pub(super) fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    params: &mut ParamsBuilder,
) -> Result<HeteroStack<Hetero>> {
    let known = ["gat", "gin", "sage"];
    if !known.contains(&config.relation_layer.as_str()) {
        return Err(Error::usage(format!(
            "invalid model.relation_layer '{}': expected a layer that supports bipartite edge types",
            config.relation_layer
        ))
        .hint(format!("known: {}", known.join(", "))));
    }
    HeteroStack::new(config, (schema, sources), params, |i, params| {
        params.scoped(&format!("layer{i}."), |params| Hetero::new(config, schema, i, params))
    })
}

/// The layer of an edge type that `config` describes.
fn relation_layer(
    config: &ModelConfig,
    params: &mut ParamsBuilder,
) -> Result<Box<dyn RelationLayer>> {
    config.check()?;
    Ok(match config.name.as_str() {
        "gat" => Box::new(gat::build(config, params)?),
        "gin" => Box::new(gin::build(config, params)),
        _ => Box::new(sage::build(config, params)),
    })
}

impl Hetero {
    fn new(
        config: &ModelConfig,
        schema: &Schema,
        i: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let (input, output) = config.dims(i);
        let one = ModelConfig {
            name: config.relation_layer.clone(),
            layers: 1,
            in_dim: input,
            out_dim: output,
            input_dropout: Some(0.0),
            // The edge type of a layer mostly joins two node types, where a self-loop has no
            // meaning.
            self_loops: false,
            ..config.clone()
        };
        let layer = |triple: &gnarl_graph::Triple| {
            params.scoped(&format!("{triple}."), |params| relation_layer(&one, params))
        };
        let relations = schema.edge_types().iter().map(layer).collect::<Result<_>>()?;
        let silent = |node_type: usize| {
            (0..schema.edge_types().len()).all(|e| schema.ends(e).1 != node_type)
        };
        let types = schema.node_types().iter().enumerate();
        let own = types.map(|(number, name)| {
            silent(number).then(|| {
                let weight = format!("{name}.self.weight");
                let weight = params.add(weight, input, output, Init::XavierUniform);
                (weight, params.add(format!("{name}.self.bias"), 1, output, Init::Zeros))
            })
        });
        Ok(Self { own: own.collect(), relations, across: config.across, output })
    }

    fn combine(&self, tape: &mut Tape<'_>, heard: &[Var]) -> Option<Var> {
        let (&first, others) = heard.split_first()?;
        let all = others.iter().fold(first, |all, &one| match self.across {
            Reduce::Max => tape.max(all, one),
            Reduce::Sum | Reduce::Mean => tape.add(all, one),
        });
        Some(match self.across {
            Reduce::Mean if heard.len() > 1 => tape.scale(all, 1.0 / heard.len() as f32),
            _ => all,
        })
    }
}

impl HeteroLayer for Hetero {
    const NAME: &'static str = "hetero";
    const PROJECTED: Activation = Activation::Relu;

    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let mut heard = vec![Vec::new(); self.own.len()];
        let mut blocks = block.homogeneous().iter().peekable();
        for (edge_type, layer) in self.relations.iter().enumerate() {
            let Some(one) = blocks.next_if(|one| one.relation == edge_type) else {
                // A mask is that of a node in any batch, whatever edge types the batch lacks.
                tape.skip_draws(layer.draws());
                continue;
            };
            let rows = tape.gather_rows(x, &one.rows);
            let y = layer.layer(tape, 0, &one.block, rows)?;
            heard[block.schema().ends(edge_type).1].push(y);
        }
        let rows = block.rows_by_type();
        let mut parts = Vec::with_capacity(heard.len());
        for (number, rows) in rows.iter().enumerate() {
            parts.push(match self.own[number] {
                _ if rows.is_empty() => None,
                Some((weight, bias)) => {
                    let own = tape.gather_rows(x, rows);
                    Some(tape.linear(own, weight, Some(bias), Activation::None))
                }
                None => self.combine(tape, &heard[number]),
            });
        }
        let y = tape.interleave(&parts, block.own(), self.output);
        let y = tape.activation(y, after.activation);
        Ok(after.drop(tape, block.block(), y))
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let y = self.combined(tape, slices, x)?;
        let y = tape.activation(y, after.activation);
        Ok(tape.dropout(y, after.dropout, slices.ids))
    }

    fn prepare(&self, graph: &WholeRelations) {
        Hetero::prepare(self, graph);
    }
}
