//! CATGNN's experiments on model averaging (its Figures 7, 11 and 12) on local graphs.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::RunConfig;
use gnarl_config::{EvaluateOn, Method, Parts, RandomSplit, ScheduleKind, Strategy};
use gnarl_graph::import::{NpyOptions, npy};
use serde_json::{Value, json};

use super::kept::Kept;

/// A graph, and the settings with which its runs converge with one step per epoch and part.
struct Graph {
    name: &'static str,
    epochs: usize,
    schedule: ScheduleKind,
    /// Learning rate of each of [`MODELS`].
    rates: [f32; 3],
}

/// Amazon Photo's features are dense: at the rate of the others GraphSAGE has not converged after
/// 300 epochs, and neither have the models of different parts.
const GRAPHS: [Graph; 3] = [
    Graph { name: "pubmed", epochs: 100, schedule: ScheduleKind::Constant, rates: [0.01; 3] },
    Graph {
        name: "amazon_photo",
        epochs: 300,
        schedule: ScheduleKind::Cosine,
        rates: [0.01, 0.01, 0.003],
    },
    Graph {
        name: "coauthor_physics",
        epochs: 100,
        schedule: ScheduleKind::Constant,
        rates: [0.01; 3],
    },
];
const MODELS: [&str; 3] = ["gcn", "gat", "sage"];
const PARTS: [usize; 3] = [1, 4, 8];
const INTERVALS: [usize; 4] = [1, 5, 10, 20];

/// Settings shared by all runs of a table.
struct Bench<'a> {
    work: PathBuf,
    data: &'a Path,
    seeds: u64,
    epochs: Option<usize>,
    kept: Kept,
}

/// Measures `graphs`, or all if there are none, and writes the page `out`. Each graph's section and
/// each run's score are kept in the work folder beside it, so that the page can be made in several
/// goes.
pub fn run(
    data: &Path,
    out: &Path,
    seeds: u64,
    epochs: Option<usize>,
    graphs: &[String],
) -> Result<Value> {
    let names = GRAPHS.map(|graph| graph.name);
    if let Some(unknown) = graphs.iter().find(|g| !names.contains(&g.as_str())) {
        return Err(Error::usage(format!("--graphs: no graph '{unknown}' in this comparison"))
            .hint(format!("there are {}", names.join(", "))));
    }
    let work = out.with_extension("work");
    let kept = Kept::new(work.join("runs.jsonl"));
    let bench = Bench { work, data, seeds, epochs, kept };
    let mut rows = Vec::new();
    for graph in &GRAPHS {
        if graphs.is_empty() || graphs.iter().any(|g| g == graph.name) {
            bench.import(graph.name)?;
            let mut text = String::new();
            bench.tables(graph, &mut text, &mut rows)?;
            let section = bench.section(graph.name);
            std::fs::write(&section, text).at(&section)?;
        }
        bench.assemble(out)?;
    }
    Ok(json!({ "table": out, "rows": rows }))
}

const INTRODUCTION: &str = "# Training on parts with model averaging\n\n\
    Test accuracy of model averaging (`train.strategy = \"average\"`), where parts train alone, beside \
    training on the whole graph, after CATGNN's Figures 7, 11 and 12. Two layers of 256 (GAT: 4 \
    heads of 64), Adam, dropout 0.5, raw features, all training nodes of a part in each step, no \
    warm-up, a seeded 70/15/15 split, the weights best in validation (evaluated every 5 epochs). GCN and GAT \
    read all neighbors, GraphSAGE samples 25 and 10. Parts by SPRING. `gnarl bench catgnn --out \
    docs/catgnn.md` regenerates this page from `GNARL_DATA`.\n\n";

impl Bench<'_> {
    fn section(&self, graph: &str) -> PathBuf {
        self.work.join(format!("{graph}.md"))
    }

    /// Writes the page from the existing sections.
    fn assemble(&self, out: &Path) -> Result<()> {
        let mut text = String::from(INTRODUCTION);
        for section in
            GRAPHS.map(|graph| self.section(graph.name)).iter().filter(|path| path.exists())
        {
            text.push_str(&std::fs::read_to_string(section).at(section)?);
            text.push('\n');
        }
        std::fs::write(out, text.trim_end().to_owned() + "\n").at(out)
    }

    fn import(&self, graph: &str) -> Result<()> {
        let from = self.data.join(graph);
        let out = self.work.join("data").join(graph);
        if out.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(self.work.join("data")).at(&self.work)?;
        let options = NpyOptions {
            features: Some(from.join("features_csr.npz")),
            labels: Some(from.join("labels.npy")),
            ..NpyOptions::new(from.join("edges.npy"))
        };
        npy(&options, &out).map(drop)
    }

    fn config(&self, graph: &Graph, model: &str, parts: usize) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.work.join("data").join(graph.name);
        config.dataset.split = Some(RandomSplit { train: 0.7, valid: 0.15, test: 0.15, seed: 0 });
        config.partition.algorithm = "spring".into();
        config.partition.parts = Parts::Count(parts);
        config.model.name = model.into();
        config.model.hidden = 256;
        config.sample.batch_size = 0;
        match model {
            "sage" => config.sample.fanouts = vec![25, 10],
            _ => config.sample.method = Method::Full,
        }
        config.train.strategy = Strategy::Average;
        // One hop of halo nodes, and the averaging of the paper, in steps over all nodes of a part.
        config.partition.hops = Some(1);
        config.average.warmup = 0;
        config.train.workers = parts.min(2);
        config.train.epochs = self.epochs.unwrap_or(graph.epochs);
        config.schedule.kind = graph.schedule;
        let rate = MODELS.iter().zip(graph.rates).find(|(name, _)| **name == model);
        config.train.lr = rate.expect("one of the models").1;
        config.train.eval_every = 5;
        config.train.checkpoint_seconds = 1e6;
        config.output.dir = self.work.join("run");
        config
    }

    fn score(&self, config: &RunConfig) -> Result<f64> {
        self.kept.mean_score(config, self.seeds)
    }

    fn tables(&self, graph: &Graph, text: &mut String, rows: &mut Vec<Value>) -> Result<()> {
        let Graph { name, epochs, schedule, rates } = graph;
        let (seeds, epochs) = (self.seeds, self.epochs.unwrap_or(*epochs));
        let rates = MODELS.iter().zip(rates).map(|(model, rate)| format!("{model} {rate}"));
        let rates = rates.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "## {name}\n\nSeeds averaged: {seeds}; epochs: {epochs}; learning rates: {rates}; \
             schedule: {schedule:?}.\n"
        );
        let _ = writeln!(text, "| model | whole graph | 4 parts | 8 parts |\n|---|---|---|---|");
        for model in MODELS {
            let _ = write!(text, "| {model} |");
            for parts in PARTS {
                let score = self.score(&self.config(graph, model, parts))?;
                tracing::info!("{} {model} {parts} parts: {score:.4}", graph.name);
                rows.push(
                    json!({ "graph": graph.name, "model": model, "parts": parts, "accuracy": score }),
                );
                let _ = write!(text, " {score:.4} |");
            }
            text.push('\n');
        }
        self.intervals(graph, text, rows)?;
        self.hops(graph, text, rows)
    }

    fn intervals(&self, graph: &Graph, text: &mut String, rows: &mut Vec<Value>) -> Result<()> {
        let _ = writeln!(text, "\n4 parts, by the number of epochs between two averagings:\n");
        let _ = writeln!(text, "| model | 1 | 5 | 10 | 20 |\n|---|---|---|---|---|");
        for model in MODELS {
            let _ = write!(text, "| {model} |");
            for every in INTERVALS {
                let mut config = self.config(graph, model, 4);
                config.train.sync_every = every;
                let score = self.score(&config)?;
                tracing::info!("{} {model} sync_every {every}: {score:.4}", graph.name);
                rows.push(json!({ "graph": graph.name, "model": model, "sync_every": every, "accuracy": score }));
                let _ = write!(text, " {score:.4} |");
            }
            text.push('\n');
        }
        Ok(())
    }

    fn hops(&self, graph: &Graph, text: &mut String, rows: &mut Vec<Value>) -> Result<()> {
        let _ = writeln!(
            text,
            "\nGraphSAGE on 4 parts, by hops of halo nodes (0: cut edges on one side only), each part \
             evaluating its own nodes with the edges it has:\n"
        );
        let _ = writeln!(text, "| layers | 0 | 1 | 2 | 3 |\n|---|---|---|---|---|");
        for (layers, fanouts) in [(2, vec![25, 10]), (3, vec![15, 10, 5])] {
            let _ = write!(text, "| {layers} |");
            for hops in 0..=3 {
                let mut config = self.config(graph, "sage", 4);
                config.model.layers = layers;
                config.sample.fanouts = fanouts.clone();
                config.partition.hops = Some(hops);
                config.train.evaluate_on = EvaluateOn::Parts;
                let score = self.score(&config)?;
                tracing::info!("{} sage {layers} layers, {hops} hops: {score:.4}", graph.name);
                rows.push(
                    json!({ "graph": graph.name, "layers": layers, "hops": hops, "accuracy": score }),
                );
                let _ = write!(text, " {score:.4} |");
            }
            text.push('\n');
        }
        text.push('\n');
        Ok(())
    }
}
