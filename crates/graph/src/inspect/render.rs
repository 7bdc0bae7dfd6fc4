//! Human-readable reports.

use std::fmt::{self, Display, Formatter};

use super::{Degrees, EdgeReport, LabelReport, NodeReport, Report};

/// Classes listed before the rest is summarized.
const TOP_CLASSES: usize = 8;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.part { "part" } else { "dataset" };
        writeln!(f, "{kind} {} ({}-bit ids)", self.name, self.id_width)?;
        self.nodes.iter().try_for_each(|t| t.fmt(f))?;
        self.edges.iter().try_for_each(|t| t.fmt(f))
    }
}

impl Display for NodeReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "nodes {}: {}", self.name, grouped(self.count))?;
        line(f, "isolated", share(self.isolated, self.count))?;
        if let Some(x) = &self.features {
            line(f, "features", format!("{} × {} {}", grouped(self.count), x.width, note(x)))?;
        }
        if let Some(labels) = &self.labels {
            labels.fmt(f)?;
            line(f, "labelled", share(labels.labelled, self.count))?;
        }
        for split in &self.splits {
            let labelled = match split.labelled {
                Some(l) if l < 1.0 => format!(", {:.1} % labelled", 100.0 * l),
                _ => String::new(),
            };
            line(f, &split.name, share(split.count, self.count) + &labelled)?;
        }
        others(f, &self.other_columns)
    }
}

fn note(features: &super::FeatureReport) -> String {
    format!("{} ({})", features.dtype, features.kind)
}

impl Display for LabelReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.kind == "values" {
            return line(f, "values", format!("{} nodes", grouped(self.labelled)));
        }
        let what = if self.kind == "multi" { "tasks" } else { "classes" };
        let mut classes: Vec<(usize, u64)> = self.histogram.iter().copied().enumerate().collect();
        classes.sort_by_key(|&(class, count)| (std::cmp::Reverse(count), class));
        let top = classes.iter().take(TOP_CLASSES);
        let mut list: Vec<String> = top.map(|(c, n)| format!("{c}: {}", grouped(*n))).collect();
        if classes.len() > TOP_CLASSES {
            list.push(format!("{} more", classes.len() - TOP_CLASSES));
        }
        let counts =
            if list.is_empty() { String::new() } else { format!(" ({})", list.join(", ")) };
        line(f, "labels", format!("{} {what}{counts}", self.classes))
    }
}

impl Display for EdgeReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "edges {}: {}", self.triple, grouped(self.count))?;
        line(f, "symmetric", if self.facts.symmetric { "yes" } else { "no" })?;
        line(f, "self loops", grouped(self.facts.self_loops))?;
        line(f, "duplicates", grouped(self.facts.duplicates))?;
        let Degrees { mean, p50, p90, p99, max, histogram } = &self.in_degrees;
        let quantiles = format!("mean {mean:.2}, p50 {p50}, p90 {p90}, p99 {p99}, max {max}");
        line(f, "in-degree", quantiles)?;
        let bins: Vec<String> = (0..histogram.len()).map(|b| bin(b, histogram[b])).collect();
        line(f, "", bins.join(", "))?;
        if let Some(h) = &self.homophily {
            let adjusted = h.adjusted.map_or("undefined".into(), |a| format!("{a:.3}"));
            line(f, "homophily", format!("{:.3} (adjusted {adjusted})", h.edge))?;
        }
        others(f, &self.other_columns)
    }
}

fn bin(index: usize, count: u64) -> String {
    let count = grouped(count);
    match index {
        0 | 1 => format!("{index}: {count}"),
        _ => format!("{}–{}: {count}", 1u64 << (index - 1), (1u128 << index) - 1),
    }
}

fn line(f: &mut Formatter<'_>, key: &str, value: impl Display) -> fmt::Result {
    writeln!(f, "  {key:<11} {value}")
}

fn others(f: &mut Formatter<'_>, columns: &[String]) -> fmt::Result {
    if columns.is_empty() { Ok(()) } else { line(f, "columns", columns.join(", ")) }
}

fn share(count: u64, of: u64) -> String {
    format!("{} ({:.1} %)", grouped(count), 100.0 * count as f64 / of.max(1) as f64)
}

/// Digits in groups of three.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_are_grouped() {
        let grouped = super::grouped;
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
    }
}
