use std::path::Path;

use gnarl_config::{Batch, Method};
use gnarl_graph::generate::{
    Attributes, CommunityOptions, HeteroOptions, community, heterogeneous,
};
use gnarl_nn::models::{Aggregator, Decomposition};
use gnarl_train::{Begin, run};

use super::*;

/// A graph in `dir`, and a run of GCN on it.
fn config(dir: &Path, nodes: u64, features: usize, classes: u32) -> RunConfig {
    let attributes = Attributes {
        features,
        classes,
        train: 0.4,
        valid: 0.3,
        test: 0.3,
        ..Attributes::default()
    };
    let options = CommunityOptions {
        nodes,
        communities: 3,
        average_degree: 6.0,
        attributes,
        ..Default::default()
    };
    community(&options, &dir.join("graph")).unwrap();
    let mut config = run_of("gcn", &dir.join("graph"));
    config.model.hidden = 20;
    config
}

/// Two epochs of a model.
fn run_of(model: &str, graph: &Path) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = graph.into();
    config.model.name = model.into();
    config.train.epochs = 2;
    config.train.eval_every = 0;
    config.train.threads = 2;
    config.train.deadline_seconds = 60.0;
    config
}

fn plan(config: &RunConfig, workers: &[usize]) -> RunPlan {
    let dataset = Dataset::open(&config.dataset.path).unwrap();
    RunPlan::of(config, &dataset, workers).unwrap()
}

fn of(plan: &RunPlan, strategy: Strategy, workers: usize) -> &StrategyPrediction {
    let found =
        |p: &&StrategyPrediction| p.strategy == strategy && p.workers == workers && p.same_model;
    plan.predictions.iter().find(found).unwrap()
}

/// Predicted bytes of the second epoch in tensor parallelism, and of all later ones.
#[test]
fn bytes_of_columns_are_those_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let base = config(dir.path(), 701, 21, 3);
    let dataset = Dataset::open(&base.dataset.path).unwrap();
    type Change = fn(&mut RunConfig);
    let changes: [(&str, Change); 12] = [
        ("gcn", |_| ()),
        ("gcn-kept", |c| (c.model.hidden, c.model.input_dropout) = (33, Some(0.0))),
        ("gcn-deep", |c| (c.model.layers, c.model.hidden) = (3, 33)),
        ("sage", |_| ()),
        ("sage-pool", |c| c.model.aggregator = Aggregator::MaxPool),
        ("ngnn", |c| c.model.layers = 3),
        ("ngnn-pool", |c| c.model.aggregator = Aggregator::MaxPool),
        ("gin", |_| ()),
        ("gat", |c| c.model.out_heads = 2),
        ("sgc", |_| ()),
        ("gcn-apart", |c| (c.model.decoupled, c.model.propagations) = (true, Some(4))),
        ("gat-apart", |c| (c.model.decoupled, c.model.out_heads) = (true, 2)),
    ];
    for (name, change) in changes {
        for workers in [2, 3] {
            let mut config = base.clone();
            config.model.name = name.split('-').next().unwrap().into();
            (config.train.strategy, config.train.workers) = (Strategy::Tensor, workers);
            config.output.dir = dir.path().join(format!("{name}-{workers}"));
            change(&mut config);
            let facts = Facts::of(&config, &dataset).unwrap();
            let model = facts.model(&config);
            let expected = facts.graph.sliced(&model, workers).sent;
            let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
            let sent = finished.history[1].exchanged_bytes.unwrap_or_default();
            assert_eq!(
                (sent.forward, sent.backward),
                (expected.forward, expected.backward),
                "{name} on {workers}"
            );
        }
    }
}

/// Expected edges of batches against those of an epoch.
#[test]
fn edges_of_batches_are_about_those_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), 3000, 8, 3);
    for (name, method, batch, fanouts) in [
        ("few", Method::Neighbor, 100, [4, 2]),
        ("many", Method::Neighbor, 300, [25, 10]),
        ("all", Method::Full, 200, [1, 1]),
    ] {
        config.sample.method = method;
        config.sample.batch_size = batch;
        config.sample.fanouts = fanouts.to_vec();
        config.output.dir = dir.path().join(name);
        let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
        let expected = of(&plan(&config, &[1]), Strategy::Gradient, 1).work;
        let ratio = expected.sampled_edges / finished.history[0].sampled_edges as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{name}: ×{ratio:.3}");
        assert_eq!(expected.steps, 1200u64.div_ceil(batch as u64), "{name}");
    }
}

/// Parts that train alone: neighbors beyond a part's own are missing from the second hop on.
#[test]
fn edges_of_parts_are_about_those_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), 3000, 8, 3);
    (config.train.strategy, config.train.workers) = (Strategy::Average, 3);
    config.partition.parts = gnarl_config::Parts::Count(3);
    (config.sample.batch_size, config.sample.fanouts) = (100, vec![4, 4]);
    for (batch, steps) in [(Batch::Local, 4), (Batch::Global, 12)] {
        let mut config = config.clone();
        config.average.batch = batch;
        config.output.dir = dir.path().join(format!("run-{steps}"));
        let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
        let expected = |config: &RunConfig| of(&plan(config, &[3]), Strategy::Average, 3).work;
        // Before the cut is made, and after.
        let before = expected(&config);
        config.partition.path = Some(config.output.dir.join("partition"));
        for work in [before, expected(&config)] {
            let drawn = finished.history[0].sampled_edges as f64;
            let ratio = 3.0 * work.sampled_edges / drawn;
            assert!((ratio - 1.0).abs() < 0.1, "{batch:?}: ×{ratio:.3}");
            assert_eq!(work.steps, steps);
        }
    }
}

/// Parts in memory: what is read, and the edges among what is there.
#[test]
fn bytes_and_edges_of_parts_in_memory_are_about_those_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let heterogeneous = in_turns(dir.path(), typed(dir.path()), 0.25);
    assert!(plan(&heterogeneous, &[2]).batch_workers.is_none(), "another number of workers");
    in_turns(dir.path(), config(dir.path(), 3000, 8, 3), 0.1);
}

/// Runs of `config` with parts in memory read about as much as is predicted, and draw as many edges up to a relative
/// `tolerance`: parts keep the neighbors of some node types together, and those of others apart. Returns one of them.
fn in_turns(dir: &Path, mut config: RunConfig, tolerance: f64) -> RunConfig {
    config.train.strategy = Strategy::Disaggregated;
    // Parts of the next epoch would be read ahead in this one.
    config.train.epochs = 1;
    config.partition.parts = gnarl_config::Parts::Count(8);
    (config.sample.batch_size, config.sample.fanouts) = (100, vec![4, 3]);
    for (slots, resident) in [(1, 8), (1, 3), (2, 2)] {
        let mut config = config.clone();
        (config.disaggregated.slots, config.disaggregated.resident) = (slots, resident);
        let name = config.model.name.clone();
        config.output.dir = dir.join(format!("run-{name}-{slots}-{resident}"));
        let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
        config.partition.path = Some(config.output.dir.join("partition"));
        let found = &finished.history[0];
        let plan = plan(&config, &[1]);
        let expected = of(&plan, Strategy::Disaggregated, 1).work;
        let edges = expected.sampled_edges / found.sampled_edges as f64;
        let shape = format!("{name}, {slots} x {resident}");
        assert!((edges - 1.0).abs() < tolerance, "{shape}: edges ×{edges:.3}");
        let read = expected.read_bytes / found.read_bytes.unwrap() as f64;
        assert!((read - 1.0).abs() < 0.1, "{shape}: bytes ×{read:.3}");
        let of_workers = plan.batch_workers.unwrap();
        let seconds = of_workers.choices.iter().map(|choice| choice.seconds);
        assert!(seconds.skip(1).is_sorted_by(|a, b| a >= b), "{:?}", of_workers.choices);
    }
    config
}

/// Two layers of GCN over the whole graph, by hand: 21 → 20 → 3 columns.
#[test]
fn products_and_messages_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), 700, 21, 3);
    let plan = plan(&config, &[1, 2]);
    let (nodes, edges) = (700.0, plan.counts.edges as f64);
    let one = of(&plan, Strategy::Tensor, 1).work;
    // The input has no gradient: two products, not three. Both layers map first.
    let flops = nodes * 2.0 * (2.0 * 21.0 * 20.0 + 3.0 * 20.0 * 3.0);
    assert_eq!(one.flops, flops);
    // 20 columns are 80 bytes, and a row is never less than a cache line.
    assert_eq!(one.gathered_bytes, edges * 2.0 * (80.0 + 64.0));
    assert_eq!((one.sent_bytes, one.messages, one.steps), (0.0, 0.0, 1));
    let two = of(&plan, Strategy::Tensor, 2).work;
    assert_eq!(two.flops, flops / 2.0);
    assert_eq!(two.gathered_bytes, edges * 2.0 * (64.0 + 64.0));
    assert!(two.memory_bytes < one.memory_bytes);
    let weights = 21.0 * 20.0 + 20.0 + 20.0 * 3.0 + 3.0 + 2.0;
    let columns = 4.0 * 4.0 * 700.0 * (20.0 + 3.0) / 2.0 / 2.0;
    assert_eq!(two.sent_bytes, columns + 4.0 * weights);
    let gradient = of(&plan, Strategy::Gradient, 2).work;
    assert_eq!((gradient.sent_bytes, gradient.steps), (4.0 * weights, 1));
}

#[test]
fn what_cannot_run_is_listed_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), 700, 21, 3);
    let reason = |plan: &RunPlan, strategy: Strategy, decoupled: bool| {
        let mut refused = plan.refused.iter();
        let found = refused.find(|r| r.strategy == strategy && r.decoupled == decoupled);
        found.map(|r| r.reason.clone()).unwrap_or_default()
    };
    let plain = plan(&config, &[2]);
    assert!(reason(&plain, Strategy::Average, false).contains("requires a partitioned graph"));
    assert_eq!(plain.predictions.len(), 3, "gradient, and tensor in both forms");
    assert!(plain.predictions.iter().filter(|p| p.same_model).all(|p| !p.decoupled));
    config.partition.parts = gnarl_config::Parts::Count(3);
    let cut = plan(&config, &[2]);
    assert!(reason(&cut, Strategy::Tensor, false).contains("leave out [partition]"));
    let average = of(&cut, Strategy::Average, 2);
    // Two of three parts.
    assert_eq!(average.work.steps, 2);
    config.partition.parts = gnarl_config::Parts::Count(1);
    (config.model.name, config.model.aggregator) = ("ngnn".into(), Aggregator::Lstm);
    let lstm = plan(&config, &[2]);
    assert!(reason(&lstm, Strategy::Tensor, false).contains("the recurrence mixes all features"));
    config.sample.method = Method::ClusterGcn;
    let none = plan(&config, &[2]);
    assert!(none.fastest().is_none(), "{:?}", none.predictions);
    assert!(
        reason(&none, Strategy::Gradient, false)
            .contains("do not support subgraphs and neighborhoods by walks")
    );
    assert!(none.verdict().starts_with("no strategy can train this run"), "{}", none.verdict());
}

/// Memory over the limit is a reason as well; rates decide what is fastest.
#[test]
fn rates_and_memory_decide() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), 700, 21, 3);
    config.sample.batch_size = 50;
    let fastest = |config: &RunConfig| plan(config, &[2]).fastest().map(|p| p.strategy);
    config.plan.edge = 1.0;
    assert_eq!(fastest(&config), Some(Strategy::Tensor));
    (config.plan.edge, config.plan.step, config.plan.latency) = (0.0, 0.0, 0.0);
    config.plan.link = 1.0;
    config.sample.batch_size = 0;
    assert_eq!(fastest(&config), Some(Strategy::Gradient));
    config.plan.memory = bytesize::ByteSize(1000);
    let none = plan(&config, &[2]);
    assert!(none.refused.iter().any(|r| r.reason.contains("plan.memory is 1000 B")), "{none:?}");
    assert_eq!(none.fastest().map(|p| p.strategy), None);
}

#[test]
fn seconds_are_work_over_rates() {
    let plan = PlanSection {
        threads: 4,
        flops: 10.0,
        gather: 20.0,
        stream: 40.0,
        nonzero: 2.0,
        edge: 0.5,
        step: 2.0,
        link: 5.0,
        latency: 3.0,
        disk: 2.0,
        ..PlanSection::default()
    };
    let mut config = RunConfig { plan, ..RunConfig::default() };
    config.train.workers = 2;
    let work = Work {
        steps: 2,
        sampled_edges: 8.0,
        fetched_bytes: 20.0,
        nonzeros: 0.5,
        weight_bytes: 80.0,
        flops: 40.0,
        gathered_bytes: 80.0,
        streamed_bytes: 160.0,
        sent_bytes: 10.0,
        messages: 1.0,
        merged_bytes: 40.0,
        read_bytes: 30.0,
        ..Work::default()
    };
    let seconds = Seconds::of(&work, &config);
    let expected = Seconds {
        sampling: 5.0,
        products: 4.0,
        messages: 2.0,
        rows: 2.0,
        communication: 5.0,
        steps: 4.0,
        lists: 2.0,
        reading: 15.0,
    };
    assert_eq!(seconds, expected);
    assert_eq!(
        (seconds.dominant(), Seconds::default().saved(&seconds).0),
        ("reading parts", "reading parts")
    );
    // Reading takes longer than all that is beside it.
    assert_eq!(seconds.total(&config), 15.0 + 5.0 + 4.0);
    let seconds = Seconds { reading: 1.0, ..seconds };
    // Two threads each: drawing takes one of them for 5 s, lists for 2 s, computing both for 8 s.
    assert_eq!(seconds.total(&config), 11.5 + 5.0 + 4.0);
    config.train.pipeline = gnarl_config::Pipeline::Off;
    assert_eq!(seconds.total(&config), 14.0 + 5.0 + 4.0);
    // Machines of their own.
    config.train.engine = gnarl_config::Engine::Mpi;
    assert_eq!(Seconds::of(&work, &config).products, 1.0 + 0.5 + 1.0);
}

/// A run of R-GCN on four node types, two of them without features, and eight edge types.
fn typed(dir: &Path) -> RunConfig {
    let attributes = Attributes { features: 9, classes: 4, train: 0.4, ..Attributes::default() };
    let options = HeteroOptions {
        nodes: 1600,
        edges: 16_000,
        communities: 4,
        attributes,
        ..Default::default()
    };
    heterogeneous(&options, &dir.join("typed")).unwrap();
    let mut config = run_of("rgcn", &dir.join("typed"));
    (config.model.hidden, config.model.heads) = (24, 3);
    config
}

/// Each layer takes the order of products and messages that is predicted, by the same counts.
#[test]
fn bytes_of_heterogeneous_columns_are_those_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let base = typed(dir.path());
    let dataset = Dataset::open(&base.dataset.path).unwrap();
    type Change = fn(&mut RunConfig);
    let changes: [(&str, Change); 9] = [
        ("rgcn", |_| ()),
        ("rgcn-basis", |c| {
            (c.model.decomposition, c.model.bases) = (Decomposition::Basis, 2);
        }),
        ("rgcn-decoupled", |c| c.model.decoupled = true),
        ("rgat", |_| ()),
        ("hgt", |_| ()),
        ("hetero-sage", |_| ()),
        ("hetero-pool", |c| c.model.aggregator = Aggregator::MaxPool),
        ("hetero-gin", |c| c.model.relation_layer = "gin".into()),
        ("hetero-gat", |c| c.model.relation_layer = "gat".into()),
    ];
    for (name, change) in changes {
        for workers in [2, 4] {
            let mut config = base.clone();
            config.model.name = name.split('-').next().unwrap().into();
            (config.train.strategy, config.train.workers) = (Strategy::Tensor, workers);
            config.output.dir = dir.path().join(format!("{name}-{workers}"));
            change(&mut config);
            let facts = Facts::of(&config, &dataset).unwrap();
            let expected = facts.graph.sliced(&facts.model(&config), workers).sent;
            let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
            let sent = finished.history[1].exchanged_bytes.unwrap_or_default();
            for (sent, expected) in
                [(sent.forward, expected.forward), (sent.backward, expected.backward)]
            {
                let ratio = expected as f64 / sent as f64;
                // Shares are of whole rows and columns.
                assert!((ratio - 1.0).abs() < 0.01, "{name} on {workers}: ×{ratio:.4} of {sent}");
            }
        }
    }
}

/// Expected edges over all edge types against those of an epoch.
#[test]
fn edges_of_heterogeneous_batches_are_about_those_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let base = typed(dir.path());
    type Change = fn(&mut RunConfig);
    let changes: [(&str, Change); 5] = [
        ("few", |c| (c.sample.batch_size, c.sample.fanouts) = (50, vec![2, 2])),
        ("many", |c| (c.sample.batch_size, c.sample.fanouts) = (200, vec![20, 10])),
        ("all", |c| (c.sample.batch_size, c.sample.method) = (40, Method::Full)),
        ("one-type", |c| {
            (c.sample.batch_size, c.sample.fanouts) = (40, vec![3, 3]);
            c.sample.edge_fanouts.insert("venue:r6:paper".into(), vec![0, 9]);
        }),
        ("parts", |c| {
            (c.train.strategy, c.train.workers) = (Strategy::Average, 2);
            c.partition.parts = gnarl_config::Parts::Count(2);
            (c.sample.batch_size, c.sample.fanouts) = (50, vec![4, 4]);
        }),
    ];
    for (name, change) in changes {
        let mut config = base.clone();
        change(&mut config);
        config.output.dir = dir.path().join(name);
        let (strategy, workers) = (config.train.strategy, config.train.workers);
        let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
        let expected = of(&plan(&config, &[workers]), strategy, workers).work;
        let drawn = finished.history[0].sampled_edges as f64;
        let ratio = workers as f64 * expected.sampled_edges / drawn;
        assert!((ratio - 1.0).abs() < 0.1, "{name}: ×{ratio:.3}");
    }
}

/// Two layers of R-GCN over the whole graph by one worker, by hand: 24 → 24 → 4 columns.
#[test]
fn products_by_edge_type_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let config = typed(dir.path());
    let dataset = Dataset::open(&config.dataset.path).unwrap();
    let facts = Facts::of(&config, &dataset).unwrap();
    let (whole, types) = facts.graph.whole(&facts.model(&config));
    let mut groups = 0;
    for t in &dataset.manifest().edge_types {
        let lists = dataset.csc(&t.triple).unwrap();
        let nodes = lists.indptr.len() as u64 - 1;
        groups += (0..nodes).filter(|&v| lists.indptr.get(v + 1) > lists.indptr.get(v)).count();
    }
    assert_eq!(whole.groups, groups as f64);
    let named = &dataset.manifest().node_types;
    let has = |name: &str| dataset.features(name).unwrap().is_some();
    let projected: f64 =
        types.iter().zip(named).filter(|(_, t)| has(&t.name)).map(|(n, _)| n).sum();
    let one = of(&plan(&config, &[1]), Strategy::Tensor, 1).work;
    // The second layer maps first, if that exchanges less: a product for each sender.
    let first = (whole.groups + whole.targets) * 24.0 <= (whole.senders + whole.targets) * 24.0;
    let pairs = if first { whole.groups } else { whole.senders };
    let second = (whole.groups + whole.targets) * 24.0 <= (whole.senders + whole.targets) * 4.0;
    let last = if second { whole.groups } else { whole.senders };
    let flops = 2.0 * 2.0 * projected * 9.0 * 24.0
        + 3.0 * 2.0 * 24.0 * (24.0 * (pairs + whole.targets) + 4.0 * (last + whole.targets));
    assert!((one.flops / flops - 1.0).abs() < 1e-9, "{} of {flops}", one.flops);
    assert_eq!(one.steps, 1);
}
