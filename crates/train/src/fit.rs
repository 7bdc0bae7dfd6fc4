//! A task with its encoder, ready for training on any number of ranks.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "serve")]
use crossbeam_channel::Receiver;
use gnarl_common::{Context, Error, IdMap, Result};
use gnarl_config::{BatchSource, Deal, RunConfig, Strategy};
use gnarl_engine::{Communicator, local};
use gnarl_graph::triples::Triples;
use gnarl_infer::Figures;
use gnarl_nn::{Params, Tensor};
use gnarl_partition::{PartLayout, PartitionedDataset};

use crate::data::prepared::{Manifest, PreparedBatches};
use crate::data::resident::EraCourse;
use crate::embeddings::Rows;
use crate::encoder::{Course, Encoder, Keep, Output, Source};
use crate::evaluation::{Evaluation, Forwards, NodeScores};
use crate::session::Session;
use crate::state::TrainState;
#[cfg(feature = "serve")]
use crate::step::batch_graphs::Elsewhere;
use crate::step::batch_graphs::{EndpointType, EraSource, Eras, Fixed, InMemory, Prepared};
#[cfg(feature = "serve")]
use crate::step::batch_worker::{Ask, BatchWorker, Worked};
use crate::step::chunked;
use crate::step::full_graph::FullGraph;
use crate::step::mini_batch::MiniBatch;
use crate::step::preparation::TakeBatch;
use crate::sync::all_reduce::AllReduce;
use crate::sync::model_averaging::{self, ModelAveraging};
use crate::sync::synchronization::Synchronization;
use crate::task::{EdgeScores, Encoders, Sizes, Task, embeddings_before};

/// The operations of a run on its task.
pub(crate) trait Training: Send + Sync {
    /// The metric that selects the best weights, as a key of scores.
    fn metric(&self) -> String;

    /// True if the smaller of two values of that score is the better one.
    fn smaller_is_better(&self) -> bool;

    /// Counts of the examples and outputs.
    fn sizes(&self) -> Sizes;

    /// Sets the partition: the part of each node, and the parts themselves where they train alone, of which only those
    /// in `mine` are opened, or where they are in memory in turns, for `ranks` of this process.
    ///
    /// # Errors
    /// If the task cannot be trained on such a partition, or one of these parts is not here.
    fn divide(
        &mut self,
        partition: &PartitionedDataset,
        mine: &dyn Fn(usize) -> bool,
        ranks: usize,
    ) -> Result<()>;

    /// Trains from `state` to the last epoch or until patience ends, as one rank; all return the
    /// same.
    ///
    /// # Errors
    /// Those of sampling and of the other ranks.
    fn train(
        &self,
        session: &Session<'_>,
        comm: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState>;

    /// Prepares the batches of some epochs for so many ranks, in their order, by some threads, and hands them to `take`.
    ///
    /// # Errors
    /// If the strategy is another one than `gradient` and `disaggregated`, or the graph cannot be read; those of `take`.
    fn prepare_epochs(
        &self,
        run: (usize, usize),
        threads: usize,
        take: &mut TakeBatch<'_>,
    ) -> Result<()>;

    /// Width of the features of input nodes, where batch workers can be asked for them apart from batches.
    #[cfg(feature = "serve")]
    fn features_apart(&self) -> Option<usize>;

    /// Prepares the batches that are asked for, by some threads, until nobody can ask any more.
    ///
    /// # Errors
    /// If the strategy is another one, or a part cannot be read.
    #[cfg(feature = "serve")]
    fn prepare_batches(
        &mut self,
        partition: &PartitionedDataset,
        asks: &Receiver<Ask>,
        by: (usize, &Worked),
    ) -> Result<()>;

    /// Names and numbers of nodes of the types with outputs.
    fn node_types(&self) -> Vec<(String, usize)>;

    /// The nodes of a split, ascending; none unless nodes are predicted.
    fn split(&self, name: &str) -> Option<&[u32]>;

    /// The scoring of edges, for tasks of edges.
    fn edge_scores(&self) -> Option<&dyn EdgeScores>;

    /// Computes an output of the model, see [`crate::TrainedRun::infer`].
    ///
    /// # Errors
    /// If the model has no such output, features cannot be read, or those of `keep`.
    fn infer(
        &self,
        weights: (&Params, &[Rows<'_>]),
        wanted: (Output, &[(usize, Vec<u32>)]),
        course: &Course<'_>,
        keep: &mut Keep<'_>,
    ) -> Result<Figures>;

    /// Embeddings of the heads and of the tails of edges just before their times, or after all edges of the dataset if there
    /// are none, where neighbors are sampled by time.
    ///
    /// # Errors
    /// If features cannot be read.
    fn embeddings_before(
        &self,
        weights: (&Params, &[Rows<'_>]),
        edges: (&Triples, &[i64]),
    ) -> Result<[Tensor; 2]>;

    /// Scores of weights and all embeddings on the whole graph, on one machine, with leakage
    /// counts.
    ///
    /// # Errors
    /// If they do not fit the graph.
    fn evaluate(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation>;
}

/// Parts that are in memory in turns.
enum InTurns<E: Encoder> {
    /// In that of this process.
    Here(Box<Eras<E>>),
    /// In that of batch workers.
    #[cfg(feature = "serve")]
    Elsewhere(EraCourse),
}

/// A task and its encoder over the whole graph and over parts.
pub(crate) struct Fit<T, E: Encoder> {
    config: RunConfig,
    task: T,
    whole: E,
    /// Parts that train alone, if they have graphs of their own; none for those of other ranks.
    parts: Vec<Option<E>>,
    /// Parts that are in memory in turns.
    in_turns: Option<InTurns<E>>,
}

impl<T: Task, E: Encoder> Fit<T, E> {
    /// `task` over the graph of `encoder`.
    pub fn new(config: &RunConfig, task: T, encoder: E) -> Self {
        Self { config: config.clone(), task, whole: encoder, parts: Vec::new(), in_turns: None }
    }

    fn encoders(&self) -> Encoders<'_, E> {
        Encoders { whole: &self.whole, parts: &self.parts }
    }

    /// Names of the node types with endpoints.
    fn endpoint_types(&self) -> Vec<String> {
        self.whole.type_names().unwrap_or_else(|| vec![self.task.node_type().into()])
    }

    /// The eras of the run over parts, and the part of each node of each type with endpoints.
    fn eras(&self, partition: &PartitionedDataset) -> Result<(EraCourse, Vec<EndpointType>)> {
        let names = self.endpoint_types();
        let owners = names.iter().map(|name| partition.id_map(name));
        let owners: Vec<Arc<IdMap>> = owners.collect::<Result<_>>()?;
        let course = EraCourse::new(&self.config, self.task.by_parts(&owners)?)?;
        if self.config.deal() == Deal::Nodes && !self.config.task.kind.is_of_nodes() {
            let [left, all] = course.untrained(1);
            tracing::warn!(
                "{left} of {all} training edges are not trained in the first epoch: their endpoints are not in memory \
                 together (disaggregated.deal = 'nodes')"
            );
        }
        Ok((course, names.into_iter().zip(owners).collect()))
    }

    /// The batches of a rank that were prepared beforehand.
    fn prepared(&self, rank: usize) -> Result<PreparedBatches> {
        let lacks = || Error::usage("sample.batches is not set");
        let dir = self.config.sample.batches.as_deref().ok_or_else(lacks)?;
        let manifest = Manifest::read(dir)?;
        PreparedBatches::open(dir, &manifest, (rank, self.config.train.seed))
    }

    /// Steps over the whole graph.
    fn mini_batch(&self) -> Result<MiniBatch<'_, T, E, Fixed<'_, E>>> {
        let graphs = (vec![&self.whole], &[0][..]);
        let graphs = Fixed::new(&self.config, &self.task, graphs)?;
        MiniBatch::new(&self.task, self.encoders(), graphs)
    }

    /// Steps over the parts in `mine`.
    fn on_parts(&self, mine: &[usize]) -> Result<MiniBatch<'_, T, E, Fixed<'_, E>>> {
        let graphs = if self.parts.is_empty() {
            vec![&self.whole; self.task.graphs()]
        } else {
            // Other ranks' parts are never drawn from.
            self.parts.iter().map(|part| part.as_ref().unwrap_or(&self.whole)).collect()
        };
        let graphs = Fixed::new(&self.config, &self.task, (graphs, mine))?;
        MiniBatch::new(&self.task, self.encoders(), graphs)
    }

    /// Requirements of steps in chunks: a model with stages, and a node task.
    fn chunks(&self) -> Result<(Source<'_>, NodeScores<'_>)> {
        match (self.whole.staged(), self.task.node_scores()) {
            (Some(source), Some(scores)) => Ok((source, scores)),
            _ => Err(Error::usage(
                "tensor.memory and tensor.chunks are for node classification without types",
            )
            .hint("leave them out, or train with sampled neighbors: train.strategy = 'gradient'")),
        }
    }
}

impl<T: Task, E: Encoder> Training for Fit<T, E> {
    fn metric(&self) -> String {
        self.task.metric()
    }

    fn smaller_is_better(&self) -> bool {
        self.task.smaller_is_better()
    }

    fn sizes(&self) -> Sizes {
        self.task.sizes()
    }

    fn divide(
        &mut self,
        partition: &PartitionedDataset,
        mine: &dyn Fn(usize) -> bool,
        ranks: usize,
    ) -> Result<()> {
        let owner = partition.id_map(self.task.node_type())?;
        self.task.set_parts(partition.num_parts(), owner.clone());
        if self.config.train.strategy == Strategy::Disaggregated {
            let (course, endpoints) = self.eras(partition)?;
            #[cfg(feature = "serve")]
            if self.config.disaggregated.batch_workers > 0 {
                self.in_turns = Some(InTurns::Elsewhere(course));
                return Ok(());
            }
            let source = EraSource::open(&self.config, partition, endpoints, course)?;
            self.in_turns = Some(InTurns::Here(Box::new(Eras::new(source, ranks))));
            return Ok(());
        }
        let alone = self.config.train.strategy.parts_train_alone();
        if !T::GRAPH_PER_PART || !alone {
            return Ok(());
        }
        partition
            .check_layout(PartLayout::EdgeCut)
            .while_doing(|| "train.strategy = 'average' trains on parts alone")?;
        for number in 0..partition.num_parts() {
            if !mine(number) {
                self.task.add_part(None)?;
                self.parts.push(None);
                continue;
            }
            let opening = || format!("opening part {number}");
            let part = partition.part(number).while_doing(opening)?;
            let encoder = self.whole.on_part(&self.config, &part).while_doing(opening)?;
            self.task.add_part(Some((&part, &encoder.seed_ids()))).while_doing(opening)?;
            self.parts.push(Some(encoder));
        }
        Ok(())
    }

    fn train(
        &self,
        session: &Session<'_>,
        comm: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        match self.config.train.strategy {
            Strategy::Gradient if self.config.sample.source == BatchSource::Batches => {
                let batches = self.prepared(comm.rank())?;
                let graphs = Prepared { batches: Arc::new(batches), model: &self.whole };
                let step = MiniBatch::new(&self.task, self.encoders(), graphs)?;
                AllReduce.train(session, &step, comm, state)
            }
            Strategy::Gradient => {
                self.task.begin(session.home)?;
                AllReduce.train(session, &self.mini_batch()?, comm, state)
            }
            Strategy::Average => {
                let mine = model_averaging::mine(comm, self.task.graphs());
                ModelAveraging.train(session, &self.on_parts(&mine)?, comm, state)
            }
            Strategy::Tensor if self.config.tensor.is_chunked() => {
                let (source, scores) = self.chunks()?;
                chunked::train(session, (source, scores), comm, state)
            }
            Strategy::Tensor => {
                let ways = |relation| self.whole.ways(relation);
                let model = self.whole.by_columns(comm)?;
                let step = FullGraph::new(&self.task, model, &ways, comm, session.threads.each)?;
                AllReduce.train(session, &step, comm, state)
            }
            Strategy::Disaggregated => {
                let lacks = |what: &str| Error::invalid(format!("{what} are not set"));
                let in_turns =
                    self.in_turns.as_ref().ok_or_else(|| lacks("the parts in memory"))?;
                match in_turns {
                    InTurns::Here(eras) => {
                        let graphs = InMemory { eras, model: &self.whole };
                        let step = MiniBatch::new(&self.task, self.encoders(), graphs)?;
                        let epochs = state.progress.epoch + 1..=self.config.train.epochs;
                        let loading = (&self.whole, session.threads.host);
                        let train = || AllReduce.train(session, &step, comm, state);
                        eras.beside(loading, epochs, train)
                    }
                    #[cfg(feature = "serve")]
                    InTurns::Elsewhere(course) => {
                        let feed = session.feed.ok_or_else(|| lacks("the batch workers"))?;
                        let graphs = Elsewhere { feed, course, model: &self.whole };
                        let step = MiniBatch::new(&self.task, self.encoders(), graphs)?;
                        AllReduce.train(session, &step, comm, state)
                    }
                }
            }
            Strategy::Auto => Err(Error::invalid("train.strategy = 'auto' was not resolved")),
        }
    }

    fn prepare_epochs(
        &self,
        run: (usize, usize),
        threads: usize,
        take: &mut TakeBatch<'_>,
    ) -> Result<()> {
        match (self.config.train.strategy, &self.in_turns) {
            (Strategy::Gradient, _) => self.mini_batch()?.prepare_epochs(run, threads, take),
            (Strategy::Disaggregated, Some(InTurns::Here(eras))) => {
                let graphs = InMemory { eras, model: &self.whole };
                let step = MiniBatch::new(&self.task, self.encoders(), graphs)?;
                let prepare = || step.prepare_epochs(run, threads, take);
                eras.beside((&self.whole, threads), 1..=run.0, prepare)
            }
            (strategy, _) => Err(Error::usage(format!(
                "batches of strategy '{}' are not prepared beforehand",
                strategy.name()
            ))
            .hint("set train.strategy to 'gradient' or 'disaggregated'")),
        }
    }

    #[cfg(feature = "serve")]
    fn features_apart(&self) -> Option<usize> {
        self.whole.features_apart()
    }

    #[cfg(feature = "serve")]
    fn prepare_batches(
        &mut self,
        partition: &PartitionedDataset,
        asks: &Receiver<Ask>,
        (threads, worked): (usize, &Worked),
    ) -> Result<()> {
        let owner = partition.id_map(self.task.node_type())?;
        // Edges of a batch are in the order of their parts.
        self.task.set_parts(partition.num_parts(), owner);
        let (course, endpoints) = self.eras(partition)?;
        let source = EraSource::open(&self.config, partition, endpoints, course)?;
        let (task, encoders) = (&self.task, self.encoders());
        BatchWorker { source, task, encoders, worked }.work(asks, threads)
    }

    fn node_types(&self) -> Vec<(String, usize)> {
        let counts = self.whole.num_nodes();
        self.endpoint_types().into_iter().zip(counts).collect()
    }

    fn split(&self, name: &str) -> Option<&[u32]> {
        self.task.split(name)
    }

    fn edge_scores(&self) -> Option<&dyn EdgeScores> {
        self.task.edge_scores()
    }

    fn infer(
        &self,
        (params, tables): (&Params, &[Rows<'_>]),
        (output, wanted): (Output, &[(usize, Vec<u32>)]),
        course: &Course<'_>,
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        let forwards = Forwards::new(&self.config, &self.whole);
        if !forwards.is_sampled() {
            return self.whole.infer((params, tables), (output, wanted), course, keep);
        }
        if !course.is_plain() {
            return Err(Error::usage("sampled neighbors are read batch by batch, by one process")
                .hint("leave out --order, --cache, --layers and --ranks, or --fanouts, unless the run has sample.time"));
        }
        forwards.sampled((params, tables), wanted, keep).map(|()| Figures::default())
    }

    fn embeddings_before(
        &self,
        weights: (&Params, &[Rows<'_>]),
        edges: (&Triples, &[i64]),
    ) -> Result<[Tensor; 2]> {
        let forwards = Forwards::new(&self.config, &self.whole);
        embeddings_before(&forwards, weights, edges, self.whole.num_nodes().len() > 1)
    }

    fn evaluate(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation> {
        let limited = self.config.tensor.memory.is_some();
        if self.config.train.strategy.takes_whole_graph() && limited {
            let (source, scores) = self.chunks()?;
            let deadline = Duration::from_secs_f64(self.config.train.deadline_seconds);
            let mut all = local::run(1, deadline, |comm| {
                let place = (comm as &dyn Communicator, 1);
                let threads = rayon::current_num_threads();
                chunked::with(&self.config, (source, scores), place, params, |step, _| {
                    step.evaluate_by(params, comm, threads)
                })
            })?;
            return Ok(all.swap_remove(0));
        }
        let found = self.task.evaluate_alone(self.encoders(), params, tables)?;
        let leakage = self.task.leakage(&self.whole, &|| self.mini_batch()?.leakage())?;
        Ok(Evaluation { leakage, ..found })
    }
}
