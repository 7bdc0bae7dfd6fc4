//! Layer-wise inference on a partitioned graph, by all ranks together.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::parts::{PartsSampler, Rule};
use gnarl_sample::{Sampler, Scratch};
use rayon::ThreadPool;

use super::RANGE_NODES;
use crate::data::batch::gather;
use crate::data::graph::{Graph, Partitioned};
use crate::data::shares::Shares;

/// Embeddings of each list of nodes, `width` wide, on every rank. Each rank computes its share of
/// all nodes: the ranks run the layers together, and exchange the output of the previous layer.
/// Memory: a row of each layer for the own nodes, and those of a range's neighbors.
///
/// # Errors
/// If shapes disagree, a part does not reply, or a rank fails.
pub(crate) fn embeddings(
    model: &dyn Model,
    params: &Params,
    (task, graph): (&Graph, &Partitioned),
    (nodes, width): ([&[u32]; 2], usize),
    comm: &dyn Communicator,
    pool: &ThreadPool,
) -> Result<[Tensor; 2]> {
    let sampler = graph.sampler(Rule::Exact, &[-1])?;
    let shares = Shares::new(graph, comm.size());
    let pass = Pass { model, params, task, comm, pool, sampler, shares };
    let own = pass.own()?;
    let [first, second] = nodes.map(|nodes| pass.gathered(nodes, width, &own));
    Ok([first?, second?])
}

struct Pass<'a> {
    model: &'a dyn Model,
    params: &'a Params,
    task: &'a Graph,
    comm: &'a dyn Communicator,
    pool: &'a ThreadPool,
    sampler: PartsSampler,
    shares: Shares<'a>,
}

impl Pass<'_> {
    /// The embeddings of this rank's nodes.
    fn own(&self) -> Result<Tensor> {
        let own = self.shares.nodes(self.comm.rank());
        // Every rank takes part in every exchange, even when its own nodes are done.
        let steps = self.shares.longest().div_ceil(RANGE_NODES);
        let mut scratch = Scratch::new();
        let mut before: Option<Tensor> = None;
        for layer in 0..self.model.num_layers() {
            let (mut values, mut width) = (Vec::new(), 0);
            for step in 0..steps {
                let range = own.chunks(RANGE_NODES).nth(step).unwrap_or_default();
                let out = self.range(layer, range, before.as_ref(), &mut scratch)?;
                width = width.max(out.cols());
                values.extend_from_slice(out.data());
            }
            before = Some(Tensor::from_vec(own.len(), width, values));
        }
        Ok(before.unwrap_or_else(|| Tensor::zeros(0, 0)))
    }

    /// A layer over some nodes, from all ranks' output of the previous layer.
    fn range(
        &self,
        layer: usize,
        nodes: &[u32],
        before: Option<&Tensor>,
        scratch: &mut Scratch,
    ) -> Result<Tensor> {
        let batch = self.sampler.sample(nodes, Key::new(0), scratch)?;
        let mut tape = Tape::new(self.params, Mode::Eval);
        let x = match before {
            None if nodes.is_empty() => return Ok(Tensor::zeros(0, 0)),
            None => gather(self.task.features.as_ref(), &batch.input_nodes)?.on(&mut tape),
            Some(own) => tape.dense(self.exchange(own, &batch.input_nodes)?),
        };
        if nodes.is_empty() {
            return Ok(Tensor::zeros(0, 0));
        }
        let model = self.model;
        let y = self.pool.install(|| model.layer(&mut tape, layer, &batch.blocks[0], x))?;
        Ok(tape.take(y))
    }

    /// Fetches the rows of `nodes` from their owners; `own` are this rank's.
    fn exchange(&self, own: &Tensor, nodes: &[u32]) -> Result<Tensor> {
        let mut places = vec![Vec::new(); self.comm.size()];
        let mut asked = vec![Vec::<u64>::new(); self.comm.size()];
        for (place, &node) in nodes.iter().enumerate() {
            let (rank, row) = self.shares.place(node);
            places[rank].push(place);
            asked[rank].push(row);
        }
        let asked = asked.iter().map(|rows| bytemuck::cast_slice(rows).to_vec()).collect();
        let wanted = self.comm.all_to_all("evaluation: requests", asked)?;
        let give = |wanted: &Vec<u8>| -> Vec<u8> {
            let row = |at: &[u8; 8]| own.row(u64::from_le_bytes(*at) as usize);
            let rows = wanted.as_chunks().0.iter().map(row);
            rows.flat_map(bytemuck::cast_slice::<f32, u8>).copied().collect()
        };
        let given = wanted.iter().map(give).collect();
        let found = self.comm.all_to_all("evaluation: rows", given)?;
        let width = found.iter().zip(&places).find(|(_, places)| !places.is_empty());
        let width = width.map_or(0, |(bytes, places)| bytes.len() / 4 / places.len());
        let mut out = Tensor::zeros(nodes.len(), width);
        for (from, (bytes, places)) in found.iter().zip(&places).enumerate() {
            if bytes.len() != 4 * width * places.len() {
                let what = format!("rank {from} sent rows of another width");
                return Err(Error::new(Kind::Rank, what));
            }
            for (&place, row) in places.iter().zip(bytes.chunks_exact(4 * width.max(1))) {
                let out = &mut out.data_mut()[place * width..(place + 1) * width];
                bytemuck::cast_slice_mut(out).copy_from_slice(row);
            }
        }
        Ok(out)
    }

    /// Gathers the rows of `nodes` from all ranks' `logits`.
    fn gathered(&self, nodes: &[u32], width: usize, logits: &Tensor) -> Result<Tensor> {
        let here = self.comm.rank();
        let own = nodes.iter().map(|&node| (node, self.shares.place(node)));
        let own: Vec<_> = own.filter(|(_, (rank, _))| *rank == here).collect();
        let rows = own.iter().flat_map(|&(_, (_, row))| logits.row(row as usize));
        let rows: Vec<f32> = rows.copied().collect();
        let all = self.comm.all_gather("evaluation: logits", bytemuck::cast_slice(&rows))?;
        let mut out = Tensor::zeros(nodes.len(), width);
        let mut rest: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        for (place, &node) in nodes.iter().enumerate() {
            let from = self.shares.place(node).0;
            let (row, after) = rest[from].split_at_checked(4 * width).ok_or_else(|| {
                let what = format!("rank {from} sent too few logits");
                Error::new(Kind::Rank, what)
            })?;
            rest[from] = after;
            let out = &mut out.data_mut()[place * width..(place + 1) * width];
            bytemuck::cast_slice_mut(out).copy_from_slice(row);
        }
        Ok(out)
    }
}
