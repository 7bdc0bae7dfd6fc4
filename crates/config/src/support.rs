//! The supported combinations of task, graph, model, sampler, placement and strategy, and the
//! reasons against others.
//!
//! A single list of rules for configuration checks, setup, predictions and `auto`; docs/support.md
//! is generated from it.

use gnarl_common::{Error, Result};
use gnarl_graph::Manifest;
use gnarl_nn::models::{Aggregator, check_columns, heterogeneous, names};

use crate::{BatchSource, Deal, EvaluateOn, Method, Parts, RunConfig, Strategy, TaskKind};

/// A run, with the properties of its dataset that rules depend on.
#[derive(Clone, Copy)]
pub struct Combination<'a> {
    /// The run file.
    pub run: &'a RunConfig,
    /// True if the graph has several types of nodes or of edges, or `task.node_type` names one.
    pub heterogeneous: bool,
}

/// Returns the reason to reject a combination, if there is one.
type Rule = fn(Combination<'_>) -> Option<Error>;

/// The first matching rule gives the reason.
const RULES: &[Rule] = &[
    servers_and_lists,
    custom_sampler,
    weights_of_messages,
    edge_features,
    times,
    walks,
    subgraphs,
    partition_and_tensor,
    parts_in_memory,
    prepared_batches,
    edges_without_model,
    links_without_model,
    chunks,
    feature_slices,
    sampling_and_tensor,
];

/// Returns whether a run trains on a dataset as a heterogeneous graph: it has several types, or the run file names one.
pub fn is_heterogeneous(run: &RunConfig, dataset: &Manifest) -> bool {
    run.task.node_type.is_some() || dataset.node_types.len() > 1 || dataset.edge_types.len() > 1
}

impl Combination<'_> {
    /// Returns whether the run is supported.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] with the reason if it does not.
    pub fn check(self) -> Result<()> {
        match RULES.iter().find_map(|rule| rule(self)) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    fn predicts_nodes(self) -> bool {
        self.run.task.kind.is_of_nodes()
    }

    fn model(self) -> &'static str {
        let name = self.run.model.name.as_str();
        let known = names().iter().chain(heterogeneous::names()).chain(&["none"]);
        known.copied().find(|known| *known == name).unwrap_or("")
    }

    fn served(self) -> bool {
        self.run.partition.servers.is_some()
    }

    fn tensor(self) -> bool {
        self.run.train.strategy.takes_whole_graph()
    }

    fn draws_subgraphs(self) -> bool {
        let method = self.run.sample.method;
        !method.has_fanouts() && method != Method::Full
    }
}

fn servers_and_lists(c: Combination<'_>) -> Option<Error> {
    if !c.served() {
        return None;
    }
    let relational = heterogeneous::names().contains(&c.model()) && !names().contains(&c.model());
    ((c.heterogeneous || relational) && c.run.cache.lists.as_u64() > 0).then(|| {
        Error::usage("cache.lists replicates lists of graphs with one edge type only")
            .hint("leave it out; cache.memory keeps features of graphs of any types")
    })
}

fn custom_sampler(c: Combination<'_>) -> Option<Error> {
    if c.run.sample.method != Method::Custom || c.model() == "none" {
        return None;
    }
    if c.run.sample.name.is_none() {
        return Some(
            Error::usage("sample.method = 'custom' and no sample.name")
                .hint("set sample.name to the name under which the program adds its sampler"),
        );
    }
    let methods = "set sample.method to 'neighbor', 'labor', 'exact', 'weighted' or 'full'";
    if c.served() {
        let message =
            "custom samplers draw from graphs on this host, not from parts that are served";
        return Some(Error::usage(message).hint(methods));
    }
    if c.heterogeneous {
        return Some(Error::usage("custom samplers draw from homogeneous graphs").hint(methods));
    }
    c.tensor().then(|| {
        Error::usage("train.strategy = 'tensor' takes all neighbors and does not sample")
            .hint("leave out sample.method, or set train.strategy to 'gradient'")
    })
}

/// Message graphs of links and labeled edges have no edge weights, but those of heterogeneous graphs.
fn weights_of_messages(c: Combination<'_>) -> Option<Error> {
    let draws = c.run.sample.method == Method::Weighted && c.model() != "none" && !c.tensor();
    (draws && !c.predicts_nodes() && !c.heterogeneous).then(|| {
        Error::usage(
            "sample.method = 'weighted' draws by edge weights, and the messages of edge tasks pass over edges without \
             weights, in both directions",
        )
        .hint("set sample.method to 'neighbor'")
    })
}

/// Features of edges lie with the edges of a graph, and come with those that samplers choose.
fn edge_features(c: Combination<'_>) -> Option<Error> {
    if !c.run.model.edge_features {
        return None;
    }
    if !c.predicts_nodes() {
        return Some(
            Error::usage(
                "model.edge_features: the messages of edge tasks pass over edges without their features, in both \
                 directions",
            )
            .hint("leave it out; task.edge_features gives features of edges to the decoder 'mlp'"),
        );
    }
    c.heterogeneous.then(|| {
        Error::usage("model.edge_features: heterogeneous models read no features of edges")
            .hint("leave it out")
    })
}

/// Messages to a node depend on the time of its seed, so that batches alone have them.
fn times(c: Combination<'_>) -> Option<Error> {
    let sample = &c.run.sample;
    sample.time?;
    if c.run.task.kind == TaskKind::LinkPrediction
        && c.run.samples_by_time()
        && !matches!(&*c.run.negatives.kind, "uniform" | "file")
    {
        return Some(
            Error::usage(format!(
                "sample.time: a negative is embedded as of the time of its edge, and those of negatives.kind = '{}' are \
                 shared by edges of different times",
                c.run.negatives.kind
            ))
            .hint("set negatives.kind to 'uniform', and negatives.count to a small number such as 5"),
        );
    }
    if c.served() && c.run.cache.lists.as_u64() > 0 {
        return Some(
            Error::usage("sample.time: cache.lists replicates lists without times")
                .hint("leave it out; cache.memory keeps features"),
        );
    }
    if c.tensor() {
        return Some(
            Error::usage("sample.time: train.strategy = 'tensor' takes all edges at once")
                .hint("set train.strategy to 'gradient', or leave out sample.time"),
        );
    }
    (!matches!(sample.method, Method::Neighbor | Method::Exact | Method::Full)).then(|| {
        Error::usage("sample.time samples neighbors up to their fan-outs, or all of them")
            .hint("set sample.method to 'neighbor', 'exact' or 'full'")
    })
}

/// Neighborhoods by walks are those of homogeneous graphs, and are no sample of a node's edges.
fn walks(c: Combination<'_>) -> Option<Error> {
    if !c.run.sample.method.is_by_walks() || c.model() == "none" || c.tensor() {
        return None;
    }
    let methods = "set sample.method to 'neighbor', 'labor', 'exact', 'weighted' or 'full'";
    if c.served() {
        let message =
            "neighborhoods by walks are found in graphs on this host, not in parts that are served";
        return Some(Error::usage(message).hint(methods));
    }
    let relational = heterogeneous::names().contains(&c.model()) && !names().contains(&c.model());
    if c.heterogeneous || relational {
        return Some(
            Error::usage("neighborhoods by walks are those of graphs without types").hint(methods),
        );
    }
    if c.run.model.edge_features {
        let message =
            "model.edge_features: neighborhoods by walks are not edges, and have no features";
        return Some(Error::usage(message).hint(methods));
    }
    let sums = matches!(c.model(), "gcn" | "gin" | "sgc") || c.run.model.decoupled;
    sums.then(|| {
        Error::usage(format!(
            "{} adds up over the edges of a node, of which walks are no sample",
            c.model()
        ))
        .hint("set model.name to 'sage', 'ngnn', 'gat' or 'gatv2'")
    })
}

fn subgraphs(c: Combination<'_>) -> Option<Error> {
    // Full-graph steps do not sample, and neither do embeddings without a model.
    if !c.draws_subgraphs() || c.model() == "none" {
        return None;
    }
    if c.served() {
        return Some(
            Error::usage("subgraphs are drawn from whole graphs only")
                .hint("leave out partition.servers, or set sample.method to 'neighbor' or 'exact'"),
        );
    }
    if !c.predicts_nodes() {
        return Some(
            Error::usage("batches of edges draw neighbors, not subgraphs")
                .hint("set sample.method to 'neighbor'"),
        );
    }
    c.heterogeneous.then(|| {
        Error::usage("subgraphs are drawn from graphs without types only")
            .hint("set sample.method to 'neighbor', 'labor', 'exact', 'weighted' or 'full'")
    })
}

fn partition_and_tensor(c: Combination<'_>) -> Option<Error> {
    let section = &c.run.partition;
    let parts = section.parts != Parts::Count(1) || section.path.is_some() || c.served();
    (c.tensor() && parts).then(|| {
        Error::usage(
            "tensor-parallel training splits the feature dimension and does not use a graph partition",
        )
        .hint("leave out [partition]: train.strategy = 'tensor' shares out feature slices, not parts")
    })
}

/// Kinds of negatives that are drawn among the nodes in memory.
const IN_MEMORY: [&str; 4] = ["joint", "uniform", "in-batch", "all"];

/// The graph of the parts in memory has lists and features of nodes, and no more.
fn parts_in_memory(c: Combination<'_>) -> Option<Error> {
    if c.run.train.strategy != Strategy::Disaggregated {
        return None;
    }
    let key = "train.strategy = 'disaggregated'";
    let other = "set train.strategy to 'gradient'";
    let section = &c.run.partition;
    if section.path.is_none() && c.run.disaggregated.batch_workers > 0 {
        return Some(
            Error::usage("batch workers read the same parts: disaggregated.batch_workers requires partition.path")
                .hint("make the parts by 'gnarl partition --layout storage'"),
        );
    }
    if section.path.is_none() && section.parts == Parts::Count(1) {
        return Some(
            Error::usage(format!("{key} has some parts of the graph in memory, and there is one"))
                .hint("set partition.parts, for example to 16, or partition.path to parts of --layout storage"),
        );
    }
    if section.path.is_none() && section.parts == Parts::Auto {
        return Some(
            Error::usage(format!("{key} has several parts in memory, and partition.parts = 'auto' makes them as large as it"))
                .hint("set partition.parts to a number, for example 32"),
        );
    }
    let sample = &c.run.sample;
    let refused = [
        (
            !c.predicts_nodes() && c.model() == "none",
            "keeps no embeddings of nodes with parts: model.name = 'none'",
        ),
        (
            c.predicts_nodes() && c.run.deal() == Deal::Pairs,
            "has pairs of parts for edges, and this task predicts nodes: disaggregated.deal = 'pairs'",
        ),
        (
            c.run.task.kind == TaskKind::LinkPrediction
                && !IN_MEMORY.contains(&c.run.negatives.kind.as_str()),
            "draws negatives among nodes in memory: negatives.kind is none of 'joint', 'uniform', 'in-batch' and 'all'",
        ),
        (c.served(), "reads parts from files of this host, not from partition.servers"),
        (c.run.model.edge_features, "has no features of edges: model.edge_features"),
        (sample.time.is_some(), "has no times of edges: sample.time"),
        (sample.method == Method::Weighted, "has no weights of edges: sample.method = 'weighted'"),
        (
            sample.method == Method::Custom,
            "draws by the samplers of gnarl, not by sample.method = 'custom'",
        ),
        (c.draws_subgraphs(), "draws neighbors of seeds, not subgraphs"),
        (
            c.run.train.evaluate_on == EvaluateOn::Parts,
            "has parts without halo nodes, on which there is no evaluation: train.evaluate_on = 'parts'",
        ),
    ];
    let found = refused.iter().find(|(applies, _)| *applies);
    found.map(|(_, reason)| Error::usage(format!("{key} {reason}")).hint(other))
}

/// Prepared batches have blocks of a model, and have been shared out to ranks.
fn prepared_batches(c: Combination<'_>) -> Option<Error> {
    let sample = &c.run.sample;
    if sample.source != BatchSource::Batches {
        return None;
    }
    let key = "sample.source = 'batches'";
    if sample.batches.is_none() {
        return Some(
            Error::usage(format!("{key} reads prepared batches: sample.batches is not set"))
                .hint("set it to a folder made by 'gnarl sample'"),
        );
    }
    if let Some(reason) = unprepared(c) {
        return Some(Error::usage(format!("{key} {reason}")).hint("set sample.source to 'graph'"));
    }
    let strategy = c.run.train.strategy;
    let of_batches = matches!(strategy, Strategy::Gradient | Strategy::Auto);
    (!of_batches).then(|| {
        let name = strategy.name();
        Error::usage(format!("{key} is trained by strategy 'gradient', not by '{name}'"))
            .hint("set train.strategy to 'gradient'")
    })
}

/// The reason why batches of a run cannot be prepared beforehand.
fn unprepared(c: Combination<'_>) -> Option<&'static str> {
    [
        (c.model() == "none", "has no embeddings of nodes: model.name = 'none'"),
        (
            c.run.negatives.kind == "local" && c.run.task.kind == TaskKind::LinkPrediction,
            "has no parts to draw in: negatives.kind = 'local'",
        ),
    ]
    .into_iter()
    .find_map(|(applies, reason)| applies.then_some(reason))
}

fn edges_without_model(c: Combination<'_>) -> Option<Error> {
    (c.run.task.kind.is_of_edges() && c.model() == "none").then(|| {
        Error::usage("edge prediction needs an encoder")
            .hint("set model.name, for example 'mlp' for node features only")
    })
}

fn links_without_model(c: Combination<'_>) -> Option<Error> {
    if c.run.task.kind != TaskKind::LinkPrediction || c.model() != "none" {
        return None;
    }
    if c.heterogeneous {
        let message = "model.name is 'none', and the graph has several types";
        return Some(Error::usage(message).hint("model.name = 'mlp' takes the features of nodes"));
    }
    c.tensor().then(|| {
        Error::usage(
            "train.strategy = 'tensor' slices the features of messages, and model.name is 'none', which \
             passes no messages",
        )
        .hint("set train.strategy to 'gradient', or model.name to an encoder")
    })
}

fn chunks(c: Combination<'_>) -> Option<Error> {
    if !c.tensor() || !c.run.tensor.is_chunked() {
        return None;
    }
    if !c.predicts_nodes() || c.heterogeneous {
        return Some(
            Error::usage(
                "tensor.memory and tensor.chunks are for node classification without types",
            )
            .hint("leave them out, or train with sampled neighbors: train.strategy = 'gradient'"),
        );
    }
    let model = &c.run.model;
    let cut = match (c.model(), model.decoupled) {
        ("gcn" | "gat", _) | ("gin" | "sgc" | "mlp", false) => true,
        ("sage" | "ngnn", false) => model.aggregator != Aggregator::Lstm,
        // A program's own model has a check of its own.
        ("", _) => true,
        _ => false,
    };
    let form = if model.decoupled { "decoupled " } else { "" };
    (!cut).then(|| {
        Error::usage(format!("{form}{} does not train in chunks", c.model())).hint(
            "tensor.memory and tensor.chunks support: gcn, sage and ngnn (mean, max-pool), gin, sgc, mlp, gat, decoupled gcn and gat",
        )
    })
}

fn feature_slices(c: Combination<'_>) -> Option<Error> {
    let model = c.model();
    if !c.tensor() || model.is_empty() || model == "none" {
        return None;
    }
    let relational = c.heterogeneous || !names().contains(&model);
    match relational {
        true => heterogeneous::check_columns(&c.run.model).err(),
        false => check_columns(&c.run.model).err(),
    }
}

fn sampling_and_tensor(c: Combination<'_>) -> Option<Error> {
    let sample = &c.run.sample;
    let chosen = !sample.edge_fanouts.is_empty() || !sample.meta_path.is_empty();
    (c.tensor() && chosen).then(|| {
        Error::usage("train.strategy = 'tensor' takes all neighbors over all edge types")
            .hint("leave out sample.edge_fanouts and sample.meta_path")
    })
}
