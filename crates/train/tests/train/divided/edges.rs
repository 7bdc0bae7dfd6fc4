//! Edge prediction on parts that have the target edges of the task.

use std::path::PathBuf;

use gnarl_common::Element;
use gnarl_common::npy::NpyWriter;
use gnarl_common::rng::Key;
use gnarl_config::{MessagesOver, RandomSplit, RunConfig, Servers, TaskKind};
use gnarl_graph::Triple;
use gnarl_graph::import::{HeteroNpyOptions, NpyOptions, heterogeneous_npy, npy};
use gnarl_partition::PartLayout;
use gnarl_serve::Server;
use gnarl_train::{Begin, eval_run, run};

use super::common::{only, serve, train};
use super::edge_tasks::{assert_near, assert_parts_train_alike, config, cut, divided};

const NODES: u64 = 120;
const EDGES: u64 = 1200;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn array<T: Element>(&self, name: &str, row: &[u64], values: &[T]) -> PathBuf {
        let path = self.dir.path().join(name);
        let mut writer = NpyWriter::create(path.clone(), row).unwrap();
        writer.push(values).unwrap();
        writer.finish().unwrap();
        path
    }

    fn edges(&self) -> PathBuf {
        let draw = |word: u64, row: u64| Key::new(word).below(row, NODES) as u32;
        let ends: Vec<u32> =
            (0..EDGES).map(|row| draw(1, row)).chain((0..EDGES).map(|row| draw(2, row))).collect();
        self.array("edges.npy", &[EDGES], &ends)
    }

    /// Edges with classes that their features tell, some of them unlabeled, or with several labels; nodes with features.
    fn classes(&self, several: bool) {
        let class = |row: u64| Key::new(5).below(row, 4) as i32;
        let features: Vec<f32> = (0..EDGES)
            .flat_map(|row| [class(row) as f32 - 1.0, Key::new(6).normal(row) as f32])
            .collect();
        let of_nodes: Vec<f32> = (0..4 * NODES).map(|at| Key::new(4).normal(at) as f32).collect();
        let mut options = NpyOptions::new(self.edges());
        options.features = Some(self.array("features.npy", &[4], &of_nodes));
        options.edge_features = Some(self.array("marks.npy", &[2], &features));
        options.edge_labels = Some(match several {
            true => {
                let marks: Vec<u8> = (0..EDGES)
                    .flat_map(|row| [class(row) > 1, class(row) == 2])
                    .map(u8::from)
                    .collect();
                self.array("labels.npy", &[2], &marks)
            }
            false => {
                let unlabeled = |row: u64| Key::new(7).below(row, 10) == 0;
                let of = |row: u64| if unlabeled(row) { -1 } else { class(row).min(2) };
                self.array("labels.npy", &[], &(0..EDGES).map(of).collect::<Vec<i32>>())
            }
        });
        npy(&options, &self.dir.path().join("graph")).unwrap();
    }

    /// Edges from users to items, with numbers, and their reverses.
    fn numbers(&self) {
        let rates: Triple = "user:rates:item".parse().unwrap();
        let values: Vec<f32> = (0..EDGES).map(|row| Key::new(3).normal(row) as f32).collect();
        let options = HeteroNpyOptions {
            edges: vec![(rates.clone(), self.edges())],
            edge_values: vec![(rates, self.array("values.npy", &[], &values))],
            reverse: true,
            memory: 1 << 26,
            ..HeteroNpyOptions::default()
        };
        heterogeneous_npy(&options, &self.dir.path().join("graph")).unwrap();
    }

    fn config(&self, kind: TaskKind, model: &str, name: &str) -> RunConfig {
        let mut config = config(self.dir.path(), kind, model, name);
        config.dataset.split = Some(RandomSplit { train: 0.6, valid: 0.2, test: 0.2, seed: 1 });
        config.train.lr = 0.01;
        config
    }
}

#[test]
fn classes_and_features_of_edges_come_from_parts() {
    let bench = Bench::new();
    bench.classes(false);
    for over in [MessagesOver::Known, MessagesOver::All] {
        let mut config = bench.config(TaskKind::EdgeClassification, "sage", &format!("{over:?}"));
        config.task.edge_features = true;
        config.task.messages = over;
        assert!(train(&config).test["accuracy"] > 0.7);
        config.output.dir.set_extension("again");
        assert_parts_train_alike(&config, &format!("{over:?}"));
    }
}

#[test]
fn several_labels_of_an_edge_come_from_parts() {
    let bench = Bench::new();
    bench.classes(true);
    let config = bench.config(TaskKind::EdgeClassification, "gcn", "run");
    assert_parts_train_alike(&config, "labels");
}

#[test]
fn numbers_of_edges_between_two_types_come_from_servers() {
    let bench = Bench::new();
    bench.numbers();
    let mut config = bench.config(TaskKind::EdgeRegression, "rgcn", "run");
    config.task.edge_type = Some("user:rates:item".into());
    let whole = train(&config);
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let cut = cut(&config, layout);
        let mine = bench.dir.path().join(format!("mine {layout}"));
        only(&cut, &[2], &mine);
        let servers = [serve(&cut, &[0]), serve(&cut, &[1, 3])];
        let servers = Servers::At(servers.iter().map(Server::uri).collect());
        let mut config = divided(&config, &layout.to_string(), &mine, servers);
        config.train.workers = 2;
        let found = run(&config, Begin::Fresh, &|_| ()).unwrap().summary;
        assert_near(&whole, &found, &layout.to_string());
        let again = eval_run(&config.output.dir, None).unwrap();
        assert_eq!(again.test, found.test, "{layout}");
    }
}

#[test]
fn parts_for_other_labels_are_refused() {
    let bench = Bench::new();
    bench.classes(false);
    let config = bench.config(TaskKind::EdgeClassification, "sage", "run");
    let cut = cut(&config, PartLayout::EdgeCut);
    let refused = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = divided(&config, "refused", cut.dir(), Servers::Ranks);
        change(&mut config);
        let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let error = refused(&|config| config.task.edge_features = true);
    assert!(
        error.contains("task.edge_features is true, but the parts were made for false"),
        "{error}"
    );
    let error = refused(&|config| config.task.messages = MessagesOver::All);
    assert!(error.contains("task.messages is \"all\""), "{error}");
    let error = refused(&|config| config.dataset.split = None);
    assert!(error.contains("dataset.split is null"), "{error}");
}
