//! What is said of a run before its first epoch: what it is, what it makes no use of, what it will need, and
//! what is likely to help.

mod advice;
mod needs;
mod notice;
mod opening;

use std::path::Path;

use gnarl_common::Result;
use gnarl_config::RunConfig;

use crate::run::setup::Source;
use crate::task::Sizes;

/// A run about to start.
pub(crate) struct Opening<'a> {
    pub config: &'a RunConfig,
    pub source: &'a Source,
    pub sizes: Sizes,
    /// Where it will be.
    pub dir: &'a Path,
    /// Number of weights, embeddings included.
    pub parameters: u64,
    /// Whether embeddings are learnt.
    pub tables: bool,
    pub parts: usize,
    pub hosts: usize,
}

impl Opening<'_> {
    /// Logs it all. For the first rank.
    ///
    /// # Errors
    /// If features cannot be read.
    pub fn announce(&self) -> Result<()> {
        let Self { config, source, sizes, .. } = self;
        let text = opening::line(config, source, sizes, self.hosts);
        let parameters = opening::grouped(self.parameters);
        let dir = self.dir.display();
        tracing::info!("{text}; {} with {parameters} parameters; {dir}", config.model.name);
        if sizes.splits[1] == 0 {
            tracing::warn!("no {} in 'valid': the last epoch counts as best", sizes.of);
        }
        if let Some(warning) = needs::warning(config, source, sizes) {
            tracing::warn!("{warning}");
        }
        for notice in notice::of(config, source, self.tables, self.parts) {
            tracing::warn!("{notice}");
        }
        advice::on_features(config, source.dataset())
    }
}
