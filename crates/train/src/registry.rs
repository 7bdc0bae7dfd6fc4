//! Custom models and tasks of a program, by the names in run files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::Labels;
use gnarl_nn::ParamsBuilder;
use gnarl_nn::models::{self, Model, ModelConfig};

use crate::task::objective::{self, Objective};

/// Builds a model of the given sizes, adding its parameters to those of a run.
type Build = dyn Fn(&ModelConfig, &mut ParamsBuilder) -> Result<Box<dyn Model>> + Send + Sync;

/// Builds the objective of a task for a run and the labels of its nodes.
type BuildTask = dyn Fn(&RunConfig, &Labels) -> Result<Box<dyn Objective>> + Send + Sync;

/// Models of homogeneous graphs and tasks of nodes by name: those of the library and a program's own.
#[derive(Clone, Default)]
pub struct Registry {
    models: BTreeMap<String, Arc<Build>>,
    tasks: BTreeMap<String, Arc<BuildTask>>,
}

impl Registry {
    /// Adds a model, which run files name by `model.name`. `build` gets `[model]` with `in_dim` and `out_dim` filled in.
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
        if self.models.contains_key(name) || models::names().contains(&name) || name == "none" {
            return Err(
                Error::usage(format!("duplicate model '{name}'")).hint("choose another name")
            );
        }
        self.models.insert(name.into(), Arc::new(build));
        Ok(())
    }

    /// Adds a task of nodes, which run files name by `task.kind = "custom"` and `task.name`. `build` gets the run file
    /// and the labels of the dataset: the column `label`, or `value` where there is none.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the program has added a task of that name.
    pub fn add_task(
        &mut self,
        name: &str,
        build: impl Fn(&RunConfig, &Labels) -> Result<Box<dyn Objective>> + Send + Sync + 'static,
    ) -> Result<()> {
        if self.tasks.contains_key(name) {
            return Err(Error::usage(format!("there is a task '{name}' already"))
                .hint("give yours another name"));
        }
        self.tasks.insert(name.into(), Arc::new(build));
        Ok(())
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
        let name = config.task.name.as_deref().unwrap_or_default();
        let build = self.tasks.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.tasks.keys().map(String::as_str).collect();
            let error = Error::usage(format!("task.name: this program has no task '{name}'"));
            if known.is_empty() {
                error.hint("tasks of one's own are added by a program: Registry::add_task")
            } else {
                error.hint(format!("it has: {}", known.join(", ")))
            }
        })?;
        build(config, labels)
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
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("models", &self.models.keys())
            .field("tasks", &self.tasks.keys())
            .finish()
    }
}
