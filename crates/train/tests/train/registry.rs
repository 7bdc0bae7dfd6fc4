//! Samplers, partitioners, outer optimizers and heterogeneous models that a program adds: trained by name, used, and
//! refused where there is none.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_config::{Method, Outer, Parts, RunConfig, Strategy};
use gnarl_graph::EdgeStream;
use gnarl_graph::blocks::MiniBatch;
use gnarl_graph::generate::{CommunityOptions, HeteroOptions, community, heterogeneous};
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::heterogeneous as models;
use gnarl_partition::{Assignment, PartitionOptions, PartitionedDataset, VertexPartitioner};
use gnarl_sample::{Sampler, Scratch, UniformSampler};
use gnarl_train::{Begin, Finished, OuterOptimizer, Registry, run};

/// Uniform neighbors of the seeds, and the number of batches that were drawn.
struct Counting {
    inner: UniformSampler,
    batches: Arc<AtomicUsize>,
}

impl Sampler for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.inner.sample(seeds, key, scratch)
    }
}

/// Node after node, in turns.
struct Turns;

impl VertexPartitioner for Turns {
    fn name(&self) -> &'static str {
        "turns"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        options.check(edges.num_nodes())?;
        let of = (0..edges.num_nodes()).map(|node| (node % options.parts as u64) as u16);
        Ok(Assignment { parts: options.parts, of: of.collect() })
    }
}

/// Goes a share of the way to the average.
struct Partway(f32);

impl OuterOptimizer for Partway {
    fn step(&mut self, weights: &mut [f32], average: &[f32], _: f32) {
        for (weight, average) in weights.iter_mut().zip(average) {
            *weight += self.0 * (average - *weight);
        }
    }

    fn state(&self) -> Vec<(String, Vec<f32>)> {
        Vec::new()
    }

    fn load_state(&mut self, _: &Vec<(String, Vec<f32>)>) -> Result<()> {
        Ok(())
    }
}

fn config(dir: &Path, name: &str) -> RunConfig {
    let path = dir.join("graph");
    if !path.exists() {
        community(&CommunityOptions { nodes: 400, ..CommunityOptions::default() }, &path).unwrap();
    }
    let mut config = RunConfig::default();
    config.dataset.path = path;
    config.model.hidden = 8;
    config.sample.fanouts = vec![4, 4];
    config.sample.batch_size = 32;
    config.train.epochs = 4;
    config.train.workers = 2;
    config.output.dir = dir.join(name);
    config
}

fn train(registry: &Registry, config: &RunConfig) -> Finished {
    registry.run(config, Begin::Fresh, &|_| {}).unwrap()
}

fn refused(registry: &Registry, config: &RunConfig) -> String {
    format!("{:?}", registry.run(config, Begin::Fresh, &|_| {}).err().unwrap())
}

#[test]
fn samplers_of_a_program_draw_the_batches() {
    let dir = tempfile::tempdir().unwrap();
    let batches = Arc::new(AtomicUsize::new(0));
    let mut registry = Registry::default();
    let count = batches.clone();
    registry
        .add_sampler("counting", move |config, graph, _| {
            let inner = UniformSampler::new(graph, &config.sample.fanouts)?;
            Ok(Box::new(Counting { inner, batches: count.clone() }))
        })
        .unwrap();
    let mut config = config(dir.path(), "one");
    config.sample.method = Method::Custom;
    config.sample.name = Some("counting".into());
    config.train.workers = 1;
    let one = train(&registry, &config);
    let drawn = batches.swap(0, Ordering::Relaxed);
    assert!(drawn > 4, "{drawn} batches in four epochs");
    config.train.workers = 2;
    config.output.dir = dir.path().join("two");
    let two = train(&registry, &config);
    assert_eq!(batches.load(Ordering::Relaxed), 2 * drawn);
    for (one, two) in one.summary.losses.iter().zip(&two.summary.losses) {
        assert!((one - two).abs() < 1e-5, "{one} with one worker, {two} with two");
    }

    let error = format!("{:?}", run(&config, Begin::Restart, &|_| {}).err().unwrap());
    assert!(error.contains("sample.name: this program has no sampler 'counting'"), "{error}");
    assert!(error.contains("Registry::add_sampler"), "{error}");
    config.train.strategy = Strategy::Tensor;
    config.output.dir = dir.path().join("tensor");
    let error = refused(&registry, &config);
    assert!(error.contains("takes all neighbors and does not sample"), "{error}");
    config.sample.name = None;
    assert!(refused(&registry, &config).contains("no sample.name"));
}

#[test]
fn partitioners_of_a_program_make_the_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = Registry::default();
    registry.add_partitioner(Turns).unwrap();
    let mut config = config(dir.path(), "run");
    config.partition.algorithm = "turns".into();
    config.partition.parts = Parts::Count(2);
    config.train.strategy = Strategy::Average;
    let finished = train(&registry, &config);
    let made = PartitionedDataset::open(finished.summary.run_dir.join("partition")).unwrap();
    assert_eq!(made.manifest().algorithm, "turns");
    let expected: Vec<u32> = (0..400).map(|node| node % 2).collect();
    assert_eq!(made.assignment("_N").unwrap().to_vec(), expected);
    config.output.dir = dir.path().join("other");
    assert!(refused(&Registry::default(), &config).contains("unknown partitioner 'turns'"));
}

#[test]
fn outer_optimizers_of_a_program_move_the_weights() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = Registry::default();
    registry
        .add_outer_optimizer("partway", |section, _| Ok(Box::new(Partway(section.outer_lr()))))
        .unwrap();
    let mut config = config(dir.path(), "plain");
    config.partition.parts = Parts::Count(2);
    config.train.strategy = Strategy::Average;
    let plain = train(&registry, &config);
    config.average.outer = Outer::Custom;
    config.average.name = Some("partway".into());
    config.output.dir = dir.path().join("all the way");
    // Weights that go all the way differ from the average by rounding alone.
    let all = train(&registry, &config);
    let close = |a: &f64, b: &f64| (a - b).abs() < 1e-4;
    assert!(all.summary.losses.iter().zip(&plain.summary.losses).all(|(a, b)| close(a, b)));
    config.average.outer_lr = Some(0.3);
    config.output.dir = dir.path().join("partway");
    let some = train(&registry, &config);
    assert!(some.summary.losses[3] > plain.summary.losses[3], "slower steps learn less");
    config.average.name = Some("halfway".into());
    config.output.dir = dir.path().join("unknown");
    assert!(refused(&registry, &config).contains("no outer optimizer 'halfway'"));
}

#[test]
fn heterogeneous_models_of_a_program_are_trained() {
    let dir = tempfile::tempdir().unwrap();
    let options = HeteroOptions { nodes: 400, edges: 2000, ..HeteroOptions::default() };
    heterogeneous(&options, &dir.path().join("graph")).unwrap();
    let mut registry = Registry::default();
    registry
        .add_hetero_model("mine", |config, schema, sources, params| {
            let config = ModelConfig { name: "rgcn".into(), ..config.clone() };
            models::add(&config, schema, sources, params)
        })
        .unwrap();
    let mut own = config(dir.path(), "own");
    own.model.name = "mine".into();
    let mut known = config(dir.path(), "known");
    known.model.name = "rgcn".into();
    let (own_run, known) = (train(&registry, &own), train(&registry, &known));
    assert_eq!(own_run.summary.losses, known.summary.losses);
    assert_eq!(own_run.summary.test, known.summary.test);
    own.output.dir = dir.path().join("other");
    let error = refused(&Registry::default(), &own);
    assert!(error.contains("unknown heterogeneous model 'mine'"), "{error}");
}

#[test]
fn names_of_the_library_are_taken() {
    let mut registry = Registry::default();
    let model = registry.add_hetero_model("rgcn", models::add).unwrap_err().to_string();
    assert!(model.contains("duplicate heterogeneous model 'rgcn'"), "{model}");
    registry.add_partitioner(Turns).unwrap();
    let turns = registry.add_partitioner(Turns).unwrap_err().to_string();
    assert!(turns.contains("duplicate partitioner 'turns'"), "{turns}");
}
