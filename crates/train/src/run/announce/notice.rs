//! Unused keys of the run file, and unused splits and columns of the dataset.

use gnarl_config::{Applied, Method, Parts, Precision, RunConfig, TaskKind};
use gnarl_graph::{Dataset, EdgeType};
use gnarl_nn::models::Aggregator;
use gnarl_partition::{Constraint, PartitionManifest};

use crate::run::setup::Source;

/// Most edges that are looked up to detect reverses.
const LOOKED_UP: usize = 2000;

/// One line per unused setting or column. `tables` is true if there are embeddings.
pub(crate) fn of(
    config: &RunConfig,
    source: &Source,
    tables: bool,
    partition: Option<&PartitionManifest>,
) -> Vec<String> {
    let dataset = source.dataset();
    let heterogeneous = dataset.is_some_and(|dataset| {
        let manifest = dataset.manifest();
        manifest.node_types.len() > 1 || manifest.edge_types.len() > 1
    });
    let heterogeneous = heterogeneous || config.task.node_type.is_some();
    let mut lines = Applied { run: config, heterogeneous, tables }.unused();
    lines.extend(seldom(config));
    lines.extend(emulated(config));
    lines.extend(idle(config, partition.map_or(1, |made| made.parts)));
    lines.extend(partition.and_then(|made| shallow(config, made)));
    if let Some(dataset) = dataset {
        lines.extend(split(config, dataset));
        lines.extend(shares(config, dataset));
        lines.extend(balance(config, dataset));
        for edge in &dataset.manifest().edge_types {
            lines.extend(columns(config, edge, heterogeneous));
        }
        lines.extend(directed(config, dataset));
    }
    lines
}

/// Products that the processor has no instructions for, or that the system keeps from it.
fn emulated(config: &RunConfig) -> Option<String> {
    if config.train.precision != Precision::Bf16 || config.model.name == "none" {
        return None;
    }
    let why = match gnarl_nn::Precision::Bf16 {
        bf16 if !bf16.is_native() => {
            "this processor has no instructions for it (AVX512-BF16); values are rounded all the same, and \
             training is slower than with 'f32'"
        }
        bf16 if bf16.is_withheld() => {
            "the system does not let this process use the tiles of AMX, which this processor has; AVX512-BF16 takes \
             their place, and training may be slower than with 'f32'"
        }
        _ => return None,
    };
    Some(format!("train.precision = 'bf16': {why}"))
}

/// Ranks without a part to train.
fn idle(config: &RunConfig, parts: usize) -> Option<String> {
    let workers = config.train.workers;
    let idle = workers.saturating_sub(parts);
    (config.train.strategy.parts_train_alone() && idle > 0).then(|| {
        format!(
            "train.strategy = 'average' trains {parts} part{} on {workers} workers: {idle} of them \
             have nothing to do; set partition.parts to at least train.workers",
            if parts == 1 { "" } else { "s" }
        )
    })
}

/// Halo nodes of fewer hops than the model has layers, where parts train alone.
fn shallow(config: &RunConfig, made: &PartitionManifest) -> Option<String> {
    let alone = config.train.strategy.parts_train_alone() && config.task.kind.is_of_nodes();
    let (found, layers) = (made.hops, config.model.blocks());
    let short = alone && config.model.name != "mlp" && (found as usize) < layers && made.parts > 1;
    short.then(|| {
        format!(
            "parts have halo nodes of {found} hop{}, and {} has {layers} layers: neighbors beyond them are missing in \
             training, which can take points of accuracy; {}",
            if found == 1 { "" } else { "s" },
            config.model.name,
            match config.partition.path {
                Some(_) => format!("partition with --hops {layers}, where memory allows"),
                None => "leave out partition.hops, where memory allows".into(),
            }
        )
    })
}

/// Evaluations that average only at every few of them.
fn seldom(config: &RunConfig) -> Option<String> {
    let section = &config.train;
    let averaged = section.strategy.parts_train_alone();
    let (evaluated, synced) = (section.eval_every, section.sync_every);
    (averaged && evaluated > 0 && !evaluated.is_multiple_of(synced)).then(|| {
        format!(
            "train.eval_every = {evaluated} and train.sync_every = {synced}: there is one model to evaluate only after \
             averaging, so that evaluations, and the epochs that train.patience counts, follow train.sync_every"
        )
    })
}

/// Shares of held-out edges that the dataset's own splits replace.
fn shares(config: &RunConfig, dataset: &Dataset) -> Option<String> {
    if config.task.kind != TaskKind::LinkPrediction {
        return None;
    }
    let default = gnarl_config::TaskSection::default();
    let task = &config.task;
    let set: Vec<&str> = [
        ("task.valid", task.valid != default.valid),
        ("task.test", task.test != default.test),
        ("task.split_seed", task.split_seed != default.split_seed),
    ]
    .into_iter()
    .filter_map(|(key, set)| set.then_some(key))
    .collect();
    let asked = task.edge_type.as_deref();
    let mut types = dataset.manifest().edge_types.iter();
    let edge = types.find(|edge| asked.is_none_or(|name| name == edge.triple.to_string()))?;
    (!set.is_empty() && has(edge, "split")).then(|| {
        let verb = if set.len() == 1 { "has" } else { "have" };
        format!(
            "{} {verb} no effect here: the dataset has splits of {}",
            set.join(", "),
            edge.triple
        )
    })
}

/// Splits drawn by the run, which partitioners do not see.
fn balance(config: &RunConfig, dataset: &Dataset) -> Option<String> {
    let splits = [Constraint::Train, Constraint::Valid, Constraint::Test];
    let asked = config.partition.constraints.as_ref()?.iter().any(|one| splits.contains(one));
    let cut = config.partition.parts != Parts::Count(1) && config.partition.path.is_none();
    let nodes = config.task.kind.is_of_nodes();
    (config.dataset.split.is_some() && asked && cut && nodes).then(|| {
        let name = dataset.manifest().node_types.first().map_or("", |node| &node.name);
        let own = dataset.split_names(name).is_ok_and(|names| !names.is_empty());
        format!(
            "dataset.split draws its splits after partitioning: partition.constraints balances {}, and parts have \
             about equally many nodes of the drawn ones by chance",
            if own { "the dataset's own" } else { "none, as the dataset has none" }
        )
    })
}

/// Splits of the dataset that `dataset.split` replaces.
fn split(config: &RunConfig, dataset: &Dataset) -> Option<String> {
    let split = config.dataset.split.as_ref()?;
    let manifest = dataset.manifest();
    let own = match config.task.kind {
        TaskKind::LinkPrediction => return None,
        TaskKind::NodeClassification | TaskKind::NodeRegression | TaskKind::Custom => {
            let asked = config.task.node_type.as_deref();
            let name = asked.or(manifest.node_types.first().map(|node| node.name.as_str()))?;
            !dataset.split_names(name).ok()?.is_empty()
        }
        TaskKind::EdgeClassification | TaskKind::EdgeRegression => {
            let asked = config.task.edge_type.as_deref();
            let mut types = manifest.edge_types.iter();
            let edge = types.find(|edge| asked.is_none_or(|name| name == edge.triple.to_string()));
            has(edge?, "split")
        }
    };
    let [train, valid, test] =
        [split.train, split.valid, split.test].map(|share| (100.0 * share).round());
    own.then(|| {
        format!(
            "dataset.split draws {train}/{valid}/{test} % to train, validate and test on; the \
             dataset's own splits are not used"
        )
    })
}

fn has(edge: &EdgeType, column: &str) -> bool {
    edge.columns.iter().any(|own| own.name == column)
}

/// Columns of edges that neither model nor sampler reads.
fn columns(config: &RunConfig, edge: &EdgeType, typed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut unread = |column: &str, reader: &str| {
        lines.push(format!("the column '{column}' of edges {} is unused: {reader}", edge.triple));
    };
    let reads = draws_by_weights(config) || weighs_messages(config);
    if has(edge, "weight") && !(keeps_weights(config, typed) && reads) {
        unread(
            "weight",
            "gcn, sgc, gin, ngnn, sage (mean) and rgcn read weights of edges in node classification, \
             and sample.method = 'weighted' does",
        );
    }
    if has(edge, "time") && config.sample.time.is_none() {
        unread("time", "sample.time samples neighbors by it");
    }
    let of_decoder = config.task.kind.is_of_edges() && config.task.edge_features;
    if has(edge, "features") && !of_decoder && !config.model.edge_features {
        let nodes = config.task.kind.is_of_nodes() && !typed;
        let reader = match nodes {
            true => "model.edge_features = true uses it in the models gat, gatv2 and gin",
            false => "task.edge_features = true uses it in edge prediction",
        };
        unread("features", reader);
    }
    let twice = draws_by_weights(config) && weighs_messages(config);
    if has(edge, "weight") && keeps_weights(config, typed) && twice {
        lines.push(format!(
            "sample.method = 'weighted' draws neighbors over {} by their weights, and {} weighs their messages by them \
             again: heavy edges count twice; 'neighbor' draws evenly",
            edge.triple, config.model.name
        ));
    }
    lines
}

/// Returns whether the message graph has edge weights.
fn keeps_weights(config: &RunConfig, typed: bool) -> bool {
    config.task.kind.is_of_nodes() || typed
}

/// Returns whether neighbors are drawn by edge weights.
fn draws_by_weights(config: &RunConfig) -> bool {
    config.sample.method == Method::Weighted && !config.train.strategy.takes_whole_graph()
}

/// Returns whether the model weighs messages by edge weights.
fn weighs_messages(config: &RunConfig) -> bool {
    let model = &config.model;
    match model.name.as_str() {
        "gat" | "gatv2" | "rgat" | "hgt" | "mlp" | "none" => false,
        "hetero" => match model.relation_layer.as_str() {
            "gat" => false,
            "sage" => model.aggregator == Aggregator::Mean,
            _ => true,
        },
        _ => model.aggregator == Aggregator::Mean,
    }
}

/// Edges without reverses in node classification, where messages pass one way only.
fn directed(config: &RunConfig, dataset: &Dataset) -> Option<String> {
    let [edge] = &dataset.manifest().edge_types[..] else { return None };
    let passes = !["mlp", "none"].contains(&config.model.name.as_str());
    let nodes = config.task.kind.is_of_nodes();
    let asked = nodes && passes && edge.triple.src == edge.triple.dst && edge.count > 0;
    if !asked || edge.facts.symmetric {
        return None;
    }
    let csc = dataset.csc(&edge.triple).ok()?;
    let step = csc.num_dst().div_ceil(LOOKED_UP).max(1);
    let mut counts = [0usize; 2];
    for dst in (0..csc.num_dst() as u32).step_by(step) {
        let src = csc.sources(dst).iter().copied().find(|&src| src != dst);
        let Some(src) = src.filter(|&src| (src as usize) < csc.num_dst()) else { continue };
        counts[usize::from(csc.sources(src).contains(&dst))] += 1;
    }
    let [single, both] = counts;
    (both * 99 < single).then(|| {
        "edges are directed, and nodes receive messages from sources alone: half of them may be \
         missing; 'gnarl import --symmetrize' adds the reverses"
            .into()
    })
}
