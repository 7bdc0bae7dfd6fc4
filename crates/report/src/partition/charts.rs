//! Charts of a partition: part sizes and edges between parts.

use gnarl_partition::PartitionManifest;

use crate::page::svg::{Axis, Svg, legend, responsive, x_axis, y_axis};
use crate::page::text::{count, digits, large, percent, rows, seconds};

const HEIGHT: f64 = 300.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Most parts drawn individually; more are grouped.
const MOST: usize = 32;
/// Most parts whose cells have room for a number.
const NUMBERED: usize = 6;
const OWN_TRAINING: &str = "own training nodes";

/// Part sizes, the part-to-part matrix, degrees of cut nodes, and quality, as HTML.
pub(crate) fn charts(manifest: &PartitionManifest) -> String {
    let parts = Groups::new(manifest);
    let note = match parts.each {
        1 => String::new(),
        n => format!(", {n} neighboring parts taken together"),
    };
    let kinds = [("test", OWN_TRAINING), ("core", parts.own()), ("halo", "HALO copies")];
    let kinds = if parts.trains() { &kinds[..] } else { &kinds[1..] };
    let matrix = legend(&[("inside", "inside a part"), ("between", "between parts")]);
    format!(
        "<div class=\"pair\"><figure><figcaption>Nodes of each part{note}{}</figcaption>{}</figure>\
         <figure><figcaption>Edges from part (row) to part (column){note}{matrix}</figcaption>{}</figure>\
         {}</div>{}",
        legend(kinds),
        responsive(|width| parts.sizes(width)),
        responsive(|width| parts.matrix(width)),
        degrees(&manifest.report.cut_degrees),
        quality(manifest)
    )
}

/// Parts, or groups of neighboring parts where there are too many to draw.
struct Groups {
    each: usize,
    core: Vec<u64>,
    halo: Vec<u64>,
    train: Vec<u64>,
    cut: Vec<Vec<u64>>,
}

impl Groups {
    fn new(manifest: &PartitionManifest) -> Self {
        let each = manifest.parts.div_ceil(MOST).max(1);
        let total = |values: &[u64]| values.chunks(each).map(|c| c.iter().sum()).collect();
        let rows = manifest.cut.chunks(each).map(|rows| {
            let columns = rows.first().map_or(0, Vec::len);
            let sum = |c: usize| rows.iter().map(|row| row.get(c).unwrap_or(&0)).sum();
            total(&(0..columns).map(sum).collect::<Vec<u64>>())
        });
        let report = &manifest.report;
        let unknown = vec![0; manifest.parts];
        let train = if report.train_sizes.is_empty() { &unknown } else { &report.train_sizes };
        Self {
            each,
            train: total(train),
            core: total(&report.part_sizes),
            halo: total(&report.halo_sizes),
            cut: rows.collect(),
        }
    }

    fn trains(&self) -> bool {
        self.train.iter().any(|&n| n > 0)
    }

    /// The label of core nodes that are not training nodes.
    fn own(&self) -> &'static str {
        if self.trains() { "other own nodes" } else { "own nodes" }
    }

    fn name(&self, i: usize) -> String {
        match self.each {
            1 => i.to_string(),
            n => format!("{}–{}", i * n, (i + 1) * n - 1),
        }
    }

    fn sizes(&self, page: f64) -> Svg {
        let number = self.core.len();
        let both = || self.core.iter().zip(&self.halo).enumerate();
        let largest = both().map(|(_, (core, halo))| core + halo).max().unwrap_or(0);
        let x = Axis::counts(-0.5..number as f64 - 0.5, 70.0..page - 10.0);
        let y = Axis::new(0.0..largest as f64, BOTTOM..24.0, 4.0, true);
        let mut svg = Svg::new(page, HEIGHT, "Own nodes and HALO copies of each part");
        y_axis(&mut svg, &x, &y, "nodes");
        x_axis(&mut svg, &x, BOTTOM, if self.each == 1 { "part" } else { "group of parts" });
        let width = ((x.at(1.0) - x.at(0.0)) * 0.8).min(70.0);
        for (i, (&core, &halo)) in both() {
            let left = x.at(i as f64) - width / 2.0;
            let train = self.train[i].min(core);
            let name = self.name(i);
            let mut below = 0;
            for (class, nodes, what) in [
                ("test", train, OWN_TRAINING),
                ("core", core - train, self.own()),
                ("halo", halo, "HALO copies"),
            ] {
                let from = y.at(below as f64);
                let to = y.at((below + nodes) as f64);
                let hover = format!("part {name}: {} {what}", count(nodes));
                if nodes > 0 {
                    svg.rect(class, left, to, width, from - to, &hover);
                }
                below += nodes;
            }
        }
        svg
    }

    fn matrix(&self, page: f64) -> Svg {
        let number = self.cut.len().max(1);
        let between = |i: usize| move |(j, n): (usize, &u64)| (j != i).then_some(*n);
        let cells = self.cut.iter().enumerate();
        let strongest =
            cells.filter_map(|(i, row)| row.iter().enumerate().filter_map(between(i)).max()).max();
        let strongest = strongest.unwrap_or(0).max(1) as f64;
        let size = (HEIGHT - 40.0) / number as f64;
        let left = (page - size * number as f64) / 2.0;
        let top = 24.0;
        let mut svg = Svg::new(page, HEIGHT, "Edges between parts");
        let every = number.div_ceil(12);
        for (i, row) in self.cut.iter().enumerate() {
            let middle = (i as f64 + 0.5) * size;
            if i % every == 0 {
                let first = (i * self.each).to_string();
                svg.text("tick end", left - 8.0, top + middle + 4.0, &first);
                svg.text("tick mid", left + middle, top - 8.0, &first);
            }
            for (j, &edges) in row.iter().enumerate() {
                let at = (left + j as f64 * size, top + i as f64 * size);
                let share = (edges as f64 / strongest).sqrt().min(1.0);
                let hover = format!("{} → {}: {} edges", self.name(i), self.name(j), count(edges));
                let gap = if number <= MOST / 2 { 1.5 } else { 0.4 };
                let class = if i == j { "inside" } else { "between" };
                svg.shade(
                    class,
                    if i == j { 1.0 } else { 0.06 + 0.94 * share },
                    at,
                    size - gap,
                    &hover,
                );
                if number <= NUMBERED {
                    let class = if i != j && share > 0.55 { "on mid" } else { "cell mid" };
                    let x = at.0 + size / 2.0;
                    let y = at.1 + size / 2.0 + 4.0;
                    let number = if edges < 1000 { edges.to_string() } else { large(edges as f64) };
                    svg.text(class, x, y, &number);
                }
            }
        }
        svg
    }
}

/// The number of nodes with an edge into another part or from one, by in-degree.
fn degrees(histogram: &[u64]) -> String {
    if histogram.iter().all(|&nodes| nodes == 0) {
        return String::new();
    }
    let picture = responsive(|width| degree_bars(histogram, width));
    format!(
        "<figure><figcaption>Nodes with edges between parts, by degree</figcaption>{picture}</figure>"
    )
}

fn degree_bars(histogram: &[u64], page: f64) -> Svg {
    let largest = histogram.iter().max().copied().unwrap_or(0);
    let x = Axis::counts(-0.5..histogram.len() as f64 - 0.5, 70.0..page - 10.0);
    let y = Axis::new(0.0..largest as f64, BOTTOM..24.0, 4.0, true);
    let mut svg = Svg::new(page, HEIGHT, "Nodes with cut edges by degree");
    y_axis(&mut svg, &x, &y, "nodes");
    let width = ((x.at(1.0) - x.at(0.0)) * 0.8).min(70.0);
    let every = histogram.len().div_ceil(if page < 400.0 { 6 } else { 10 });
    for (bin, &nodes) in histogram.iter().enumerate() {
        let middle = x.at(bin as f64);
        let top = y.at(nodes as f64);
        let degrees = bin_name(bin);
        let hover = format!("degree {degrees}: {} nodes", count(nodes));
        svg.rect("between", middle - width / 2.0, top, width, y.at(0.0) - top, &hover);
        if bin % every == 0 {
            svg.text("tick mid", middle, BOTTOM + 17.0, &degrees);
        }
    }
    svg.line("axis", (x.at(-0.5), BOTTOM), (page - 10.0, BOTTOM));
    svg.text("label end", page - 10.0, BOTTOM + 34.0, "in-degree");
    svg
}

/// The degrees of a bin of [`cut_degrees`](gnarl_partition::PartitionReport::cut_degrees).
fn bin_name(bin: usize) -> String {
    let first = 1u64 << bin.saturating_sub(1).min(62);
    match bin {
        0 | 1 => bin.to_string(),
        2..=10 => format!("{first}–{}", 2 * first - 1),
        _ => format!("{}k–{}k", first >> 10, first >> 9),
    }
}

fn quality(manifest: &PartitionManifest) -> String {
    let r = &manifest.report;
    rows(&[
        ("Partitioner", format!("{}, seed {}", r.algorithm, manifest.seed)),
        ("Parts", r.parts.to_string()),
        ("Hops kept around a part", manifest.hops.to_string()),
        ("Replication factor (stored nodes / nodes)", digits(r.replication_factor)),
        ("Edge cut", percent(r.edge_cut)),
        ("Node balance (largest / mean)", digits(r.node_balance)),
        ("Edge balance (largest / mean)", digits(r.edge_balance)),
        ("Training-node balance (largest / mean)", digits(r.train_balance)),
        ("Seconds to partition", seconds(r.seconds)),
        ("Seconds to write the parts", seconds(r.write_seconds)),
    ])
}
