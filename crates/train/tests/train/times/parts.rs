//! Nodes at their own times and edges as of theirs, from parts here and behind servers.

use std::path::Path;
use std::sync::Arc;

use gnarl_config::{Method, RunConfig, Servers, TaskKind, TimeRule};
use gnarl_graph::Dataset;
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_serve::{ServedPart, Server, ServerConfig};
use gnarl_train::{EdgeModel, OpenOptions, Registry, TrainedRun, eval_run, partition_for_task};

use super::bench::{Bench, refused, train};
use super::edges::{Purchase, purchases};

const PARTS: usize = 3;

fn parts_of(layout: PartLayout) -> PartitionConfig {
    let algorithm = if layout == PartLayout::EdgeCut { "ldg" } else { "adadne" };
    let (algorithm, parts) = (algorithm.into(), Parts::Count(PARTS));
    PartitionConfig { algorithm, parts, layout, ..PartitionConfig::default() }
}

fn cut(bench: &Bench, layout: PartLayout) -> PartitionedDataset {
    let config = parts_of(layout);
    let dataset = Dataset::open(bench.path("graph")).unwrap();
    partition_dataset(&dataset, &config, &bench.path(&layout.to_string())).unwrap().0
}

/// A server of two parts, and a partition that has the files of the other one only.
fn apart(bench: &Bench, cut: &PartitionedDataset) -> (Server, std::path::PathBuf) {
    let held = [0, 2].map(|part| Arc::new(ServedPart::open(cut, part).unwrap()));
    let server = Server::start(held.to_vec(), &ServerConfig::default()).unwrap();
    let mine = bench.path("mine");
    let copy = std::process::Command::new("cp").arg("-r").arg(cut.dir()).arg(&mine).status();
    assert!(copy.unwrap().success());
    [0, 2].iter().for_each(|part| {
        std::fs::remove_dir_all(mine.join(format!("part-{part}"))).unwrap();
    });
    (server, mine)
}

fn on_parts(config: &RunConfig, name: &str, path: &Path, servers: Servers) -> RunConfig {
    let mut config = config.clone();
    config.partition.path = Some(path.into());
    config.partition.servers = Some(servers);
    config.train.workers = 2;
    config.output.dir = config.output.dir.with_file_name(name);
    config
}

/// The parts of a run's task of edges.
fn cut_for(
    bench: &Bench,
    config: &RunConfig,
    layout: PartLayout,
) -> gnarl_common::Result<PartitionedDataset> {
    let wanted = parts_of(layout);
    let dataset = Dataset::open(bench.path("graph"))?;
    let run = (config, &Registry::default());
    partition_for_task(run, &dataset, &wanted, &bench.path("parts")).map(|(cut, _)| cut)
}

/// Layouts, and methods by which parts draw from them what the whole graph would.
const LAYOUTS: [(PartLayout, Method); 2] =
    [(PartLayout::EdgeCut, Method::Neighbor), (PartLayout::VertexCut, Method::Exact)];

/// Trains on the whole graph and on its parts, here and apart, to the same numbers.
fn parts_change_nothing(bench: &Bench, config: &RunConfig) {
    let layout = match config.sample.method {
        Method::Neighbor => PartLayout::EdgeCut,
        _ => PartLayout::VertexCut,
    };
    parts_of_task_change_nothing(bench, config, &cut(bench, layout));
}

fn parts_of_task_change_nothing(bench: &Bench, config: &RunConfig, cut: &PartitionedDataset) {
    let whole = train(config).summary;
    let (server, mine) = apart(bench, cut);
    let ways = [
        ("here", cut.dir().to_path_buf(), Servers::Ranks),
        ("apart", mine, Servers::At(vec![server.uri()])),
    ];
    for (name, path, servers) in ways {
        let config = on_parts(config, name, &path, servers);
        let found = train(&config).summary;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(whole.losses.iter().zip(&found.losses).all(near), "{name}: {whole:?} {found:?}");
        for (metric, score) in &whole.test {
            // Rounding breaks ties.
            let other = found.test[metric];
            assert!((score - other).abs() < 0.003, "{name}, {metric}: {score} {other}");
        }
        let again = eval_run(&config.output.dir, None).unwrap();
        assert_eq!(again.test, found.test, "{name}: evaluated once more");
    }
}

#[test]
fn parts_give_the_losses_of_the_whole_graph() {
    // In-degrees as of times are part of a gcn.
    let models = [("sage", TimeRule::Last), ("gcn", TimeRule::Uniform)];
    let methods = [Method::Neighbor, Method::Exact, Method::Full];
    for ((model, rule), method) in models.into_iter().flat_map(|of| methods.map(|m| (of, m))) {
        let bench = Bench::new();
        bench.homogeneous(false);
        let mut config = bench.config("whole", Some(rule));
        config.sample.method = method;
        config.model.name = model.into();
        config.model.layers = 2;
        config.sample.fanouts = vec![2, 2];
        config.train.epochs = 4;
        parts_change_nothing(&bench, &config);
    }
}

#[test]
fn typed_parts_give_the_losses_of_the_whole_graph() {
    let ways = LAYOUTS.map(|(_, method)| method);
    for (model, method) in ["rgcn", "hgt"].into_iter().flat_map(|model| ways.map(|m| (model, m))) {
        let bench = Bench::new();
        bench.typed();
        let mut config = bench.config("whole", Some(TimeRule::Uniform));
        config.sample.method = method;
        config.model.name = model.into();
        config.task.node_type = Some("new".into());
        config.sample.fanouts = vec![3];
        config.train.epochs = 4;
        parts_change_nothing(&bench, &config);
    }
}

#[test]
fn quick_draws_from_parts_that_share_lists_are_refused() {
    let bench = Bench::new();
    bench.homogeneous(false);
    let cut = cut(&bench, PartLayout::VertexCut);
    let config = bench.config("whole", Some(TimeRule::Last));
    let text = refused(&on_parts(&config, "refused", cut.dir(), Servers::Ranks));
    let expected = ["whole lists", "sample.method to 'exact'", "edge cut"];
    assert!(expected.iter().all(|words| text.contains(words)), "{text}");
}

/// Types of nodes and models: with an edge type for each direction, of the dataset or of its relations, or with one.
const GRAPHS: [(usize, &str); 3] = [(2, "rgcn"), (1, "rgcn"), (1, "sage")];

#[test]
fn edges_of_parts_are_predicted_as_of_their_times() {
    let kinds = [TaskKind::LinkPrediction, TaskKind::EdgeClassification];
    let graphs = GRAPHS.into_iter().flat_map(|of| LAYOUTS.map(|way| (of, way)));
    let all = kinds.into_iter().flat_map(|kind| graphs.clone().map(move |of| (kind, of)));
    for (kind, ((types, model), (layout, method))) in all {
        let bench = Bench::new();
        // Some edges repeat, at other times and at the same.
        let mut all = purchases(false);
        let again = all[..40].iter().map(|&one| Purchase { time: one.time + 5, ..one });
        let again: Vec<Purchase> = again.chain(all[20..60].iter().copied()).collect();
        all.extend(again);
        match types {
            1 => bench.one_type("graph", &all),
            _ => bench.two_types("graph", &all),
        }
        let mut config = match kind {
            TaskKind::LinkPrediction => bench.links("whole", Some(TimeRule::Last)),
            _ => bench.labels("whole", Some(TimeRule::Last)),
        };
        config.model.name = model.into();
        config.model.layers = 2;
        config.sample.fanouts = vec![3, 2];
        config.sample.method = method;
        config.task.edge_type = (types == 2).then(|| "user:bought:item".into());
        config.train.epochs = 3;
        let cut = cut_for(&bench, &config, layout).unwrap();
        parts_of_task_change_nothing(&bench, &config, &cut);

        let on_parts = on_parts(&config, "times", cut.dir(), Servers::Ranks);
        train(&on_parts);
        let times = |config: &RunConfig, split: &str| {
            let dir = &config.output.dir;
            let run = TrainedRun::open(&Registry::default(), dir, &OpenOptions::default()).unwrap();
            EdgeModel::of(&run, &run).unwrap().split(split).unwrap().unwrap().times
        };
        for split in ["train", "valid", "test"] {
            let expected = times(&config, split);
            assert!(!expected.is_empty() && times(&on_parts, split) == expected, "{split}");
        }

        let mut other = on_parts.clone();
        other.sample.time = None;
        other.negatives = RunConfig::default().negatives;
        let text = refused(&other);
        assert!(text.contains("sampling by time (sample.time) is false"), "{text}");
    }
}
