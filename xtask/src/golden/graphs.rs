//! The small graphs that golden runs train on.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use super::runner::command;

/// A graph, by the name of its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Graph {
    /// Communities with features and four classes; symmetric.
    Plain,
    /// Directed edges with weights, times, features and classes; nodes with features and classes.
    Rich,
    /// As [`Graph::Rich`], with numbers of nodes, and numbers of edges instead of classes.
    Valued,
    /// Four node types and six edge types; two types have features, one has labels.
    Hetero,
    /// The knowledge graph Kinships.
    Knowledge,
}

impl Graph {
    /// The folder of the dataset.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rich => "rich",
            Self::Valued => "valued",
            Self::Hetero => "hetero",
            Self::Knowledge => "knowledge",
        }
    }
}

/// Makes every graph, and partitions of the two that are read in parts, in `folder`.
pub fn make(gnarl: &Path, repository: &Path, folder: &Path) -> Result<()> {
    let run = |words: &[&str]| command(gnarl, folder, words).map(drop);
    run(&words(
        "generate community --nodes 400 --communities 8 --classes 4 --features 12 \
         --average-degree 8 --seed 1 --out plain",
    ))?;
    run(&words(
        "generate typed --nodes 600 --edges 3000 --relations 6 --communities 4 --features 8 \
         --seed 2 --out hetero",
    ))?;
    rich(folder)?;
    let rich = words(
        "import csv --edges rich-edges.csv --nodes rich-nodes.csv --features x* --edge-features f* \
         --edge-split part",
    );
    run(&[&rich[..], &words("--edge-label kind --out rich")].concat())?;
    run(&[&rich[..], &words("--edge-value worth --value size --out valued")].concat())?;
    let kinships = repository.join("examples/data/kinships");
    let file = |name: &str| kinships.join(name).display().to_string();
    let (train, valid, test) = (file("train.txt"), file("valid.txt"), file("test.txt"));
    run(&[
        "import",
        "triples",
        "--train",
        &train,
        "--valid",
        &valid,
        "--test",
        &test,
        "--out",
        "knowledge",
    ])?;
    run(&words("partition plain --parts 2 --out plain-2"))?;
    run(&words("partition plain --parts 2 --algorithm hdrf --layout vertex-cut --out plain-cut"))
}

/// Splits a line of words.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Tables whose every column follows from row numbers.
fn rich(folder: &Path) -> Result<()> {
    const SPLITS: [&str; 5] = ["train", "train", "valid", "train", "test"];
    const NODES: u64 = 200;
    let mut nodes = String::from("id,x0,x1,x2,size,label,split\n");
    for node in 0..NODES {
        let class = node % 3;
        let x = |column: u64| ((node * 7 + column * 13 + class * 50) % 101) as f64 / 101.0;
        let split = SPLITS[(node / 3 % 5) as usize];
        let size = x(0) - x(1) + class as f64;
        writeln!(nodes, "{node},{},{},{},{size},{class},{split}", x(0), x(1), x(2))?;
    }
    let mut edges = String::from("src,dst,weight,time,f0,f1,kind,worth,part\n");
    for edge in 0..5 * NODES {
        let source = edge % NODES;
        let step = 1 + edge / NODES * 3;
        let target = (source + step) % NODES;
        let weight = 0.25 + (edge % 7) as f64 / 4.0;
        let kind = ["near", "far", "wide"][(step % 3) as usize];
        let worth = ((source % 3) as f64 - (target % 3) as f64) / 2.0;
        let part = SPLITS[(edge * 31 / 7 % 5) as usize];
        let f = (edge * 17 % 23) as f64 / 23.0;
        writeln!(
            edges,
            "{source},{target},{weight},{},{f},{},{kind},{worth},{part}",
            edge * 37 % 1000,
            1.0 - f
        )?;
    }
    std::fs::write(folder.join("rich-nodes.csv"), nodes)?;
    std::fs::write(folder.join("rich-edges.csv"), edges)?;
    Ok(())
}
