//! Pictures of a partition, and the pages they stand in: one HTML file that needs nothing else,
//! neither network nor scripts, follows the reader's light or dark setting, and is well-formed XML.

mod parts;
pub mod svg;
pub mod text;

use std::path::Path;

use gnarl_common::error::{Result, ResultExt};

pub use parts::partition;
use text::escape;

use crate::dataset::PartitionManifest;

/// File name of the page.
pub const REPORT: &str = "report.html";

/// Writes the page of a partition to `report.html` in `dir`.
///
/// # Errors
/// If the file cannot be written.
pub fn write_report(dir: &Path, manifest: &PartitionManifest) -> Result<()> {
    let path = dir.join(REPORT);
    std::fs::write(&path, page(manifest)).at(&path)
}

/// The page of a partition.
fn page(manifest: &PartitionManifest) -> String {
    let (graph, by) = (escape(&manifest.source.name), escape(&manifest.algorithm));
    let head = format!(
        "<header><h1>{graph} <span>in {} parts</span></h1><p>by {by}, seed {}</p></header>\n",
        manifest.parts, manifest.seed
    );
    let title = format!("{} in {} parts", manifest.source.name, manifest.parts);
    page_of(&title, &(head + &section("Partition", &partition(manifest))))
}

/// A whole page with its style; `title` is plain text, `body` HTML.
pub fn page_of(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{}</title><style>{}</style></head>\n<body><main>{body}\
         <footer>Written by gnarl {}.</footer></main></body></html>\n",
        escape(title),
        include_str!("style.css"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// A section of a page.
pub fn section(title: &str, content: &str) -> String {
    format!("<section><h2>{title}</h2>{content}</section>\n")
}
