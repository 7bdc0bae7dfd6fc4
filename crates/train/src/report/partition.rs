//! The partition: how large its parts are and what runs between them.

use gnarl_partition::PartitionManifest;

use super::figures::rows;
use super::svg::{Axis, Svg, WIDTH, legend, x_axis, y_axis};
use super::text::{count, digits, large, percent, seconds};

const HEIGHT: f64 = 300.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Most parts drawn one by one; more are taken together.
const MOST: usize = 32;
/// Most parts whose cells have room for a number.
const NUMBERED: usize = 8;

/// Part sizes, the part-to-part matrix, and quality.
pub(super) fn pictures(manifest: &PartitionManifest) -> String {
    let parts = Groups::new(manifest);
    let note = match parts.each {
        1 => String::new(),
        n => format!(", {n} neighbouring parts taken together"),
    };
    let sizes = legend(&[("core", "own nodes"), ("halo", "HALO copies")]);
    let matrix = legend(&[("inside", "inside a part"), ("between", "between parts")]);
    format!(
        "<div class=\"pair\"><figure><figcaption>Nodes of each part{note}{sizes}</figcaption>{}</figure>\
         <figure><figcaption>Edges from part (row) to part (column){note}{matrix}</figcaption>{}</figure>\
         </div>{}",
        parts.sizes(),
        parts.matrix(),
        quality(manifest)
    )
}

/// Parts, or groups of neighbouring parts where there are too many to draw.
struct Groups {
    each: usize,
    core: Vec<u64>,
    halo: Vec<u64>,
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
        Self {
            each,
            core: total(&report.part_sizes),
            halo: total(&report.halo_sizes),
            cut: rows.collect(),
        }
    }

    fn name(&self, i: usize) -> String {
        match self.each {
            1 => i.to_string(),
            n => format!("{}–{}", i * n, (i + 1) * n - 1),
        }
    }

    fn sizes(&self) -> String {
        let number = self.core.len();
        let both = || self.core.iter().zip(&self.halo).enumerate();
        let largest = both().map(|(_, (core, halo))| core + halo).max().unwrap_or(0);
        let x = Axis::counts(-0.5..number as f64 - 0.5, 70.0..WIDTH - 10.0);
        let y = Axis::new(0.0..largest as f64, BOTTOM..24.0, 4.0, true);
        let mut svg = Svg::new(HEIGHT, "Own nodes and HALO copies of each part");
        y_axis(&mut svg, &x, &y, "nodes");
        x_axis(&mut svg, &x, BOTTOM, if self.each == 1 { "part" } else { "group of parts" });
        let width = ((x.at(1.0) - x.at(0.0)) * 0.8).min(70.0);
        for (i, (&core, &halo)) in both() {
            let left = x.at(i as f64) - width / 2.0;
            let (middle, top) = (y.at(core as f64), y.at((core + halo) as f64));
            let (name, own, copies) = (self.name(i), count(core), count(halo));
            let hover = format!("part {name}: {own} own nodes");
            svg.rect("core", left, middle, width, y.at(0.0) - middle, &hover);
            svg.rect(
                "halo",
                left,
                top,
                width,
                middle - top,
                &format!("part {name}: {copies} copies"),
            );
        }
        svg.finish()
    }

    fn matrix(&self) -> String {
        let number = self.cut.len().max(1);
        let between = |i: usize| move |(j, n): (usize, &u64)| (j != i).then_some(*n);
        let cells = self.cut.iter().enumerate();
        let strongest =
            cells.filter_map(|(i, row)| row.iter().enumerate().filter_map(between(i)).max()).max();
        let strongest = strongest.unwrap_or(0).max(1) as f64;
        let size = (HEIGHT - 40.0) / number as f64;
        let (left, top) = ((WIDTH - size * number as f64) / 2.0, 24.0);
        let mut svg = Svg::new(HEIGHT, "Edges between parts");
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
                    let (x, y) = (at.0 + size / 2.0, at.1 + size / 2.0 + 4.0);
                    let number = if edges < 1000 { edges.to_string() } else { large(edges as f64) };
                    svg.text(class, x, y, &number);
                }
            }
        }
        svg.finish()
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
