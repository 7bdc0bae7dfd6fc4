//! Node prediction: labels of the nodes of one type, compared with predictions by an objective.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::threads::pool;
use gnarl_common::{Error, IdMap, Result};
use gnarl_config::{EvaluateOn, RunConfig};
use gnarl_engine::Communicator;
use gnarl_graph::Dataset;
use gnarl_graph::splits::Roles;
use gnarl_nn::{Params, Tape, Tensor, Var};

use super::objective::{Objective, Scorer, Targets};
use super::schedule::{DrawBatches, NodeSchedule, Sharing};
use super::{DrawnBatch, Encoders, Sizes, Task};
use crate::data::batch::BatchSpec;
use crate::data::node_targets::NodeTargets;
use crate::data::packed::{self, Columns};
use crate::data::resident::{Examples, NodesInMemory};
use crate::embeddings::{Rows, gather_to_root};
use crate::encoder::{Encoder, Outputs};
use crate::evaluation::{Evaluation, Forwards, NodeScores, by_first, of_first, scorers, within};
use crate::session::Threads;
use crate::state::TrainState;
use crate::step::BatchLoss;
use crate::step::tensor_parallel::{OwnOutputs, WholeModel};

/// The node prediction task of a run.
pub(crate) struct NodePrediction {
    config: RunConfig,
    node_type: String,
    objective: Box<dyn Objective>,
    /// Roles of all nodes, where parts may train alone.
    roles: Option<Roles>,
    whole: NodeTargets,
    /// The parts that train alone.
    parts: Vec<Part>,
    /// Part of each node; empty if the graph was not partitioned.
    owner: Arc<IdMap>,
}

/// A part that trains alone.
enum Part {
    Own(NodeTargets),
    /// Another rank's, with so many training nodes.
    Other(usize),
}

impl NodePrediction {
    /// The task of predicting `targets` of nodes of type `node_type`.
    pub fn new(
        config: &RunConfig,
        node_type: &str,
        objective: Box<dyn Objective>,
        mut targets: NodeTargets,
        roles: Option<Roles>,
    ) -> Self {
        let [valid, test] = config.evaluate.scored();
        targets.scored = [valid, test, config.train.score_training];
        Self {
            config: config.clone(),
            node_type: node_type.into(),
            objective,
            roles,
            whole: targets,
            parts: Vec::new(),
            owner: Arc::default(),
        }
    }

    /// Targets of a graph that trains alone; of the whole graph where there is none.
    fn targets(&self, graph: usize) -> &NodeTargets {
        match self.parts.get(graph) {
            Some(Part::Own(targets)) => targets,
            _ => &self.whole,
        }
    }

    fn forwards<'a, E: Encoder>(&'a self, encoder: &'a E) -> Forwards<'a, E> {
        Forwards::new(&self.config, encoder)
    }

    fn scores(&self) -> NodeScores<'_> {
        NodeScores { targets: &self.whole, objective: &*self.objective }
    }

    fn score<E: Encoder>(
        &self,
        graphs: &[(&E, &NodeTargets)],
        params: &Params,
        tables: &[Rows<'_>],
    ) -> Result<Evaluation> {
        let tested = graphs.iter().any(|(_, targets)| !targets.scored()[1].is_empty());
        let mut scorers = scorers(&*self.objective, tested);
        for (encoder, targets) in graphs {
            let nodes = targets.scored().concat();
            if !nodes.is_empty() {
                let found = self.forwards(*encoder).some((params, tables), &nodes)?;
                add(&mut scorers, targets, found);
            }
        }
        Ok(Evaluation::of(&scorers))
    }

    /// Scores over the whole graph, which all ranks compute together.
    fn score_together<E: Encoder>(
        &self,
        encoder: &E,
        weights: (&Params, &[Rows<'_>]),
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let tested = !self.whole.scored()[1].is_empty();
        let mut scorers = scorers(&*self.objective, tested);
        let nodes = self.whole.scored().concat();
        if !nodes.is_empty() {
            let forwards = self.forwards(encoder).by_ranks(comm);
            let found = pool(threads.each)?.install(|| forwards.some(weights, &nodes))?;
            if comm.rank() == 0 {
                add(&mut scorers, &self.whole, found);
            }
        }
        let found = || Evaluation::of(&scorers);
        of_first(comm, (comm.rank() == 0).then(found))
    }
}

/// Adds the predictions for the scored nodes of `targets`, split after split: logits, and the row of each.
fn add(
    scorers: &mut [Box<dyn Scorer + '_>; 3],
    targets: &NodeTargets,
    (logits, rows): (Tensor, Vec<u32>),
) {
    let mut rest = &rows[..];
    for (scorer, nodes) in scorers.iter_mut().zip(targets.scored()) {
        let (of_split, after) = rest.split_at(nodes.len());
        scorer.add(&logits, of_split, &targets.labels.of(nodes));
        rest = after;
    }
}

/// Nodes of a batch, and their labels.
pub(crate) struct NodeExamples {
    rows: Vec<u32>,
    targets: Targets,
    weights: Option<Vec<f32>>,
}

impl Task for NodePrediction {
    type Drawn = ();
    type Examples = NodeExamples;
    const LOCAL: bool = true;
    const GRAPH_PER_PART: bool = true;

    fn metric(&self) -> String {
        self.objective.metric().to_string()
    }

    fn smaller_is_better(&self) -> bool {
        self.objective.smaller_is_better()
    }

    fn sizes(&self) -> Sizes {
        let NodeTargets { train, valid, test, .. } = &self.whole;
        let splits = [train, valid, test].map(|nodes| nodes.len());
        Sizes { of: "nodes", outputs: self.whole.outputs, splits }
    }

    fn node_type(&self) -> &str {
        &self.node_type
    }

    fn set_parts(&mut self, _: usize, owner: Arc<IdMap>) {
        self.owner = owner;
    }

    fn add_part(&mut self, part: Option<(&Dataset, &[u64])>) -> Result<()> {
        let number = self.parts.len();
        let Some((part, ids)) = part else {
            let of_part = |node: &&u32| self.owner.part(**node as usize) == number;
            self.parts.push(Part::Other(self.whole.train.iter().filter(of_part).count()));
            return Ok(());
        };
        let lacks = || Error::invalid("the splits of nodes are not known here");
        let roles = self.roles.as_ref().ok_or_else(lacks)?;
        let labels = self.config.task.kind.labels_of(part, &self.node_type)?;
        let (outputs, ids) = (self.whole.outputs, ids.iter().copied());
        let targets = NodeTargets::new(labels, outputs, roles, ids);
        self.parts.push(Part::Own(NodeTargets { scored: self.whole.scored, ..targets }));
        Ok(())
    }

    fn graphs(&self) -> usize {
        self.parts.len().max(1)
    }

    fn training(&self, graph: usize) -> usize {
        match self.parts.get(graph) {
            Some(Part::Other(count)) => *count,
            _ => self.targets(graph).train.len(),
        }
    }

    fn seeds(&self, graph: usize) -> &[u32] {
        &self.targets(graph).train
    }

    fn by_parts(&self, owners: &[Arc<IdMap>]) -> Result<Examples> {
        Ok(Examples::of_nodes(&owners[0], self.seeds(0)))
    }

    fn schedule(
        &self,
        graph: usize,
        epoch: usize,
        sharing: Sharing,
        batches: DrawBatches<'_>,
    ) -> Vec<BatchSpec> {
        let train = self.seeds(graph);
        let schedule =
            NodeSchedule { config: &self.config, train, graph, owner: &self.owner, sharing };
        schedule.epoch(epoch, batches)
    }

    fn schedule_of(
        &self,
        among: &[u32],
        (epoch, order): (usize, usize),
        sharing: Sharing,
        batches: DrawBatches<'_>,
    ) -> Vec<BatchSpec> {
        let (config, owner) = (&self.config, &self.owner);
        let schedule = NodeSchedule { config, train: among, graph: order, owner, sharing };
        schedule.epoch(epoch, batches)
    }

    fn draw(&self, spec: &BatchSpec, _: Option<&NodesInMemory>) -> Result<DrawnBatch<()>> {
        Ok(DrawnBatch { examples: (), seeds: vec![spec.own().to_vec()].into(), asked: None })
    }

    fn examples(&self, spec: &BatchSpec, (): (), outputs: Outputs) -> Result<NodeExamples> {
        let Outputs { rows, nodes, weights } = outputs;
        let targets = self.targets(spec.graph).labels.of(&nodes[0]);
        Ok(NodeExamples { rows, targets, weights })
    }

    fn pack(&self, examples: NodeExamples, out: &mut Columns) -> Result<()> {
        let NodeExamples { rows, targets, weights } = examples;
        out.add("targets.row", rows);
        packed::targets::pack(targets, out);
        out.add_some("targets.weight", weights);
        Ok(())
    }

    fn unpack(&self, columns: &mut Columns) -> Result<NodeExamples> {
        let rows: Vec<u32> = columns.take("targets.row")?;
        let weights: Option<Vec<f32>> = columns.take_some("targets.weight")?;
        let (targets, count) = packed::targets::unpack(columns, self.whole.outputs)?;
        let fits = |weights: &Vec<f32>| weights.len() == rows.len();
        match count == rows.len() && weights.as_ref().is_none_or(fits) {
            true => Ok(NodeExamples { rows, targets, weights }),
            false => Err(Error::invalid("targets of the batch: their columns disagree")),
        }
    }

    fn count(&self, examples: &NodeExamples) -> usize {
        examples.rows.len()
    }

    fn loss<'b>(
        &self,
        tape: &mut Tape<'b>,
        logits: Var,
        examples: &'b NodeExamples,
    ) -> Result<(Var, BatchLoss)> {
        let NodeExamples { rows, targets, weights } = examples;
        let loss = self.objective.loss(tape, logits, rows, targets, weights.as_deref());
        let sum = f64::from(tape.value(loss).data()[0]);
        Ok((loss, BatchLoss { sum, weight: rows.len() as f64 }))
    }

    /// A local graph is evaluated by rank 0 with all threads of its host. All ranks take part in that of a graph in parts,
    /// over sampled neighbors, and on several hosts.
    fn evaluate<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let (outputs, scored) = (self.whole.outputs, self.whole.scored());
        let params = &state.params;
        let on_parts = self.config.train.evaluate_on == EvaluateOn::Parts;
        let forwards = self.forwards(encoders.whole);
        if forwards.is_sampled() && state.tables.is_empty() && !on_parts {
            let logits = forwards.shares(params, scored, comm, threads.each)?;
            return self.scores().of_shares(comm, logits, outputs);
        }
        let spread = threads.several_hosts && state.tables.is_empty() && !on_parts;
        if spread || (encoders.whole.is_partitioned() && state.tables.is_empty()) {
            return self.score_together(encoders.whole, (params, &[]), comm, threads);
        }
        let tables = gather_to_root(&state.tables, comm)?;
        let graphs: Vec<(&E, &NodeTargets)> = match self.config.train.evaluate_on {
            EvaluateOn::Parts if !self.parts.is_empty() => {
                let own = encoders.parts.iter().zip(&self.parts);
                own.filter_map(|(encoder, part)| match (encoder, part) {
                    (Some(encoder), Part::Own(targets)) => Some((encoder, targets)),
                    _ => None,
                })
                .collect()
            }
            _ => vec![(encoders.whole, &self.whole)],
        };
        by_first(comm, threads, || self.score(&graphs, params, &tables))
    }

    fn evaluate_alone<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        params: &Params,
        tables: &[Rows<'_>],
    ) -> Result<Evaluation> {
        self.score(&[(encoders.whole, &self.whole)], params, tables)
    }

    fn whole_schedule(&self, epoch: usize) -> Vec<BatchSpec> {
        vec![BatchSpec::whole(epoch)]
    }

    /// Training nodes among the own ones; they ascend.
    fn own(&self, spec: &BatchSpec, own: Range<usize>, _: (usize, usize)) -> BatchSpec {
        let batch = within(&self.whole.train, &own);
        BatchSpec { share: 0..batch.len(), batch: batch.to_vec().into(), ..spec.clone() }
    }

    fn scored_nodes(&self) -> Option<Vec<u32>> {
        let mut nodes = self.whole.scored().concat();
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes)
    }

    fn evaluate_shares<W: WholeModel>(
        &self,
        model: &W,
        own: OwnOutputs,
        _: &Params,
        comm: &dyn Communicator,
        _: Threads,
    ) -> Result<Evaluation> {
        let logits =
            self.whole.scored().map(|nodes| own.of_nodes(model, within(nodes, &model.own_nodes())));
        self.scores().of_shares(comm, logits, own.rows.cols())
    }

    fn split(&self, name: &str) -> Option<&[u32]> {
        match name {
            "train" => Some(&self.whole.train),
            "valid" => Some(&self.whole.valid),
            "test" => Some(&self.whole.test),
            _ => None,
        }
    }

    fn node_scores(&self) -> Option<NodeScores<'_>> {
        Some(self.scores())
    }
}
