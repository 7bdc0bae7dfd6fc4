//! Pages: one HTML file that needs nothing else, neither network nor scripts, follows the reader's light
//! or dark setting, and is well-formed XML.

pub(crate) mod lines;
pub mod svg;
pub mod text;

use std::io::Write;
use std::path::Path;

use gnarl_common::staging::AtomicFile;
use gnarl_common::{Result, ResultExt};

use text::escape;

/// File name of a page.
pub(crate) const REPORT: &str = "report.html";

/// Writes a page to `report.html` in `dir`, entirely or not at all.
pub(crate) fn write(dir: &Path, page: &str) -> Result<()> {
    write_to(&dir.join(REPORT), page)
}

/// Writes a page to `path`, entirely or not at all.
pub(crate) fn write_to(path: &Path, page: &str) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(page.as_bytes()).at(path)?;
    file.commit()
}

/// Seconds after which a growing page is read again.
const REFRESH: u32 = 10;

/// A whole page with its style; `title` is plain text, `body` HTML.
pub(crate) fn page_of(title: &str, body: &str) -> String {
    page_with("", title, body)
}

/// A page that is rewritten: browsers read it again from time to time.
pub(crate) fn growing_page(title: &str, body: &str) -> String {
    page_with(&format!("<meta http-equiv=\"refresh\" content=\"{REFRESH}\"/>"), title, body)
}

fn page_with(head: &str, title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>{head}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{}</title><style>{}</style></head>\n<body><main>{body}\
         <footer>Written by gnarl {}.</footer></main></body></html>\n",
        escape(title),
        include_str!("style.css"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// A section of a page.
pub(crate) fn section(title: &str, content: &str) -> String {
    format!("<section><h2>{title}</h2>{content}</section>\n")
}
