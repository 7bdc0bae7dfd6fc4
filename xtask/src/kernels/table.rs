//! Ratios of turns, as a table.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::estimates::Estimates;

/// A change of less than this share in any turn is not marked.
const NOTABLE: f64 = 0.03;

/// A benchmark at both revisions.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    name: String,
    /// Median seconds at the base and now; `None` where the benchmark is not there.
    base: Option<f64>,
    now: Option<f64>,
    /// Smallest, median and largest ratio of a turn.
    ratios: Option<[f64; 3]>,
}

impl Row {
    /// The mark of a change in every turn.
    fn mark(&self) -> &'static str {
        match self.ratios {
            Some([_, _, most]) if most < 1.0 - NOTABLE => "faster",
            Some([least, ..]) if least > 1.0 + NOTABLE => "slower",
            Some(_) => "",
            None if self.base.is_none() => "new",
            None => "gone",
        }
    }
}

/// A row for each benchmark, from the estimates at the base and now in each turn.
pub(super) fn rows(turns: &[(Estimates, Estimates)]) -> Vec<Row> {
    let names: BTreeSet<&String> =
        turns.iter().flat_map(|(base, now)| base.keys().chain(now.keys())).collect();
    let row = |name: &String| {
        let median = |values: Vec<f64>| sorted(values).map(|[_, median, _]| median);
        let ratio = |(base, now): &(Estimates, Estimates)| Some(now.get(name)? / base.get(name)?);
        Row {
            name: name.clone(),
            base: median(turns.iter().filter_map(|(base, _)| base.get(name).copied()).collect()),
            now: median(turns.iter().filter_map(|(_, now)| now.get(name).copied()).collect()),
            ratios: sorted(turns.iter().filter_map(ratio).collect()),
        }
    };
    names.into_iter().map(row).collect()
}

/// Least, median and largest.
fn sorted(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    // Of an even number, the mean of the two in the middle.
    let median = (values.get(values.len() / 2)? + values[values.len().div_ceil(2) - 1]) / 2.0;
    Some([*values.first()?, median, *values.last()?])
}

/// The table, with the revision compared with.
pub(super) fn markdown(base: &str, rows: &[Row]) -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "Kernels against {base}, {threads} threads: median times, and the ratio of the working tree to \
         {base} measured in turns (least and largest turn). Marked are changes of more than {:.0} % in \
         every turn.\n\n| benchmark | {base} | now | ratio | |\n|---|---:|---:|---:|---|\n",
        100.0 * NOTABLE
    );
    for row in rows {
        let ratio = row.ratios.map_or("–".into(), |[least, median, most]| {
            format!("{median:.2} ({least:.2}–{most:.2})")
        });
        let base = time(row.base);
        let now = time(row.now);
        let _ = writeln!(text, "| {} | {base} | {now} | {ratio} | {} |", row.name, row.mark());
    }
    text
}

fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "–".into(),
        Some(s) if s < 1e-3 => format!("{:.1} µs", 1e6 * s),
        Some(s) if s < 1.0 => format!("{:.2} ms", 1e3 * s),
        Some(s) => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates(values: &[(&str, f64)]) -> Estimates {
        values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn ratios_are_those_of_turns_and_marked_where_all_agree() {
        let turns = [
            (
                estimates(&[("a", 1.0), ("b", 2.0), ("old", 1.0)]),
                estimates(&[("a", 0.5), ("b", 2.4)]),
            ),
            // The machine is twice as slow: times differ, ratios do not.
            (
                estimates(&[("a", 2.0), ("b", 4.0)]),
                estimates(&[("a", 1.2), ("b", 3.9), ("new", 1.0)]),
            ),
            (estimates(&[("a", 1.0), ("b", 2.0)]), estimates(&[("a", 0.5), ("b", 2.2)])),
        ];
        let rows = rows(&turns);
        let marks: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.mark())).collect();
        assert_eq!(marks, [("a", "faster"), ("b", ""), ("new", "new"), ("old", "gone")]);
        assert_eq!(rows[0].ratios, Some([0.5, 0.5, 0.6]));
        assert_eq!(sorted(vec![3.0, 1.0]), Some([1.0, 2.0, 3.0]));
        assert_eq!(sorted(vec![]), None);
        let text = markdown("v1", &rows);
        assert!(text.contains("| a | 1.00 s | 500.00 ms | 0.50 (0.50–0.60) | faster |"), "{text}");
        assert!(text.contains("| old | 1.00 s | – | – | gone |"), "{text}");
    }
}
