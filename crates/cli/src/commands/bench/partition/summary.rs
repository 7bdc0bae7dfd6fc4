//! Summary of the table.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::cells::Cell;

/// CATGNN's baselines for SPRING (its Figure 6).
const BASELINES: [&str; 4] = ["dbh", "greedy", "hdrf", "2ps-l"];

/// Replication of every algorithm beside METIS's, and of SPRING beside CATGNN's baselines.
pub fn summary(cells: &[Cell]) -> String {
    let mut text = String::from("\n# Summary\n");
    beside_metis(cells, &mut text);
    beside_baselines(cells, &mut text);
    text
}

fn replication(cells: &[Cell], graph: &str, algorithm: &str, parts: usize) -> Option<f64> {
    let same = |c: &&Cell| c.graph == graph && c.algorithm == algorithm && c.parts == parts;
    let report = cells.iter().find(same)?.result.as_ref().ok()?;
    Some(report.replication_factor)
}

/// Names in the order of their first cells.
fn distinct<'a>(cells: &'a [Cell], of: impl Fn(&'a Cell) -> &'a str) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    cells.iter().map(of).filter(|name| seen.insert(*name)).collect()
}

fn part_counts(cells: &[Cell]) -> BTreeSet<usize> {
    cells.iter().map(|c| c.parts).collect()
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

fn beside_metis(cells: &[Cell], text: &mut String) {
    let counts = part_counts(cells);
    let graphs = distinct(cells, |c| &c.graph);
    let columns: String = counts.iter().map(|p| format!(" {p} parts |")).collect();
    *text += "\nReplication factor over that of `metis`, geometric mean over the graphs that both \
              cut (their number in brackets):\n\n";
    let _ = writeln!(text, "| algorithm |{columns}\n|---|{}", "---:|".repeat(counts.len()));
    for algorithm in distinct(cells, |c| &c.algorithm) {
        let _ = write!(text, "| {algorithm} |");
        for &parts in &counts {
            let ratio = |graph: &&str| {
                let metis = replication(cells, graph, "metis", parts)?;
                Some(replication(cells, graph, algorithm, parts)? / metis)
            };
            let ratios: Vec<f64> = graphs.iter().filter_map(ratio).collect();
            let _ = match ratios.len() {
                0 => write!(text, " – |"),
                n => write!(text, " {:.3} ({n}) |", geometric_mean(&ratios)),
            };
        }
        text.push('\n');
    }
}

fn beside_baselines(cells: &[Cell], text: &mut String) {
    let known = distinct(cells, |c| &c.algorithm);
    let baselines: Vec<&str> = BASELINES.into_iter().filter(|b| known.contains(b)).collect();
    if baselines.is_empty() || !known.contains(&"spring") {
        return;
    }
    let columns: String = baselines.iter().map(|b| format!(" {b} |")).collect();
    *text += "\nReplication factor of `spring` over that of others, geometric mean over the numbers \
              of parts:\n\n";
    let _ =
        writeln!(text, "| graph |{columns} lowest |\n|---|{}---|", "---:|".repeat(baselines.len()));
    let counts = part_counts(cells);
    let mut all = vec![Vec::new(); baselines.len()];
    for graph in distinct(cells, |c| &c.graph) {
        let _ = write!(text, "| {graph} |");
        let mut lowest = true;
        for (baseline, all) in baselines.iter().zip(&mut all) {
            let ratio = |&parts: &usize| {
                let spring = replication(cells, graph, "spring", parts)?;
                Some(spring / replication(cells, graph, baseline, parts)?)
            };
            let ratios: Vec<f64> = counts.iter().filter_map(ratio).collect();
            if ratios.is_empty() {
                *text += " – |";
                continue;
            }
            lowest &= ratios.iter().all(|&r| r < 1.0);
            all.push(geometric_mean(&ratios));
            let _ = write!(text, " {:.3} |", geometric_mean(&ratios));
        }
        let _ = writeln!(text, " {} |", if lowest { "yes" } else { "no" });
    }
    let means = all.iter().map(|ratios| format!(" {:.3} |", geometric_mean(ratios)));
    let _ = writeln!(text, "| geometric mean |{} |", means.collect::<String>());
}
