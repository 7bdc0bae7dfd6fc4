//! The report of a run: one self-contained HTML file without network or scripts.
//!
//! In: the configuration and the results of the run. Out: `report.html` in the run's folder:
//! results, curves, times, a chart of the partition, the resolved configuration. It is well-formed
//! XML too, and follows the reader's light or dark setting.

mod curves;
mod figures;
mod relations;
mod stages;

#[cfg(test)]
mod tests;

use std::path::Path;

use gnarl_common::{Context, Result};
use gnarl_config::RunConfig;
use gnarl_train::Finished;

use crate::page::text::escape;
use crate::page::{page_of, section, write};
use crate::partition::charts;

/// Writes `report.html` to `dir`, entirely or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_run_report(dir: &Path, finished: &Finished) -> Result<()> {
    write(dir, &page(&finished.config, finished)).while_doing(|| "writing the report")
}

/// The whole page.
fn page(config: &RunConfig, finished: &Finished) -> String {
    let mut body = figures::headline(config, finished);
    body += &figures::tiles(finished);
    body += &section("Learning", &curves::learning(finished));
    if !finished.relations.is_empty() {
        body += &section("Relations", &relations::table(&finished.relations));
    }
    body += &section("Where the time went", &stages::time(finished));
    if let Some(manifest) = &finished.partition {
        body += &section("Partition", &charts(manifest));
    }
    body += &section("Figures", &figures::table(finished));
    body += &section("Configuration", &configuration(config));
    page_of(&figures::title(config), &body)
}

fn configuration(config: &RunConfig) -> String {
    match config.to_toml() {
        Ok(text) => format!("<pre>{}</pre>", escape(&text)),
        Err(e) => {
            format!("<p class=\"warn\">Not representable as TOML: {}</p>", escape(&e.to_string()))
        }
    }
}
