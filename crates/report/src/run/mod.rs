//! The report of a run: one self-contained HTML file without network or scripts.
//!
//! In: the configuration and the results of the run, or of its epochs so far. Out: `report.html` in the run's folder:
//! results, curves, times, a chart of the partition, the resolved configuration. It is well-formed
//! XML too, and follows the reader's light or dark setting.

mod classes;
pub(crate) mod curves;
mod dataset;
mod figures;
mod live;
mod profile;
mod provenance;
mod relations;
mod stages;

#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

pub use live::LiveReport;

use gnarl_common::{Context, Result};
use gnarl_config::RunConfig;
use gnarl_train::Recorded;

use crate::page::text::{breakable, escape};
use crate::page::{growing_page, page_of, section, write};
use crate::partition::charts;
use crate::settings::changed;

/// Writes `report.html` to `dir`, entirely or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_run_report(dir: &Path, run: &Recorded) -> Result<()> {
    write(dir, &page(run)).while_doing(|| "writing the report")
}

/// The whole page.
fn page(run: &Recorded) -> String {
    let mut body = figures::headline(run);
    body += &figures::tiles(run);
    body += &section("Learning", &curves::learning(run));
    if let Some(found) = &run.classes {
        body += &section("Classes", &classes::tables(run, found));
    }
    if let Some(graph) = &run.graph {
        body += &section("Dataset", &dataset::table(graph));
    }
    if !run.relations.is_empty() {
        body += &section("Relations", &relations::table(&run.relations));
    }
    body += &section("Where the time went", &stages::time(run));
    if let Some(found) = &run.profile {
        body += &section("Profile", &profile::tables(found));
    }
    if let Some(manifest) = &run.partition {
        body += &section("Partition", &charts(manifest));
    }
    body += &section("Figures", &figures::table(run));
    body += &section("Configuration", &configuration(&run.config));
    if let Some(origin) = &run.provenance {
        body += &section("Provenance", &provenance::table(run, origin));
    }
    match run.finished || run.stopped {
        true => page_of(&figures::title(&run.config), &body),
        false => growing_page(&figures::title(&run.config), &body),
    }
}

/// The settings that differ from the defaults, and all of them folded.
fn configuration(config: &RunConfig) -> String {
    let found = changed(config).and_then(|changed| Ok((changed, config.to_toml()?)));
    let (changed, all) = match found {
        Ok(found) => found,
        Err(e) => {
            return format!(
                "<p class=\"warn\">Not representable as TOML: {}</p>",
                escape(&e.to_string())
            );
        }
    };
    let row = |(key, [value, default]): &(String, [String; 2])| {
        let [value, default] =
            [value, default].map(|text| if text.is_empty() { "–" } else { text });
        format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td></tr>",
            escape(key),
            breakable(value),
            breakable(default)
        )
    };
    let rows: String = changed.iter().map(row).collect();
    format!(
        "<div class=\"scroll long\"><table><tr><th>changed setting</th><td>value</td><td>default</td></tr>{rows}</table></div>\
         <details><summary>All settings</summary><pre>{}</pre></details>",
        escape(&all)
    )
}
