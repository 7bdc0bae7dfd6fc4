//! `gnarl bench partition`: every partitioner on every graph, each in a process of its own.

mod cells;
mod graphs;
mod summary;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gnarl_graph::{Dataset, Error, Result, ResultExt};
use gnarl_partition::{PartitionReport, names};
use serde_json::{Value, json};

use crate::args::size;

/// `gnarl bench partition`
#[derive(Debug, Args)]
pub struct PartitionBench {
    /// Folder of graphs: one subfolder each, with edges.npy, triples.npy or edges__*.npy
    #[arg(long, env = "GNARL_DATA")]
    data: Option<PathBuf>,
    /// A dataset directory to cut too; may be repeated
    #[arg(long = "dataset", value_name = "DIR")]
    datasets: Vec<PathBuf>,
    /// The table, in Markdown; imported graphs are kept beside it, in a folder .work
    #[arg(long)]
    out: PathBuf,
    /// Numbers of parts
    #[arg(long, value_delimiter = ',', default_value = "4,8,16")]
    parts: Vec<usize>,
    /// Only these partitioners; options for 'gnarl partition' may follow a name, as in
    /// 'spring --tau-vol 500'
    #[arg(long, value_delimiter = ',')]
    algorithms: Vec<String>,
    /// Only these graphs, by name
    #[arg(long, value_delimiter = ',')]
    graphs: Vec<String>,
    /// Seconds after which a partitioner is stopped
    #[arg(long, default_value_t = 600)]
    timeout: u64,
    /// Memory each partitioner may hold
    #[arg(long, default_value = "4GiB", value_parser = size)]
    memory: u64,
    /// How much larger than the mean a part may be
    #[arg(long, default_value_t = 1.05)]
    balance: f64,
    /// Seed of everything drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A Python with numpy and pymetis, to cut the graphs by METIS of PyPI too
    #[arg(long)]
    python: Option<PathBuf>,
}

/// What one partitioner made of one graph, or in a few words why it made nothing.
struct Cell {
    graph: String,
    algorithm: String,
    parts: usize,
    result: Result<PartitionReport, String>,
}

pub fn run(args: &PartitionBench) -> Result<Value> {
    args.algorithms.iter().try_for_each(|spec| {
        let name = spec.split_whitespace().next().unwrap_or_default();
        gnarl_partition::by_name(name).map(drop)
    })?;
    let work = args.out.with_extension("work");
    std::fs::create_dir_all(&work).at(&work)?;
    let graphs = args.graphs(&work)?;
    let mut page = Page::create(&args.out)?;
    page.write(&introduction(args))?;
    let mut rows = Vec::new();
    for (name, path) in &graphs {
        let dataset = Dataset::open(path)?;
        let manifest = dataset.manifest();
        let edges: u64 = manifest.edge_types.iter().map(|t| t.count).sum();
        page.write(&heading(name, manifest.num_nodes(), edges))?;
        for &parts in &args.parts {
            for algorithm in args.algorithms() {
                let result = match algorithm.as_str() {
                    cells::PYMETIS => cells::pymetis(args, &dataset, parts, &work),
                    spec => cells::partition(args, path, spec, parts),
                };
                let cell = Cell { graph: name.clone(), algorithm, parts, result };
                page.write(&cell.row())?;
                tracing::info!("{name}: {}", cell.row().trim());
                rows.push(cell);
            }
        }
    }
    page.write(&summary::summary(&rows))?;
    Ok(json!({ "table": args.out, "rows": rows.iter().map(Cell::json).collect::<Vec<_>>() }))
}

impl PartitionBench {
    /// Names and dataset directories of the graphs; those of the data folder are imported.
    fn graphs(&self, work: &Path) -> Result<Vec<(String, PathBuf)>> {
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = |name: &str| self.graphs.is_empty() || self.graphs.iter().any(|g| g == name);
        let mut graphs = Vec::new();
        if let Some(data) = &self.data {
            for from in graphs::folders(data)?.into_iter().filter(|f| wanted(&name(f))) {
                let out = work.join(name(&from));
                graphs::import(&from, &out)?;
                graphs.push((name(&from), out));
            }
        }
        let given = self.datasets.iter().map(|path| (name(path), path.clone()));
        graphs.extend(given.filter(|(name, _)| wanted(name)));
        if graphs.is_empty() {
            return Err(Error::usage("no graph to cut")
                .hint("set GNARL_DATA or give --data or --dataset; see --graphs"));
        }
        Ok(graphs)
    }

    fn algorithms(&self) -> Vec<String> {
        let mut all = match self.algorithms.is_empty() {
            true => names().into_iter().map(String::from).collect(),
            false => self.algorithms.clone(),
        };
        all.extend(self.python.as_ref().map(|_| cells::PYMETIS.to_string()));
        all
    }
}

impl Cell {
    fn row(&self) -> String {
        let start = format!("| {} | {} |", self.algorithm, self.parts);
        match &self.result {
            Ok(r) => format!(
                "{start} {:.3} | {:.2} % | {:.3} | {:.3} | {:.3} | {:.2} | {} |\n",
                r.replication_factor,
                100.0 * r.edge_cut,
                r.node_balance,
                r.edge_balance,
                r.train_balance,
                r.seconds,
                r.peak_rss_bytes >> 20
            ),
            Err(why) => format!("{start} {why} | | | | | | |\n"),
        }
    }

    fn json(&self) -> Value {
        let (graph, algorithm, parts) = (&self.graph, &self.algorithm, self.parts);
        match &self.result {
            Ok(report) => json!({
                "graph": graph, "algorithm": algorithm, "parts": parts, "report": report
            }),
            Err(why) => {
                json!({ "graph": graph, "algorithm": algorithm, "parts": parts, "failure": why })
            }
        }
    }
}

fn introduction(args: &PartitionBench) -> String {
    let mut text = String::from(
        "# Partitioners compared\n\n\
         Made by `gnarl bench partition`. Each row is a process of its own. Replication: nodes \
         stored over nodes, with the full neighbour list of every node in its part (1 hop). Cut: \
         edges between parts. Balances: largest part over mean, of nodes, of edges into them, of \
         training nodes (the graph's split, or a seeded tenth of the nodes). Seconds: the \
         partitioner, its reading of the edges included. MiB: peak resident memory of the process, \
         measuring included.",
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (balance, seed) = (args.balance, args.seed);
    let memory = args.memory >> 20;
    let _ = write!(text, " Balance {balance}, seed {seed}, {memory} MiB allowed, {cores} cores.");
    if args.python.is_some() {
        text += " `pymetis`: METIS of PyPI, k-way, without weights; seconds and MiB of its call \
                 alone, the graph's arrays ready in memory.";
    }
    text + "\n"
}

fn heading(name: &str, nodes: u64, edges: u64) -> String {
    format!(
        "\n## {name}\n\n{nodes} nodes, {edges} edges.\n\n\
         | algorithm | parts | replication | cut | nodes | edges | training | seconds | MiB |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )
}

/// The Markdown file, written as rows come: what is there counts even if the rest never comes.
struct Page<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Page<'a> {
    fn create(path: &'a Path) -> Result<Self> {
        Ok(Self { path, file: File::create(path).at(path)? })
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).at(self.path)
    }
}
