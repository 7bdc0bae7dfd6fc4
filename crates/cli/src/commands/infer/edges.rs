//! Scores of edges: `gnarl infer --edges`.

use std::time::Instant;

use gnarl_common::{Context, Error, Result};
use gnarl_config::TaskKind;
use gnarl_graph::{Dataset, Names, UserIds};
use gnarl_infer::export::{Cells, Column, Kind, Table};
use gnarl_nn::Tensor;
use gnarl_train::{EdgeBatch, EdgeModel, Infer, TrainedRun};
use serde_json::{Value, json};

use super::args::InferArgs;
use super::destination::Destination;
use super::edge_source::EdgeSource;
use super::figures::Finished;
use super::ids::{Ids, Relations, kind};
use super::outputs::{Outputs, What, Widths};
use crate::output::while_busy;

/// Scores the edges `which`.
pub(super) fn run(
    args: &InferArgs,
    (run, by, dataset): (&TrainedRun, &dyn Infer, &Dataset),
    which: &str,
    start: Instant,
) -> Result<Value> {
    let model = EdgeModel::of(run, by).ok_or_else(|| {
        Error::usage("--edges: the run predicts nodes").hint("leave it out, or name a run of edges")
    })?;
    let triple = model.triple().clone();
    let ids = [&triple.src, &triple.dst].map(|name| UserIds::open(dataset, name));
    let [heads, tails] = ids;
    let ids = [heads?, tails?];
    let source = EdgeSource::of(which, args.relation.as_deref(), &model, &ids)?;
    let outputs = outputs(&args.what, run, &model)?;
    let relations = Relations::of(&model);
    let columns = |last: usize| {
        let mut columns = vec![Column::new("head", kind(&ids[0]))];
        columns.extend(relations.column());
        columns.push(Column::new("tail", kind(&ids[1])));
        match &outputs {
            Some(outputs) => columns.extend(outputs.columns(Widths { embedding: 1, last })),
            None => columns.push(Column::new("score", Kind::Float)),
        }
        columns
    };
    let count = match &source {
        EdgeSource::All => run.num_edges(&triple)?,
        EdgeSource::Some(batch) => batch.edges.len() as u64,
    };
    let destination = Destination::of(&args.out, args.force)?;
    let mut claim = Some(destination.claim(&columns(1))?);
    let mut table: Option<Box<dyn Table>> = None;
    let mut keep = |batch: &EdgeBatch, scores: &Tensor| -> Result<()> {
        if let Some(claim) = claim.take() {
            table = Some(claim.create(&columns(scores.cols()), count)?);
        }
        let Some(table) = &mut table else { return Err(Error::invalid("rows after a failure")) };
        let edges = &batch.edges;
        let heads = Ids::of(&ids[0], edges.heads.iter().copied());
        let of = relations.ids(&edges.relations);
        let tails = Ids::of(&ids[1], edges.tails.iter().copied());
        let mut cells = vec![heads.cells()];
        cells.extend(of.as_ref().map(Ids::cells));
        cells.push(tails.cells());
        match &outputs {
            None => {
                cells.push(Cells::Floats(scores.data()));
                table.append(&cells)
            }
            Some(outputs) => outputs.cells(None, Some(scores), |labels| {
                let mut all = cells;
                all.extend(labels);
                table.append(&all)
            }),
        }
    };
    let work = || match &source {
        EdgeSource::All => model.score_all(&mut keep),
        EdgeSource::Some(batch) => model.score(batch, &mut keep),
    };
    let figures = while_busy("inferring", &args.out, work)
        .while_doing(|| format!("scoring edges by {}", args.run_dir.display()))?;
    let table = table.ok_or_else(|| Error::invalid("no edges were scored"))?;
    let written = (destination, table.finish()?);
    let columns = columns(1);
    let passes = vec![("embeddings".into(), figures)];
    let finished = Finished { args, start, dataset, columns: &columns, rows: count, passes };
    finished.deliver(written, json!({ "edges": count }))
}

/// The outputs of labeled edges; none where edges are predicted, and have a score.
///
/// # Errors
/// If the run has no output of `what`.
pub(in crate::commands) fn outputs(
    what: &[What],
    run: &TrainedRun,
    model: &EdgeModel<'_>,
) -> Result<Option<Outputs>> {
    if run.kind() == TaskKind::LinkPrediction {
        return match what.is_empty() {
            true => Ok(None),
            false => Err(Error::usage("--what: scores of predicted edges have no other output")
                .hint("leave it out; the column is score")),
        };
    }
    let several = model.has_several_labels();
    let names = || match Dataset::open(run.trained_on()) {
        Ok(trained) => Names::of_edges(&trained, model.triple(), "class_name"),
        Err(_) => Ok(None),
    };
    Outputs::of_edges(what, (run.kind(), several), names).map(Some)
}
