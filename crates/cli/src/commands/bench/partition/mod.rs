//! `gnarl bench partition`: every partitioner on every graph, each in a process of its own.

mod args;
mod cells;
mod graphs;
mod summary;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result, ResultExt};
use gnarl_graph::Dataset;
use gnarl_partition::names;
use serde_json::{Value, json};

pub use args::PartitionBench;
use cells::Cell;

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

fn introduction(args: &PartitionBench) -> String {
    let mut text = String::from(
        "# Partitioners compared\n\n\
         Made by `gnarl bench partition`. Each row is a process of its own. Replication: nodes \
         stored over nodes, with the full neighbor list of every node in its part (1 hop). Cut: \
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

/// The Markdown file, written row by row, so that finished rows survive an interruption.
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
