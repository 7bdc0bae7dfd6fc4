//! Custom models, tasks, samplers, partitioners and outer optimizers of a program, by the names in run files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_config::{AverageSection, Method, Outer, RunConfig, TaskKind};
use gnarl_graph::Labels;
use gnarl_graph::blocks::Schema;
use gnarl_nn::ParamsBuilder;
use gnarl_nn::models::heterogeneous::{self, HeteroModel, Source};
use gnarl_nn::models::{self, Model, ModelConfig};
use gnarl_partition::VertexPartitioner;
use gnarl_sample::{SampleGraph, Sampler};

use crate::sync::outer::{self, OuterOptimizer};
use crate::task::objective::{self, Objective};

type Entries<T> = BTreeMap<String, Arc<T>>;

type BuildModel = dyn Fn(&ModelConfig, &mut ParamsBuilder) -> Result<Box<dyn Model>> + Send + Sync;

type BuildHeteroModel = dyn Fn(&ModelConfig, &Schema, &[Source], &mut ParamsBuilder) -> Result<Box<dyn HeteroModel>>
    + Send
    + Sync;

type BuildTask = dyn Fn(&RunConfig, &Labels) -> Result<Box<dyn Objective>> + Send + Sync;

pub(crate) type BuildSampler =
    dyn Fn(&RunConfig, &SampleGraph, &[u32]) -> Result<Box<dyn Sampler>> + Send + Sync;

type BuildOuter = dyn Fn(&AverageSection, usize) -> Result<Box<dyn OuterOptimizer>> + Send + Sync;

/// What a program adds to the library, by the names in run files. A name is found in the program first, then in the
/// library; those of the library cannot be taken.
#[derive(Clone, Default)]
pub struct Registry {
    models: Entries<BuildModel>,
    hetero_models: Entries<BuildHeteroModel>,
    tasks: Entries<BuildTask>,
    samplers: Entries<BuildSampler>,
    partitioners: Entries<dyn VertexPartitioner>,
    outer_optimizers: Entries<BuildOuter>,
}

impl Registry {
    /// Adds a model of homogeneous graphs, which run files name by `model.name`. `build` gets `[model]` with `in_dim`
    /// and `out_dim` filled in.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is a model of that name.
    pub fn add_model(
        &mut self,
        name: &str,
        build: impl Fn(&ModelConfig, &mut ParamsBuilder) -> Result<Box<dyn Model>>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        let taken = models::names().contains(&name) || name == "none";
        insert(&mut self.models, "model", (name, taken), Arc::new(build))
    }

    /// Adds a model of heterogeneous graphs, which run files name by `model.name`. `build` gets `[model]` with `out_dim`
    /// filled in, the node and edge types, and the input of each node type.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is a heterogeneous model of that name.
    pub fn add_hetero_model(
        &mut self,
        name: &str,
        build: impl Fn(
            &ModelConfig,
            &Schema,
            &[Source],
            &mut ParamsBuilder,
        ) -> Result<Box<dyn HeteroModel>>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        let taken = heterogeneous::names().contains(&name) || name == "none";
        insert(&mut self.hetero_models, "heterogeneous model", (name, taken), Arc::new(build))
    }

    /// Adds a task of nodes, which run files name by `task.kind = "custom"` and `task.name`. `build` gets the run file
    /// and the labels of the dataset: the column `label`, or `value` where there is none; where runs read parts of other hosts,
    /// only of nodes in a split.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has added a task of that name.
    pub fn add_task(
        &mut self,
        name: &str,
        build: impl Fn(&RunConfig, &Labels) -> Result<Box<dyn Objective>> + Send + Sync + 'static,
    ) -> Result<()> {
        insert(&mut self.tasks, "task", (name, false), Arc::new(build))
    }

    /// Adds a sampler of homogeneous graphs, which run files name by `sample.method = "custom"` and `sample.name`.
    /// `build` gets the run file, the graph or part, and the training nodes there.
    ///
    /// A run gives the same numbers on any number of workers if what is drawn for a seed depends only on the key and
    /// the node, as the trait [`Sampler`] requires.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has added a sampler of that name.
    pub fn add_sampler(
        &mut self,
        name: &str,
        build: impl Fn(&RunConfig, &SampleGraph, &[u32]) -> Result<Box<dyn Sampler>>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        insert(&mut self.samplers, "sampler", (name, false), Arc::new(build))
    }

    /// Adds a partitioner, which run files name by `partition.algorithm`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is a partitioner of its name.
    pub fn add_partitioner(&mut self, partitioner: impl VertexPartitioner + 'static) -> Result<()> {
        let name = partitioner.name();
        let taken = gnarl_partition::names().contains(&name);
        insert(&mut self.partitioners, "partitioner", (name, taken), Arc::new(partitioner))
    }

    /// Adds an outer optimizer of model averaging, which run files name by `average.outer = "custom"` and
    /// `average.name`. `build` gets `[average]` and the number of weights.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has added an outer optimizer of that name.
    pub fn add_outer_optimizer(
        &mut self,
        name: &str,
        build: impl Fn(&AverageSection, usize) -> Result<Box<dyn OuterOptimizer>>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        insert(&mut self.outer_optimizers, "outer optimizer", (name, false), Arc::new(build))
    }

    /// The objective of a task of nodes.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has no such task, or it is not one of these labels.
    pub(crate) fn objective(
        &self,
        config: &RunConfig,
        labels: &Labels,
    ) -> Result<Box<dyn Objective>> {
        if config.task.kind != TaskKind::Custom {
            return objective::of_labels(config, labels);
        }
        find(&self.tasks, ("task", "add_task"), ("task.name", config.task.name.as_deref()))?(
            config, labels,
        )
    }

    /// The model that `config` names, and its parameters added to `params`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is none, or sizes are impossible.
    pub(crate) fn model(
        &self,
        config: &ModelConfig,
        params: &mut ParamsBuilder,
    ) -> Result<Box<dyn Model>> {
        match self.models.get(&config.name) {
            Some(build) => build(config, params),
            None => models::add(config, params),
        }
    }

    /// The heterogeneous model that `config` names, and its parameters added to `params`.
    ///
    /// # Errors
    /// As [`Registry::model`].
    pub(crate) fn hetero_model(
        &self,
        config: &ModelConfig,
        (schema, sources): (&Schema, &[Source]),
        params: &mut ParamsBuilder,
    ) -> Result<Box<dyn HeteroModel>> {
        match self.hetero_models.get(&config.name) {
            Some(build) => build(config, schema, sources, params),
            None => heterogeneous::add(config, schema, sources, params),
        }
    }

    /// Returns whether the program has a heterogeneous model of that name.
    pub(crate) fn has_hetero_model(&self, name: &str) -> bool {
        self.hetero_models.contains_key(name)
    }

    /// The program's sampler of `config`; none if it is one of the library.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has no such sampler.
    pub(crate) fn sampler(&self, config: &RunConfig) -> Result<Option<Arc<BuildSampler>>> {
        if config.sample.method != Method::Custom {
            return Ok(None);
        }
        let key = ("sample.name", config.sample.name.as_deref());
        find(&self.samplers, ("sampler", "add_sampler"), key).cloned().map(Some)
    }

    /// The program's partitioner of that name; none if the library is to look for it.
    pub(crate) fn partitioner(&self, name: &str) -> Option<&dyn VertexPartitioner> {
        self.partitioners.get(name).map(|found| &**found)
    }

    /// The outer optimizer of `section`, of so many weights.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has no such optimizer.
    pub(crate) fn outer_optimizer(
        &self,
        section: &AverageSection,
        weights: usize,
    ) -> Result<Box<dyn OuterOptimizer>> {
        if section.outer != Outer::Custom {
            return Ok(outer::build(section, weights));
        }
        let key = ("average.name", section.name.as_deref());
        find(&self.outer_optimizers, ("outer optimizer", "add_outer_optimizer"), key)?(
            section, weights,
        )
    }
}

fn insert<T: ?Sized>(
    entries: &mut Entries<T>,
    kind: &str,
    (name, taken): (&str, bool),
    entry: Arc<T>,
) -> Result<()> {
    if taken || entries.contains_key(name) {
        return Err(Error::usage(format!("duplicate {kind} '{name}'")).hint("choose another name"));
    }
    entries.insert(name.into(), entry);
    Ok(())
}

/// The entry that the run file names by `key`; `method` adds entries of this kind.
fn find<'e, T: ?Sized>(
    entries: &'e Entries<T>,
    (kind, method): (&str, &str),
    (key, name): (&str, Option<&str>),
) -> Result<&'e Arc<T>> {
    let name = name.unwrap_or_default();
    entries.get(name).ok_or_else(|| {
        let error = Error::usage(format!("{key}: this program has no {kind} '{name}'"));
        if entries.is_empty() {
            return error
                .hint(format!("a custom {kind} is added by a program: Registry::{method}"));
        }
        let known: Vec<&str> = entries.keys().map(String::as_str).collect();
        error.hint(format!("it has: {}", known.join(", ")))
    })
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("models", &self.models.keys())
            .field("hetero_models", &self.hetero_models.keys())
            .field("tasks", &self.tasks.keys())
            .field("samplers", &self.samplers.keys())
            .field("partitioners", &self.partitioners.keys())
            .field("outer_optimizers", &self.outer_optimizers.keys())
            .finish()
    }
}
