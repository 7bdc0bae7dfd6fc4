//! Embeddings without a model: the table itself.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_graph::Dataset;
use gnarl_infer::Figures;
use gnarl_nn::{Params, Tape, Tensor, Var};
use gnarl_sample::Scratch;

use super::course::Course;
use super::{Encoder, Keep, Output, Outputs};
use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::seeds::Seeds;
use crate::embeddings::{Rows, Table};
use crate::step::tensor_parallel::NoColumns;

/// Rows handed over at a time.
const RANGE_NODES: usize = 1 << 14;

/// A table of node embeddings.
pub(crate) struct EmbeddingOnly {
    /// Number of rows.
    pub nodes: usize,
}

impl Encoder for EmbeddingOnly {
    type Sampler = ();
    type Sampled = Vec<u64>;
    type Batch = [Vec<u64>; 1];
    type Columns<'a> = NoColumns;

    fn on_part(&self, _: &RunConfig, _: &Dataset) -> Result<Self> {
        Ok(Self { nodes: self.nodes })
    }

    fn seed_ids(&self) -> Vec<u64> {
        (0..self.nodes as u64).collect()
    }

    /// No edge passes messages, so that ways are those of no other edge.
    fn ways(&self, relation: u32) -> Ways {
        Ways { forth: relation as usize, back: None }
    }

    fn sampler(&self, _: &RunConfig, _: &[u32]) -> Result<()> {
        Ok(())
    }

    fn batches(&self, (): &(), seeds: &[u32], size: usize, order: Key) -> Vec<Vec<u32>> {
        let mut seeds = seeds.to_vec();
        order.shuffle(&mut seeds);
        seeds.chunks(size.max(1)).map(<[u32]>::to_vec).collect()
    }

    fn sample(&self, (): &(), seeds: &Seeds, _: Key, _: &mut Scratch) -> Result<Vec<u64>> {
        Ok(seeds.nodes.iter().flatten().map(|&node| node.into()).collect())
    }

    fn remove(&self, _: &mut Vec<u64>, _: &EdgeSet) {}

    fn edges(&self, _: &Vec<u64>) -> EdgeSet {
        EdgeSet::new()
    }

    fn fetch(&self, ids: Vec<u64>) -> Result<([Vec<u64>; 1], Outputs)> {
        let outputs = Outputs {
            rows: (0..ids.len() as u32).collect(),
            nodes: vec![ids.iter().map(|&id| id as u32).collect()],
            weights: None,
        };
        Ok(([ids], outputs))
    }

    fn prepare(&self, _: &[Vec<u64>; 1]) {}

    fn num_edges(&self, _: &[Vec<u64>; 1]) -> usize {
        0
    }

    fn embedding_ids<'b>(&self, batch: &'b [Vec<u64>; 1]) -> &'b [Vec<u64>] {
        batch
    }

    fn all_embedding_ids(&self) -> Vec<Vec<u64>> {
        vec![self.seed_ids()]
    }

    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        _: &'b [Vec<u64>; 1],
        mut embeddings: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let leaf = tape.leaf(embeddings.swap_remove(0));
        Ok((leaf, vec![leaf]))
    }

    fn num_nodes(&self) -> Vec<usize> {
        vec![self.nodes]
    }

    fn infer(
        &self,
        (_, tables): (&Params, &[Rows<'_>]),
        (_, wanted): (Output, &[(usize, Vec<u32>)]),
        course: &Course<'_>,
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        // Nothing is computed: the first rank has all rows.
        if course.comm.is_some_and(|comm| comm.rank() > 0) {
            return Ok(Figures::default());
        }
        for nodes in wanted.iter().flat_map(|(_, nodes)| nodes.chunks(RANGE_NODES)) {
            let ids: Vec<u64> = nodes.iter().map(|&node| node.into()).collect();
            keep(0, nodes, &tables[0].gather(&ids)?)?;
        }
        Ok(Figures::default())
    }

    fn only_rows<'r, 'v>(&self, tables: &'r [Rows<'v>]) -> Option<&'r Rows<'v>> {
        tables.first()
    }

    fn only_table<'t>(&self, tables: &'t [Table]) -> Option<&'t Table> {
        tables.first()
    }

    fn by_columns<'a>(&'a self, _: &'a dyn Communicator) -> Result<NoColumns> {
        let message =
            "train.strategy = 'tensor' shares out what messages pass, and model.name is 'none'";
        Err(Error::usage(message).hint("set train.strategy to 'gradient', or take an encoder"))
    }
}
