//! The report of an inference: its time and reads by layer, and its hubs.

mod layers;

use std::path::Path;

use gnarl_common::{Context, Result};
use gnarl_infer::Figures;

use crate::page::text::{bytes, count, escape, large, seconds};
use crate::page::{page_of, section, write_to};

/// The figures of an inference.
#[derive(Debug, Clone, Default)]
pub struct Inference {
    /// The run whose weights it has, as shown to the reader.
    pub run: String,
    /// The place of the predictions.
    pub out: String,
    /// Rows written, and bytes.
    pub written: (u64, u64),
    /// Seconds from the start of the command.
    pub seconds: f64,
    /// Peak resident memory in bytes.
    pub peak: u64,
    /// Passes over the model: the name of each, and its figures.
    pub passes: Vec<(String, Figures)>,
    /// Nodes with the most inputs in the last layer: their ids, and the inputs.
    pub hubs: Vec<(String, u64)>,
}

/// Writes a page to `path`, entirely or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_inference_report(path: &Path, inference: &Inference) -> Result<()> {
    write_to(path, &page(inference)).while_doing(|| "writing the report")
}

fn page(inference: &Inference) -> String {
    let Inference { run, out, written: (rows, _), .. } = inference;
    let mut body = format!(
        "<header><h1>{} <span>to</span> {}</h1><p>{} rows</p></header>\n",
        escape(run),
        escape(out),
        count(*rows),
    );
    body += &tiles(inference);
    body += &section("Layers", &layers::time(&inference.passes));
    body += &section("Reads", &layers::table(&inference.passes));
    if !inference.hubs.is_empty() {
        body += &section("Hubs", &hubs(&inference.hubs));
    }
    page_of(&format!("{run} to {out}"), &body)
}

fn tiles(inference: &Inference) -> String {
    let (rows, written) = inference.written;
    let tiles = [
        (seconds(inference.seconds), "in all"),
        (large(rows as f64 / inference.seconds.max(f64::MIN_POSITIVE)), "rows a second"),
        (bytes(written), "written"),
        (bytes(inference.peak), "peak resident memory"),
    ];
    let tile = |(value, name): &(String, &str)| {
        format!("<div><b>{}</b><span>{name}</span></div>", escape(value))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.iter().map(tile).collect::<String>())
}

/// The nodes with the most inputs.
fn hubs(hubs: &[(String, u64)]) -> String {
    let row = |(id, inputs): &(String, u64)| {
        format!("<tr><th>{}</th><td>{}</td></tr>", escape(id), count(*inputs))
    };
    let rows = hubs.iter().map(row).collect::<String>();
    format!("<table><tr><th>node</th><td>inputs in the last layer</td></tr>{rows}</table>")
}

#[cfg(test)]
mod tests {
    use gnarl_infer::LayerFigures;

    use super::*;

    #[test]
    fn a_page_has_all_layers_and_hubs() {
        let layer = |seconds: f64| LayerFigures {
            nodes: 1234,
            seconds,
            fill_seconds: seconds / 10.0,
            fetched: 4096,
            ..LayerFigures::default()
        };
        let figures = Figures { layers: vec![layer(2.0), layer(0.5)] };
        let inference = Inference {
            run: "runs/<mine>".into(),
            out: "nodes.parquet".into(),
            written: (1000, 1 << 20),
            seconds: 3.0,
            passes: vec![("logits".into(), figures)],
            hubs: vec![("user \"7\"".into(), 9000)],
            ..Inference::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        write_inference_report(&path, &inference).unwrap();
        let page = std::fs::read_to_string(path).unwrap();
        for found in ["runs/&lt;mine&gt;", "logits 1", "logits 2", "4.00 KiB", "user &quot;7&quot;"]
        {
            assert!(page.contains(found), "{found}: {page}");
        }
        assert!(!page.contains("chunks"), "columns without figures are left out: {page}");
    }
}
