//! Embeddings for evaluation: layer by layer over all neighbors, or over sampled ones (`evaluate.fanouts`, and
//! `sample.time`).

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::profile::without_kernels;
use gnarl_common::rng::Key;
use gnarl_common::threads::{even_share, pool};
use gnarl_config::{Method, RunConfig};
use gnarl_engine::Communicator;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::Scratch;
use rayon::prelude::*;

use crate::data::seeds::Seeds;
use crate::embeddings::Rows;
use crate::encoder::{Course, Encoder, Keep, Output};
use crate::session::Threads;
use crate::state::TrainState;

/// Seeds of a sampled batch.
const SEEDS: usize = 1024;
/// Key of the draws: every evaluation reads the same neighbors.
const DRAWS: u64 = 0xe7a1;

/// Weights of a model, and rows of its embedding tables.
type Weights<'w> = (&'w Params, &'w [Rows<'w>]);

/// Forward passes of a model for evaluation.
pub(crate) struct Forwards<'a, E> {
    config: &'a RunConfig,
    encoder: &'a E,
    course: Course<'a>,
}

impl<'a, E: Encoder> Forwards<'a, E> {
    /// Passes of the model of `encoder`.
    pub fn new(config: &'a RunConfig, encoder: &'a E) -> Self {
        Self { config, encoder, course: Course::default() }
    }

    /// The same passes by all ranks of `comm`; the first one is given the embeddings.
    pub fn by_ranks(self, comm: &'a dyn Communicator) -> Self {
        Self { course: Course::by_ranks(comm), ..self }
    }

    /// Returns whether neighbors are sampled.
    pub fn is_sampled(&self) -> bool {
        self.config.evaluates_sampled()
    }

    /// Computes embeddings of the nodes `wanted` of types with endpoints, and hands them to `keep` as
    /// [`Encoder::infer`] does.
    fn each(
        &self,
        (params, tables): Weights<'_>,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<()> {
        match self.is_sampled() {
            true => self.sampled((params, tables), wanted, keep),
            false => {
                let wanted = (Output::Last, wanted);
                self.encoder.infer((params, tables), wanted, &self.course, keep).map(drop)
            }
        }
    }

    /// Embeddings of all nodes, one tensor per type with endpoints.
    ///
    /// # Errors
    /// If shapes disagree.
    pub fn all(&self, weights: Weights<'_>) -> Result<Vec<Tensor>> {
        if !self.is_sampled()
            && let Some(all) = self.encoder.only_rows(weights.1)
        {
            return Ok(vec![all.clone().into_tensor()]);
        }
        let counts = self.encoder.num_nodes();
        let wanted = counts.iter().enumerate().map(|(of, &n)| (of, (0..n as u32).collect()));
        self.of_types(weights, &wanted.collect::<Vec<_>>())
    }

    /// Embeddings of the nodes `wanted`, which ascend, of types with endpoints; an empty tensor for types without.
    ///
    /// # Errors
    /// If shapes disagree.
    pub fn of_types(
        &self,
        weights: Weights<'_>,
        wanted: &[(usize, Vec<u32>)],
    ) -> Result<Vec<Tensor>> {
        let types = self.encoder.num_nodes().len();
        let mut values = vec![(Vec::new(), 0); types];
        self.each(weights, wanted, &mut |of, _, rows| {
            values[of].0.extend_from_slice(rows.data());
            values[of].1 = rows.cols();
            Ok(())
        })?;
        let mut counts = vec![0; types];
        wanted.iter().for_each(|(of, nodes)| counts[*of] = nodes.len());
        let tensor =
            |(n, (values, width)): (usize, (Vec<f32>, usize))| Tensor::from_vec(n, width, values);
        Ok(counts.into_iter().zip(values).map(tensor).collect())
    }

    /// The result of `pass` on the first rank, by all ranks together where they are on several hosts or the graph is in parts;
    /// none if one rank has to
    /// compute it alone, as where others have rows of tables.
    ///
    /// # Errors
    /// If shapes disagree, or a rank fails.
    pub fn together<T: Send>(
        self,
        state: &TrainState,
        (comm, threads): (&'a dyn Communicator, Threads),
        pass: impl FnOnce(&Self, Weights<'_>) -> Result<T> + Send,
    ) -> Result<Option<T>> {
        let spread = threads.several_hosts || self.encoder.is_partitioned();
        if !spread || !state.tables.is_empty() || self.is_sampled() {
            return Ok(None);
        }
        let forwards = self.by_ranks(comm);
        pool(threads.each)?.install(|| pass(&forwards, (&state.params, &[]))).map(Some)
    }

    /// Embeddings of some nodes of the first type with endpoints, and the row of each.
    ///
    /// # Errors
    /// If shapes disagree.
    pub fn some(&self, weights: Weights<'_>, nodes: &[u32]) -> Result<(Tensor, Vec<u32>)> {
        let mut distinct = nodes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let (mut values, mut width) = (Vec::new(), 0);
        self.each(weights, &[(0, distinct.clone())], &mut |_, _, rows| {
            values.extend_from_slice(rows.data());
            width = rows.cols();
            Ok(())
        })?;
        let found = Tensor::from_vec(distinct.len(), width, values);
        let row = |node: &u32| distinct.partition_point(|other| other < node) as u32;
        Ok((found, nodes.iter().map(row).collect()))
    }

    /// Values over sampled neighbors of this rank's even share of each list of nodes, in their order.
    ///
    /// # Errors
    /// If a part of the graph does not reply.
    pub fn shares(
        &self,
        params: &Params,
        lists: [&[u32]; 3],
        comm: &dyn Communicator,
        threads: usize,
    ) -> Result<[Vec<f32>; 3]> {
        let own = lists.map(|nodes| &nodes[even_share(nodes.len(), comm.rank(), comm.size())]);
        let of = |nodes: &[u32]| {
            let mut values = Vec::new();
            if nodes.is_empty() {
                return Ok(values);
            }
            self.sampled((params, &[]), &[(0, nodes.to_vec())], &mut |_, _, rows| {
                values.extend_from_slice(rows.data());
                Ok(())
            })?;
            Ok(values)
        };
        let [valid, test, train] = own.map(|nodes| pool(threads)?.install(|| of(nodes)));
        Ok([valid?, test?, train?])
    }

    /// Embeddings of seeds at their times, one row each, those of one type with endpoints after those of another: over
    /// sampled neighbors, with draws that depend on node and time alone.
    ///
    /// # Errors
    /// If shapes disagree, or a part of the graph does not reply.
    pub fn of_seeds(&self, weights: Weights<'_>, seeds: &Seeds) -> Result<Tensor> {
        let sampler = self.encoder.sampler(&self.sampled_config(), &[])?;
        let types = seeds.nodes.len();
        let pieces = seeds.nodes.iter().enumerate().flat_map(|(of, nodes)| {
            let starts = (0..nodes.len()).step_by(SEEDS);
            starts.map(move |start| (of, start..nodes.len().min(start + SEEDS)))
        });
        let pieces: Vec<(usize, Range<usize>)> = pieces.collect();
        let batch = |scratch: &mut Scratch, (of, range): &(usize, Range<usize>)| {
            let mut piece = Seeds { nodes: vec![Vec::new(); types], times: Vec::new() };
            piece.nodes[*of] = seeds.nodes[*of][range.clone()].to_vec();
            if !seeds.times.is_empty() {
                piece.times = vec![Vec::new(); types];
                piece.times[*of] = seeds.times[*of][range.clone()].to_vec();
            }
            without_kernels(|| self.batch(&sampler, weights, &piece, scratch))
        };
        let found = pieces.par_iter().map_init(Scratch::new, batch);
        let found = found.collect::<Result<Vec<Tensor>>>()?;
        let (mut values, mut width) = (Vec::new(), 0);
        for rows in &found {
            values.extend_from_slice(rows.data());
            width = rows.cols();
        }
        Ok(Tensor::from_vec(seeds.len(), width, values))
    }

    /// The run file with the fan-outs of evaluation.
    fn sampled_config(&self) -> RunConfig {
        let mut config = self.config.clone();
        if !config.evaluate.fanouts.is_empty() {
            config.sample.fanouts.clone_from(&config.evaluate.fanouts);
            config.sample.edge_fanouts.clear();
            if !config.sample.method.is_by_walks() {
                config.sample.method = Method::Neighbor;
            }
        }
        config
    }

    /// Embeddings of the seeds of one batch, one row each.
    fn batch(
        &self,
        sampler: &E::Sampler,
        (params, tables): Weights<'_>,
        seeds: &Seeds,
        scratch: &mut Scratch,
    ) -> Result<Tensor> {
        let sampled = self.encoder.sample(sampler, seeds, Key::new(DRAWS), scratch)?;
        let (batch, outputs) = self.encoder.fetch(sampled)?;
        let ids = self.encoder.embedding_ids(&batch).iter().zip(tables);
        let embeddings = ids.map(|(ids, table)| table.gather(ids)).collect::<Result<_>>()?;
        let mut tape = Tape::new(params, Mode::Eval);
        let (y, _) = self.encoder.forward(&mut tape, &batch, embeddings)?;
        let y = tape.gather_rows(y, &outputs.rows);
        Ok(tape.take(y))
    }

    /// Batches over sampled neighbors. The draws of a node depend on that node alone, and so its embedding does not
    /// depend on the batch that it is in.
    ///
    /// # Errors
    /// If shapes disagree, a part of the graph does not reply, or those of `keep`.
    pub fn sampled(
        &self,
        weights: Weights<'_>,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<()> {
        let sampler = self.encoder.sampler(&self.sampled_config(), &[])?;
        let types = self.encoder.num_nodes().len();
        let batch = |of: usize, nodes: &[u32], scratch: &mut Scratch| {
            let mut seeds = Seeds { nodes: vec![Vec::new(); types], times: Vec::new() };
            seeds.nodes[of] = nodes.to_vec();
            without_kernels(|| self.batch(&sampler, weights, &seeds, scratch))
        };
        for (of, nodes) in wanted {
            // A batch for each thread at a time: what is in memory does not grow with the nodes.
            for group in nodes.chunks(SEEDS * rayon::current_num_threads()) {
                let each = group.par_chunks(SEEDS);
                let each = each.map_init(Scratch::new, |scratch, nodes| batch(*of, nodes, scratch));
                let found = each.collect::<Result<Vec<Tensor>>>()?;
                for (nodes, rows) in group.chunks(SEEDS).zip(&found) {
                    keep(*of, nodes, rows)?;
                }
            }
        }
        Ok(())
    }
}
