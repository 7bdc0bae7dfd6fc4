//! The graph that a run trains on.

use gnarl_train::{GraphRecord, MOST_READ, Unmeasured};

use crate::page::text::{count, escape, large, percent};

/// Types shown at most.
const MOST_TYPES: usize = 12;
/// Classes shown at most; the others are summed up.
const MOST_CLASSES: usize = 20;

/// Counts, classes, splits and homophily.
pub(super) fn table(graph: &GraphRecord) -> String {
    let overview = &graph.overview;
    let mut rows = Vec::new();
    counts(&mut rows, "Nodes", &overview.nodes);
    counts(&mut rows, "Edges", &overview.edges);
    for (name, size) in ["training", "validation", "test"].iter().zip(graph.splits) {
        rows.push((format!("{} for {name}", capital(&graph.of)), count(size as u64)));
    }
    if graph.outputs > 0 {
        rows.push(("Classes or values predicted".into(), graph.outputs.to_string()));
    }
    if let Some(found) = &overview.homophily {
        let adjusted = found.adjusted.map_or("undefined".into(), |value| format!("{value:.3}"));
        let text = format!(
            "{:.3} of edges between labeled nodes join one class, adjusted {adjusted}",
            found.edge
        );
        rows.push(("Homophily".into(), text));
    } else if let Some(reason) = graph.unmeasured {
        let text = match reason {
            Unmeasured::NoEdges => "no edge joins two labeled nodes".into(),
            Unmeasured::ManyEdges => {
                let most = large(MOST_READ as f64);
                format!("not measured beyond {most} edges; gnarl inspect does")
            }
        };
        rows.push(("Homophily".into(), text));
    }
    let row = |(name, value): &(String, String)| {
        format!("<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value))
    };
    let table: String = rows.iter().map(row).collect();
    format!("<table>{table}</table>{}", classes(graph))
}

/// The total of some types, and each of several.
fn counts(rows: &mut Vec<(String, String)>, name: &str, types: &[(String, u64)]) {
    rows.push((name.into(), count(types.iter().map(|t| t.1).sum())));
    if types.len() < 2 {
        return;
    }
    for (of_type, number) in types.iter().take(MOST_TYPES) {
        rows.push((format!("{name}: {of_type}"), count(*number)));
    }
    if types.len() > MOST_TYPES {
        let left = &types[MOST_TYPES..];
        let sum = left.iter().map(|t| t.1).sum();
        rows.push((format!("{name}: {} other types", left.len()), count(sum)));
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A bar for each class, the largest first.
fn classes(graph: &GraphRecord) -> String {
    let all = &graph.overview.classes;
    let total: u64 = all.iter().sum();
    let largest = all.iter().max().copied().unwrap_or(0);
    if largest == 0 {
        return String::new();
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&class| (std::cmp::Reverse(all[class]), class));
    let mut bars = String::new();
    for &class in order.iter().take(MOST_CLASSES) {
        let share = all[class] as f64 / total as f64;
        bars += &format!(
            "<tr><th>{}</th><td>{} ({})</td><td class=\"bar\"><i class=\"core\" style=\"width:{:.1}%\"></i></td></tr>",
            escape(&class_name(graph, class)),
            count(all[class]),
            percent(share),
            100.0 * all[class] as f64 / largest as f64,
        );
    }
    if order.len() > MOST_CLASSES {
        let left = &order[MOST_CLASSES..];
        let sum: u64 = left.iter().map(|&class| all[class]).sum();
        bars += &format!(
            "<tr><th>{} smaller classes</th><td>{}</td><td></td></tr>",
            left.len(),
            count(sum)
        );
    }
    format!("<h3>Classes of all labeled nodes</h3><table class=\"bars\">{bars}</table>")
}

/// The name of a class, or its number.
pub(super) fn class_name(graph: &GraphRecord, class: usize) -> String {
    graph.class_names.get(class).cloned().unwrap_or_else(|| class.to_string())
}
