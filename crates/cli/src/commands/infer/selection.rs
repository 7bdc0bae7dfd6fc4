//! The nodes that predictions are asked for.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_graph::{Dataset, UserIds};
use gnarl_train::TrainedRun;

use super::args::InferArgs;

/// Nodes of one type, ascending, and their ids.
pub(super) struct Selection {
    /// Index of the type among those with outputs.
    pub of: usize,
    pub node_type: String,
    /// Number of nodes of the type.
    pub num_nodes: usize,
    pub nodes: Vec<u32>,
    pub ids: UserIds,
}

impl Selection {
    /// The nodes that `args` ask for.
    ///
    /// # Errors
    /// If there is no such node type, split, or id.
    pub fn of(args: &InferArgs, run: &TrainedRun, dataset: &Dataset) -> Result<Self> {
        let types = run.node_types();
        let names = || types.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let of = match &args.node_type {
            None if types.len() == 1 => 0,
            None => {
                let message = format!("predicted edges join several node types: {}", names());
                return Err(Error::usage(message).hint("choose one with --node-type"));
            }
            Some(name) => types.iter().position(|(known, _)| known == name).ok_or_else(|| {
                Error::usage(format!("--node-type: the run has no outputs for '{name}'"))
                    .hint(format!("it has: {}", names()))
            })?,
        };
        let (node_type, num_nodes) = types[of].clone();
        let ids = UserIds::open(dataset, &node_type)?;
        let nodes: Vec<u32> = match (&args.split, &args.ids) {
            (Some(split), _) => of_split(run, split)?,
            (None, Some(path)) => of_file(&ids, path)?,
            (None, None) => (0..num_nodes as u32).collect(),
        };
        if nodes.is_empty() {
            return Err(Error::usage("no node is selected")
                .hint("leave out --split and --ids to take all nodes"));
        }
        Ok(Self { of, node_type, num_nodes, nodes, ids })
    }
}

fn of_split(run: &TrainedRun, split: &str) -> Result<Vec<u32>> {
    let found = run.split(split).ok_or_else(|| match run.kind().is_of_nodes() {
        true => Error::usage(format!("--split: unknown split '{split}'"))
            .hint("known: train, valid, test"),
        false => Error::usage("--split: the run predicts edges, and nodes have no splits")
            .hint("leave it out, or name nodes with --ids"),
    })?;
    Ok(found.to_vec())
}

/// The nodes whose ids are the lines of a file.
fn of_file(ids: &UserIds, path: &Path) -> Result<Vec<u32>> {
    let text = std::fs::read_to_string(path).at(path)?;
    let lines: Vec<&str> = text.lines().collect();
    let found = ids.find(&lines).map_err(|e| e.context(path.display().to_string()))?;
    let mut nodes: Vec<u32> = found.into_iter().map(|node| node as u32).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() < lines.len() {
        let again = lines.len() - nodes.len();
        tracing::warn!("{}: {again} lines repeat ids, which are written once", path.display());
    }
    Ok(nodes)
}
