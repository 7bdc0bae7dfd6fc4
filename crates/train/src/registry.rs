//! Models that a program adds to those of the library, by the names that run files give them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_nn::ParamsBuilder;
use gnarl_nn::models::{self, Model, ModelConfig};

/// Builds a model of the sizes given, whose parameters it adds to those of a run.
type Build = dyn Fn(&ModelConfig, &mut ParamsBuilder) -> Result<Box<dyn Model>> + Send + Sync;

/// Models of homogeneous graphs by name: those of the library and a program's own.
#[derive(Clone, Default)]
pub struct Registry {
    models: BTreeMap<String, Arc<Build>>,
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
            return Err(Error::usage(format!("there is a model '{name}' already"))
                .hint("give yours another name"));
        }
        self.models.insert(name.into(), Arc::new(build));
        Ok(())
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
        f.debug_set().entries(self.models.keys()).finish()
    }
}
