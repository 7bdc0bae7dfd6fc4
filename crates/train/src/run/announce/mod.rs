//! Log lines before the first epoch: the run, unused settings and data, expected memory, and hints.

mod advice;
mod needs;
mod notice;
mod opening;
mod resident;

use std::path::Path;

use gnarl_common::Result;
use gnarl_common::memory::available;
use gnarl_config::RunConfig;

use gnarl_partition::PartitionManifest;

use crate::embeddings::TableSpec;
use crate::run::announce::resident::InMemory;
use crate::run::setup::Source;
use crate::task::Sizes;

/// A run about to start.
pub(crate) struct Opening<'a> {
    pub config: &'a RunConfig,
    pub source: &'a Source,
    pub sizes: Sizes,
    /// Run folder.
    pub dir: &'a Path,
    /// Number of weights, embeddings included.
    pub parameters: u64,
    /// Tables of embeddings.
    pub tables: &'a [TableSpec],
    pub partition: Option<&'a PartitionManifest>,
    pub hosts: usize,
}

impl Opening<'_> {
    /// Logs all lines. For the first rank.
    ///
    /// # Errors
    /// If features cannot be read.
    pub fn announce(&self) -> Result<()> {
        let Self { config, source, sizes, .. } = self;
        let text = opening::line(config, source, sizes, self.hosts);
        let parameters = opening::grouped(self.parameters);
        let dir = self.dir.display();
        tracing::info!("{text}; {} with {parameters} parameters; {dir}", config.model.name);
        if let Some(parts) = InMemory::of(config, source.dataset(), self.partition) {
            tracing::info!("{}", parts.line());
            if let Some(warning) = available().and_then(|memory| parts.warning(memory)) {
                tracing::warn!("{warning}");
            }
        }
        if sizes.splits[1] == 0 {
            tracing::warn!("no {} in 'valid': the last epoch counts as best", sizes.of);
        }
        if let Some(warning) = needs::warning(config, source, sizes) {
            tracing::warn!("{warning}");
        }
        if let Some(warning) = needs::of_tables(config, self.tables, self.hosts) {
            tracing::warn!("{warning}");
        }
        for notice in notice::of(config, source, !self.tables.is_empty(), self.partition) {
            tracing::warn!("{notice}");
        }
        advice::on_features(config, source.dataset())
    }
}
