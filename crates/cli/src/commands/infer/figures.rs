//! Figures of finished inferences: the line of JSON, and the page of `--report`.

use std::time::Instant;

use gnarl_common::Result;
use gnarl_common::memory::peak_rss;
use gnarl_graph::{Dataset, UserIds};
use gnarl_infer::export::{Cells, Column, Written};
use gnarl_infer::{Figures, Hub};
use gnarl_report::{Inference, write_inference_report};
use serde_json::{Value, json};

use super::args::InferArgs;
use super::destination::Destination;
use super::ids::Ids;

/// An inference whose predictions are written.
pub(super) struct Finished<'a> {
    pub args: &'a InferArgs,
    pub start: Instant,
    pub dataset: &'a Dataset,
    pub columns: &'a [Column],
    /// Rows of the predictions.
    pub rows: u64,
    /// Passes over the model: the name of each, and its figures.
    pub passes: Vec<(String, Figures)>,
}

impl Finished<'_> {
    /// Delivers the predictions, and returns the line of JSON, with `counts` of what they are of.
    ///
    /// # Errors
    /// If predictions or the report cannot be written.
    pub fn deliver(
        self,
        (destination, written): (Destination, Written),
        counts: Value,
    ) -> Result<Value> {
        let Self { args, start, columns, .. } = self;
        let files = destination.deliver(&written)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let seconds = start.elapsed().as_secs_f64();
        let mut line = json!({
            "out": args.out,
            "files": files,
            "bytes": written.bytes,
            "columns": names,
            "seconds": seconds,
            "layers": layers(self.passes.iter().map(|(_, figures)| figures)),
            "peak_rss_bytes": peak_rss(),
        });
        if let (Some(line), Value::Object(counts)) = (line.as_object_mut(), counts) {
            line.extend(counts);
        }
        if let Some(path) = &args.report {
            write_inference_report(path, &self.report(written.bytes, seconds)?)?;
            line["report"] = json!(path);
        }
        Ok(line)
    }

    fn report(self, bytes: u64, seconds: f64) -> Result<Inference> {
        let last = self.passes.iter().filter_map(|(_, figures)| figures.layers.last()).next();
        let hubs = last.map_or_else(Vec::new, |layer| layer.hubs.clone());
        let hubs = hubs.into_iter().map(|hub| Ok((self.name(hub)?, hub.inputs)));
        Ok(Inference {
            run: self.args.run_dir.display().to_string(),
            out: self.args.out.display().to_string(),
            written: (self.rows, bytes),
            seconds,
            peak: peak_rss(),
            hubs: hubs.collect::<Result<_>>()?,
            passes: self.passes,
        })
    }

    /// The id of a node, behind its type where there are several.
    fn name(&self, hub: Hub) -> Result<String> {
        let types = &self.dataset.manifest().node_types;
        let node_type = &types[hub.node_type].name;
        let ids = UserIds::open(self.dataset, node_type)?;
        let id = match Ids::of(&ids, std::iter::once(hub.node)).cells() {
            Cells::Integers(ids) => ids[0].to_string(),
            Cells::Texts(ids) => ids[0].to_string(),
            _ => hub.node.to_string(),
        };
        Ok(if types.len() > 1 { format!("{node_type} {id}") } else { id })
    }
}

/// Figures of each layer, of one pass over the model after the other.
fn layers<'f>(passes: impl Iterator<Item = &'f Figures>) -> Vec<Value> {
    let layer = |layer: &gnarl_infer::LayerFigures| {
        json!({
            "nodes": layer.nodes,
            "inputs": layer.inputs,
            "ranges": layer.ranges,
            "seconds": layer.seconds,
            "file_bytes": layer.spilled,
            "chunk_reads": layer.chunks.misses,
            "chunk_hits": layer.chunks.hits,
            "sweeps": layer.sweeps,
            "swept_bytes": layer.swept,
            "fetched_bytes": layer.fetched,
            "fill_seconds": layer.fill_seconds,
        })
    };
    passes.flat_map(|figures| figures.layers.iter().map(layer)).collect()
}
