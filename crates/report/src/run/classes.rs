//! Scores of each class, and the confusion matrix.

use std::cmp::Reverse;
use std::fmt::Write;

use gnarl_train::evaluation::{ClassCount, ClassScores};
use gnarl_train::{GraphRecord, Recorded};

use super::dataset::class_name;
use crate::page::text::{count, escape};

/// Classes with a row of their own, and most classes of a matrix; of more the largest are shown, and pairs in place of
/// the matrix.
const MOST: usize = 20;
/// Most pairs shown.
const MOST_PAIRS: usize = 20;

/// A table of the classes, with the confusion matrix of few classes, or the most confused pairs of many.
pub(super) fn tables(run: &Recorded, found: &ClassScores) -> String {
    let split = if found.split == "valid" { "validation" } else { &found.split };
    let split = escape(split);
    let name = |class: usize| name(run.graph.as_ref(), class);
    let mut order: Vec<usize> = (0..found.classes.len()).collect();
    if found.classes.len() > MOST {
        order.sort_by_key(|&class| (Reverse(found.classes[class].support), class));
    }
    let mut rows = String::new();
    for &class in order.iter().take(MOST) {
        rows += &row(&name(class), &found.classes[class]);
    }
    let more = match order.len() > MOST {
        true => format!(
            "<p>{} smaller classes are in <code>classes.json</code>.</p>",
            order.len() - MOST
        ),
        false => String::new(),
    };
    let baseline = baseline(found).map_or(String::new(), |(class, share)| {
        let name = escape(&name(class));
        format!("<p>Always predicting the largest class, {name}, would have an accuracy of {share:.4}.</p>")
    });
    let pairs = match order.len() > MOST {
        true => pairs(found, &name),
        false => matrix(found, &name),
    };
    format!(
        "<p>Of {split} examples, by the best weights.</p>{baseline}<div class=\"pair\"><div class=\"scroll\">\
         <table class=\"numbers\"><tr><th>class</th><td>precision</td><td>recall</td><td>F1</td><td>examples</td></tr>\
         {rows}</table>{more}</div>{pairs}</div>"
    )
}

/// The name of a class of nodes, or its number.
fn name(graph: Option<&GraphRecord>, class: usize) -> String {
    graph.map_or_else(|| class.to_string(), |graph| class_name(graph, class))
}

fn row(name: &str, of: &ClassCount) -> String {
    let share = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.3}"));
    format!(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        escape(name),
        share(of.precision()),
        share(of.recall()),
        share(of.f1()),
        count(of.support)
    )
}

/// The largest class, and its share of the examples.
fn baseline(found: &ClassScores) -> Option<(usize, f64)> {
    let total: u64 = found.classes.iter().map(|class| class.support).sum();
    let largest = (0..found.classes.len())
        .max_by_key(|&class| (found.classes[class].support, Reverse(class)))?;
    (total > 0).then(|| (largest, found.classes[largest].support as f64 / total as f64))
}

/// A row for each class, a column for each prediction; cells are as strong as their share of the row.
fn matrix(found: &ClassScores, name: &impl Fn(usize) -> String) -> String {
    let number = found.classes.len();
    let mut cells = vec![0; number * number];
    for (class, of) in found.classes.iter().enumerate() {
        cells[class * number + class] = of.correct;
    }
    for &(class, predicted, examples) in &found.confused {
        // Either may be out of bounds in a file that was written elsewhere.
        if (class as usize) < number && (predicted as usize) < number {
            cells[class as usize * number + predicted as usize] = examples;
        }
    }
    let mut out = String::from(
        "<figure><figcaption>Classes (rows) and predictions (columns)</figcaption><div class=\"scroll\">\
         <table class=\"matrix\"><tr><th></th>",
    );
    for class in 0..number {
        _ = write!(out, "<td>{}</td>", escape(&name(class)));
    }
    out += "</tr>";
    for (class, row) in cells.chunks_exact(number.max(1)).enumerate() {
        _ = write!(out, "<tr><th>{}</th>", escape(&name(class)));
        let support = found.classes[class].support.max(1) as f64;
        for (predicted, &examples) in row.iter().enumerate() {
            let color = if class == predicted { "right" } else { "wrong" };
            let share = (examples as f64 / support).sqrt();
            let strong = if share > 0.7 { " strong" } else { "" };
            _ = write!(
                out,
                "<td class=\"{color}{strong}\" style=\"--share:{:.0}%\">{}</td>",
                100.0 * share,
                count(examples)
            );
        }
        out += "</tr>";
    }
    out + "</table></div></figure>"
}

/// The most confused pairs.
fn pairs(found: &ClassScores, name: &impl Fn(usize) -> String) -> String {
    let mut rows = String::new();
    for &(class, predicted, examples) in found.confused.iter().take(MOST_PAIRS) {
        _ = write!(
            rows,
            "<tr><th>{}</th><td>{}</td><td>{}</td></tr>",
            escape(&name(class as usize)),
            escape(&name(predicted as usize)),
            count(examples)
        );
    }
    format!(
        "<figure><figcaption>Most confused pairs</figcaption><div class=\"scroll\"><table class=\"numbers\">\
         <tr><th>class</th><td>taken for</td><td>examples</td></tr>{rows}</table></div></figure>"
    )
}
