//! Edge prediction as a task.

use std::sync::Arc;

use gnarl_common::DType;
use gnarl_common::Error;
use gnarl_common::threads::pool;
use gnarl_common::{IdMap, Result};
use gnarl_config::Leakage;
use gnarl_engine::Communicator;
use gnarl_nn::heads::EdgeRows;
use gnarl_nn::{Params, Tape, Tensor, Var};

use super::labels::EdgePrediction;
use super::splits::HeldOut;
use super::{evaluate, leakage};
use crate::data::batch::{BatchSpec, Input};
use crate::data::edge_set::LeakageCount;
use crate::data::packed::rows::OF_EDGES;
use crate::data::packed::{self, Columns};
use crate::data::resident::{Examples, NodesInMemory};
use crate::data::target_edges::TargetBatch;
use crate::embeddings::{Rows, gather_to_root};
use crate::encoder::{Encoder, Outputs};
use crate::evaluation::{Embedded, Evaluation, Forwards, LeakageReport, by_first};
use crate::session::Threads;
use crate::state::TrainState;
use crate::step::BatchLoss;
use crate::step::tensor_parallel::{OwnOutputs, WholeModel, gather_nodes};
use crate::task::ends::{Ends, ends};
use crate::task::objective::Targets;
use crate::task::schedule::{DrawBatches, EdgeSchedule};
use crate::task::{DrawnBatch, EdgeScores, Encoders, Sharing, Sizes, Task};

/// Edges of a batch, and the indices of their heads and tails among the seeds.
pub(crate) struct DrawnEdges {
    numbers: [Vec<u32>; 2],
    found: TargetBatch,
}

/// Edges of a batch, their features and labels.
pub(crate) struct EdgeExamples {
    endpoints: [Vec<u32>; 2],
    features: Option<Input>,
    targets: Targets,
    /// Their indices, from 0.
    each: Vec<u32>,
}

impl EdgePrediction {
    /// The schedule in the order of a graph.
    fn of_order(&self, graph: usize, sharing: Sharing) -> EdgeSchedule<'_> {
        EdgeSchedule {
            config: &self.config,
            edges: self.train.as_ref(),
            buckets: None,
            graph,
            sharing,
        }
    }
}

impl Task for EdgePrediction {
    type Drawn = DrawnEdges;
    type Examples = EdgeExamples;
    const LOCAL: bool = false;
    const GRAPH_PER_PART: bool = false;

    fn metric(&self) -> String {
        self.objective.metric().to_string()
    }

    fn sizes(&self) -> Sizes {
        let HeldOut { valid, test, .. } = &self.splits;
        let splits = [self.train.count(), valid.edges.len(), test.edges.len()];
        Sizes { of: "edges", outputs: self.outputs, splits }
    }

    fn node_type(&self) -> &str {
        &self.splits.triple.src
    }

    fn set_parts(&mut self, parts: usize, owner: Arc<IdMap>) {
        self.train.set_parts(parts, owner);
    }

    fn graphs(&self) -> usize {
        self.train.parts().max(1)
    }

    fn training(&self, graph: usize) -> usize {
        self.train.count_of(graph)
    }

    fn by_parts(&self, owners: &[Arc<IdMap>]) -> Result<Examples> {
        let [heads, tails] = [&owners[0], &owners[owners.len() - 1]];
        Examples::of_edges([heads, tails], self.train.as_ref(), 0)
    }

    fn schedule(
        &self,
        graph: usize,
        epoch: usize,
        sharing: Sharing,
        _: DrawBatches<'_>,
    ) -> Vec<BatchSpec> {
        self.of_order(graph, sharing).epoch(epoch)
    }

    fn schedule_of(
        &self,
        among: &[u32],
        order: (usize, usize),
        sharing: Sharing,
        _: DrawBatches<'_>,
    ) -> Vec<BatchSpec> {
        self.of_order(order.1, sharing).of_era(among, order)
    }

    fn draw(&self, spec: &BatchSpec, _: Option<&NodesInMemory>) -> Result<DrawnBatch<DrawnEdges>> {
        let found = self.train.batch(spec)?;
        let Ends { seeds, numbers } = ends(&found.own(), found.own_times(), self.two_types());
        let asked = Some(found.edges.clone());
        Ok(DrawnBatch { examples: DrawnEdges { numbers, found }, seeds, asked })
    }

    fn removes_asked(&self) -> bool {
        // Times tell which edges pass messages.
        !self.config.samples_by_time() && self.config.task.leakage == Leakage::Remove
    }

    fn examples(
        &self,
        _: &BatchSpec,
        DrawnEdges { numbers, mut found }: DrawnEdges,
        outputs: Outputs,
    ) -> Result<EdgeExamples> {
        let row = |&node: &u32| outputs.rows[node as usize];
        let endpoints = numbers.map(|numbers| numbers.iter().map(row).collect());
        let (targets, features) = self.train.answers(&mut found)?;
        let each = (0..found.share.len() as u32).collect();
        Ok(EdgeExamples { endpoints, features, targets, each })
    }

    fn pack(&self, examples: EdgeExamples, out: &mut Columns) -> Result<()> {
        let EdgeExamples { endpoints: [heads, tails], features, targets, .. } = examples;
        out.add("targets.head", heads);
        out.add("targets.tail", tails);
        packed::targets::pack(targets, out);
        if let Some(features) = features {
            packed::rows::pack((features, OF_EDGES), DType::F32, out);
        }
        Ok(())
    }

    fn unpack(&self, columns: &mut Columns) -> Result<EdgeExamples> {
        let endpoints: [Vec<u32>; 2] =
            [columns.take("targets.head")?, columns.take("targets.tail")?];
        let (targets, count) = packed::targets::unpack(columns, self.outputs)?;
        if endpoints.iter().any(|ends| ends.len() != count) {
            return Err(Error::invalid("targets of the batch: their columns disagree"));
        }
        let features = match &self.features {
            Some(_) => Some(packed::rows::unpack(columns, (OF_EDGES, count))?),
            None => None,
        };
        Ok(EdgeExamples { endpoints, features, targets, each: (0..count as u32).collect() })
    }

    fn count(&self, examples: &EdgeExamples) -> usize {
        examples.each.len()
    }

    fn loss<'b>(
        &self,
        tape: &mut Tape<'b>,
        embeddings: Var,
        examples: &'b EdgeExamples,
    ) -> Result<(Var, BatchLoss)> {
        let EdgeExamples { endpoints, features, targets, each } = examples;
        let [heads, tails] = [0, 1].map(|end| tape.gather_rows(embeddings, &endpoints[end]));
        let features = features.as_ref().map(|features| features.on(tape));
        let logits = self.head.forward(tape, EdgeRows { heads, tails, features });
        let loss = self.objective.loss(tape, logits, each, targets, None);
        let sum = f64::from(tape.value(loss).data()[0]);
        Ok((loss, BatchLoss { sum, weight: each.len() as f64 }))
    }

    /// Rank 0 evaluates with all threads; edges as of their times are shared by all ranks.
    fn evaluate<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let forwards = Forwards::new(&self.config, encoders.whole);
        if self.config.samples_by_time() && state.tables.is_empty() {
            let weights = (&state.params, &[][..]);
            let evaluate = || evaluate::in_time(self, &forwards, weights, Some(comm));
            return pool(threads.each)?.install(evaluate);
        }
        let found = forwards.together(state, (comm, threads), |forwards, weights| {
            evaluate::embeddings(self, forwards, weights)
        });
        if let Some(found) = found? {
            let score = || evaluate::of_embeddings(self, &state.params, &found);
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
            return evaluate::in_time(self, &forwards, (params, tables), None);
        }
        let found = evaluate::embeddings(self, &forwards, (params, tables))?;
        evaluate::of_embeddings(self, params, &found)
    }

    fn leakage<E: Encoder>(
        &self,
        encoder: &E,
        train: &dyn Fn() -> Result<LeakageCount>,
    ) -> Result<Option<LeakageReport>> {
        if self.config.samples_by_time() {
            return Ok(Some(LeakageReport::in_time()));
        }
        leakage::report(self, encoder, train()?).map(Some)
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
        let types = if self.two_types() { 2 } else { 1 };
        let counts = &self.splits.nodes[..types];
        let nodes = counts.iter().map(|&count| {
            let asked = if comm.rank() == 0 { count } else { 0 };
            (0..asked as u32).collect()
        });
        let nodes: Vec<Vec<u32>> = nodes.collect();
        let all = pool(threads.each)?.install(|| gather_nodes(model, &own.rows, &nodes))?;
        by_first(comm, threads, || {
            let mut by_type = Vec::with_capacity(types);
            let mut first = 0;
            for &count in counts {
                let values = all.data()[first * all.cols()..(first + count) * all.cols()].to_vec();
                by_type.push(Embedded::all(Tensor::from_vec(count, all.cols(), values)));
                first += count;
            }
            evaluate::of_embeddings(self, params, &by_type)
        })
    }
}
