//! The likeliest endpoints of edges: `gnarl infer --top-k`.

use std::path::Path;
use std::time::Instant;

use gnarl_common::{Context, Error, Result, ResultExt};
use gnarl_graph::triples::Side;
use gnarl_graph::{Dataset, UserIds};
use gnarl_infer::export::{Cells, Column, Kind};
use gnarl_nn::decoders::Candidate;
use gnarl_train::{EdgeModel, Infer, TrainedRun};
use serde_json::{Value, json};

use super::args::InferArgs;
use super::destination::Destination;
use super::edge_source::relation;
use super::figures::Finished;
use super::ids::{Ids, Relations, kind};
use crate::output::while_busy;

/// Ranks the `k` likeliest endpoints of edges for each node of a file.
pub(super) fn run(
    args: &InferArgs,
    (run, by, dataset): (&TrainedRun, &dyn Infer, &Dataset),
    k: usize,
    start: Instant,
) -> Result<Value> {
    let refused = || {
        Error::usage("--top-k: the run does not predict edges")
            .hint("it goes with task.kind = 'link-prediction'")
    };
    let model = EdgeModel::of(run, by).filter(EdgeModel::ranks).ok_or_else(refused)?;
    let triple = model.triple().clone();
    let [heads, tails] = [&triple.src, &triple.dst].map(|name| UserIds::open(dataset, name));
    let (heads, tails) = (heads?, tails?);
    // Those of the side that is asked for are candidates for the others.
    let (side, path) = match (&args.heads, &args.tails) {
        (Some(heads), _) => (Side::Tail, heads),
        (None, Some(tails)) => (Side::Head, tails),
        (None, None) => return Err(refused()),
    };
    let (given_ids, candidate_ids) =
        if side == Side::Tail { (&heads, &tails) } else { (&tails, &heads) };
    let of = relation(args.relation.as_deref(), &model)?;
    let given: Vec<(u32, u32)> = nodes(given_ids, path)?.into_iter().map(|v| (v, of)).collect();
    let relations = Relations::of(&model);
    let mut columns = vec![Column::new("head", kind(&heads))];
    columns.extend(relations.column());
    columns.push(Column::new("tail", kind(&tails)));
    columns.extend([Column::new("score", Kind::Float), Column::new("rank", Kind::Integer)]);
    let destination = Destination::of(&args.out, args.force)?;
    let claim = destination.claim(&columns)?;
    let rows = model.num_top(side, &given, (k, args.unknown))?;
    let mut table = claim.create(&columns, rows)?;
    let mut keep = |query: usize, candidates: &[Candidate]| {
        let (node, of) = given[query];
        let same = Ids::of(given_ids, std::iter::repeat_n(node, candidates.len()));
        let others = Ids::of(candidate_ids, candidates.iter().map(|found| found.node));
        let (heads, tails) = if side == Side::Tail { (same, others) } else { (others, same) };
        let of = relations.ids(&vec![of; candidates.len()]);
        let scores: Vec<f32> = candidates.iter().map(|found| found.score).collect();
        let ranks: Vec<i64> = (1..=candidates.len() as i64).collect();
        let mut cells = vec![heads.cells()];
        cells.extend(of.as_ref().map(Ids::cells));
        cells.extend([tails.cells(), Cells::Floats(&scores), Cells::Integers(&ranks)]);
        table.append(&cells)
    };
    let work = || model.top(side, &given, (k, args.unknown), &mut keep);
    let figures = while_busy("inferring", &args.out, work)
        .while_doing(|| format!("ranking candidates by {}", args.run_dir.display()))?;
    let counts = json!({ "queries": given.len(), "rows": rows });
    let passes = vec![("embeddings".into(), figures)];
    let finished = Finished { args, start, dataset, columns: &columns, rows, passes };
    finished.deliver((destination, table.finish()?), counts)
}

/// The nodes whose ids are the lines of a file, in their order.
fn nodes(ids: &UserIds, path: &Path) -> Result<Vec<u32>> {
    let text = std::fs::read_to_string(path).at(path)?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return Err(Error::usage(format!("{}: no ids", path.display())));
    }
    let found = ids.find(&lines).map_err(|e| e.context(path.display().to_string()))?;
    Ok(found.into_iter().map(|node| node as u32).collect())
}
