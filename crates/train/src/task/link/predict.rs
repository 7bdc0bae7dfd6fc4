//! Link prediction as a task.

use std::sync::{Arc, PoisonError};

use gnarl_common::threads::pool;
use gnarl_common::{Home, IdMap, Result};
use gnarl_config::Leakage;
use gnarl_engine::Communicator;
use gnarl_nn::decoders::{LinkBatch, Side};
use gnarl_nn::{Params, Tape, Tensor, Var};

use super::batches::{LinkExamples, draw};
use super::candidates::{Everywhere, WithOwners};
use super::edges::Edges;
use super::links::LinkPrediction;
use super::packed;
use super::{in_time, leakage, negatives, ranking};
use crate::data::batch::BatchSpec;
use crate::data::edge_set::LeakageCount;
use crate::data::packed::Columns;
use crate::data::resident::{Examples, NodesInMemory};
use crate::embeddings::{Rows, gather_to_root};
use crate::encoder::{Encoder, Outputs};
use crate::evaluation::{Evaluation, Forwards, LeakageReport, by_first};
use crate::session::Threads;
use crate::state::TrainState;
use crate::step::BatchLoss;
use crate::step::tensor_parallel::{OwnOutputs, WholeModel, gather_nodes};
use crate::task::buckets::{Buckets, Classes};
use crate::task::schedule::{DrawBatches, EdgeSchedule};
use crate::task::{DrawnBatch, EdgeScores, Encoders, Sharing, Sizes, Task};

impl Task for LinkPrediction {
    type Drawn = LinkBatch;
    type Examples = LinkBatch;
    const LOCAL: bool = false;
    const GRAPH_PER_PART: bool = false;

    fn metric(&self) -> String {
        self.metric.clone()
    }

    fn sizes(&self) -> Sizes {
        let Edges { train, valid, test, .. } = &self.edges;
        Sizes { of: "edges", outputs: 0, splits: [train.count(), valid.len(), test.len()] }
    }

    fn node_type(&self) -> &str {
        self.edges.endpoints.head_type()
    }

    fn set_parts(&mut self, parts: usize, owner: Arc<IdMap>) {
        self.edges.train.set_parts(parts, owner);
    }

    fn ready(&self) -> Result<()> {
        if self.negatives.get().is_none() {
            // Another rank of this process may have built an equal one meanwhile.
            _ = self.negatives.set(negatives::build(self)?);
        }
        Ok(())
    }

    fn begin(&self, home: &Home) -> Result<()> {
        let sample = &self.config.sample;
        if sample.buckets == 0 || sample.batch_size == 0 || self.encoded {
            return Ok(());
        }
        // One of the ranks of this process sorts for all of them.
        let _sorting = self.sorting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.buckets.get().is_none() {
            let Edges { train, endpoints, .. } = &self.edges;
            let classes = Classes::new(sample, endpoints.nodes());
            _ = self.buckets.set(Buckets::new(classes, train.as_ref(), home)?);
        }
        Ok(())
    }

    fn graphs(&self) -> usize {
        self.edges.train.parts().max(1)
    }

    fn training(&self, graph: usize) -> usize {
        self.edges.train.count_of(graph)
    }

    fn by_parts(&self, owners: &[Arc<IdMap>]) -> Result<Examples> {
        let [heads, tails] = [&owners[0], &owners[owners.len() - 1]];
        Examples::of_edges(
            [heads, tails],
            self.edges.train.as_ref(),
            self.edges.endpoints.first_tail(),
        )
    }

    fn schedule(
        &self,
        graph: usize,
        epoch: usize,
        sharing: Sharing,
        _: DrawBatches<'_>,
    ) -> Vec<BatchSpec> {
        let edges = self.edges.train.as_ref();
        let buckets = self.buckets.get();
        EdgeSchedule { config: &self.config, edges, buckets, graph, sharing }.epoch(epoch)
    }

    fn schedule_of(
        &self,
        among: &[u32],
        order: (usize, usize),
        sharing: Sharing,
        _: DrawBatches<'_>,
    ) -> Vec<BatchSpec> {
        let schedule = EdgeSchedule {
            config: &self.config,
            edges: self.edges.train.as_ref(),
            buckets: None,
            graph: order.1,
            sharing,
        };
        schedule.of_era(among, order)
    }

    fn draw(
        &self,
        spec: &BatchSpec,
        there: Option<&NodesInMemory>,
    ) -> Result<DrawnBatch<LinkBatch>> {
        let train = self.edges.train.as_ref();
        let found = match self.buckets.get() {
            Some(buckets) => buckets.batch(spec, train.owner()),
            None => train.batch(spec)?,
        };
        let LinkExamples { batch: mut examples, ids, times } = draw(self, spec, (&found, there))?;
        let endpoints = &self.edges.endpoints;
        let (seeds, places) = endpoints.seeds(ids, times);
        if endpoints.are_two_types() {
            examples.renumber(&places);
        }
        Ok(DrawnBatch { examples, seeds, asked: Some(endpoints.in_dataset(found.edges)) })
    }

    fn removes_asked(&self) -> bool {
        // Times tell which edges pass messages.
        let timed = self.config.samples_by_time();
        self.encoded && !timed && self.config.task.leakage == Leakage::Remove
    }

    fn examples(&self, _: &BatchSpec, mut batch: LinkBatch, outputs: Outputs) -> Result<LinkBatch> {
        // Embeddings without a model come in the order of the nodes.
        if self.encoded {
            batch.renumber(&outputs.rows);
        }
        Ok(batch)
    }

    fn pack(&self, batch: LinkBatch, out: &mut Columns) -> Result<()> {
        packed::pack(batch, out);
        Ok(())
    }

    fn unpack(&self, columns: &mut Columns) -> Result<LinkBatch> {
        packed::unpack(columns)
    }

    fn count(&self, batch: &LinkBatch) -> usize {
        batch.heads.len()
    }

    fn loss<'b>(
        &self,
        tape: &mut Tape<'b>,
        embeddings: Var,
        batch: &'b LinkBatch,
    ) -> Result<(Var, BatchLoss)> {
        let decoder = self.decoder.as_ref();
        let n3 = self.config.decoder.n3;
        let (loss, found) = tape.link_loss(embeddings, batch, decoder, self.loss.as_ref(), n3)?;
        Ok((loss, BatchLoss { sum: found.sum, weight: found.weight }))
    }

    /// Embeddings without a model are ranked by all ranks, each among the nodes that it owns; edges as of their times
    /// by shares of the edges.
    fn evaluate<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        if let Some(table) = encoders.whole.only_table(&state.tables) {
            let nodes = WithOwners { table, comm };
            return pool(threads.each)?.install(|| ranking::among_all(self, &state.params, &nodes));
        }
        let forwards = Forwards::new(&self.config, encoders.whole);
        if self.config.samples_by_time() && state.tables.is_empty() {
            let weights = (&state.params, &[][..]);
            let evaluate = || in_time::evaluate(self, &forwards, weights, Some(comm));
            return pool(threads.each)?.install(evaluate);
        }
        let all =
            forwards.together(state, (comm, threads), |forwards, weights| forwards.all(weights));
        if let Some(all) = all? {
            let score = || ranking::of_embeddings(self, &state.params, joined(all));
            return by_first(comm, threads, score);
        }
        let tables = gather_to_root(&state.tables, comm)?;
        by_first(comm, threads, || self.evaluate_alone(encoders, &state.params, &tables))
    }

    fn evaluate_alone<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        params: &Params,
        tables: &[Rows<'_>],
    ) -> Result<Evaluation> {
        let forwards = Forwards::new(&self.config, encoders.whole);
        if self.config.samples_by_time() {
            return in_time::evaluate(self, &forwards, (params, tables), None);
        }
        if let Some(rows) = encoders.whole.only_rows(tables) {
            return ranking::among_all(self, params, &Everywhere::of_rows(rows));
        }
        let by_type = forwards.all((params, tables))?;
        ranking::of_embeddings(self, params, joined(by_type))
    }

    fn leakage<E: Encoder>(
        &self,
        encoder: &E,
        train: &dyn Fn() -> Result<LeakageCount>,
    ) -> Result<Option<LeakageReport>> {
        if self.config.samples_by_time() {
            return Ok(Some(LeakageReport::in_time()));
        }
        leakage::report(self, encoder, train).map(Some)
    }

    fn edge_scores(&self) -> Option<&dyn EdgeScores> {
        Some(self)
    }

    /// The first rank evaluates with all threads.
    fn evaluate_shares<W: WholeModel>(
        &self,
        model: &W,
        own: OwnOutputs,
        params: &Params,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let endpoints = &self.edges.endpoints;
        let nodes = if comm.rank() == 0 { endpoints.range(Side::Tail).end } else { 0 };
        let (nodes, _) = endpoints.by_type((0..nodes).collect());
        let all = pool(threads.each)?.install(|| gather_nodes(model, &own.rows, &nodes))?;
        by_first(comm, threads, || ranking::of_embeddings(self, params, all))
    }
}

/// Embeddings of the tails' type after those of the heads'.
fn joined(mut by_type: Vec<Tensor>) -> Tensor {
    match &by_type[..] {
        [heads, tails] => Tensor::from_vec(
            heads.rows() + tails.rows(),
            heads.cols(),
            [heads.data(), tails.data()].concat(),
        ),
        _ => by_type.swap_remove(0),
    }
}
