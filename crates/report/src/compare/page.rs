//! The page of a comparison.

use gnarl_train::Recorded;

use crate::page::lines::{Line, Points, figure};
use crate::page::text::{breakable, escape};
use crate::page::{page_of, section};
use crate::run::curves::{loss, scores};

/// Classes of the runs' colors, which begin anew where there are more runs.
const COLORS: [&str; 8] = ["run0", "run1", "run2", "run3", "run4", "run5", "run6", "run7"];

/// The name of a row, and its value in each run.
pub(super) type Row = (String, Vec<String>);

/// The contents of the page.
pub(super) struct Shown<'a> {
    pub runs: &'a [(String, Recorded)],
    pub settings: &'a [Row],
    pub results: &'a [Row],
}

/// The whole page.
pub(super) fn page(compared: &Shown<'_>) -> String {
    let number = compared.runs.len();
    let head = format!(
        "<header><h1>{number} runs <span>compared</span></h1><p>{}</p></header>\n",
        names(compared)
    );
    let body = head
        + &section("Results", &table(compared, "scroll", compared.results))
        + &section("Curves", &curves(compared))
        + &section("Settings that differ", &settings(compared));
    page_of(&format!("{number} runs compared"), &body)
}

fn names(compared: &Shown<'_>) -> String {
    let each: Vec<String> = compared.runs.iter().map(|(name, _)| escape(name)).collect();
    each.join(" · ")
}

fn settings(compared: &Shown<'_>) -> String {
    match compared.settings.is_empty() {
        true => "<p>All settings but the folder are equal.</p>".into(),
        false => table(compared, "scroll long", compared.settings),
    }
}

/// A table with a column for each run, in an element of some classes.
fn table(compared: &Shown<'_>, class: &str, rows: &[Row]) -> String {
    let head = |(number, (name, _)): (usize, &(String, Recorded))| {
        format!("<td><i class=\"{} key\"></i>{}</td>", color(number), escape(name))
    };
    let heads: String = compared.runs.iter().enumerate().map(head).collect();
    let cell = |value: &String| {
        let value = if value.is_empty() { "–" } else { value };
        format!("<td>{}</td>", breakable(value))
    };
    let row = |(name, values): &Row| {
        format!("<tr><th>{}</th>{}</tr>", escape(name), values.iter().map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<div class=\"{class}\"><table><tr><th></th>{heads}</tr>{rows}</table></div>")
}

fn color(number: usize) -> &'static str {
    COLORS[number % COLORS.len()]
}

/// Losses and scores, the curves of all runs in each chart.
fn curves(compared: &Shown<'_>) -> String {
    let lines = |of: &dyn Fn(&Recorded) -> Points| -> Vec<Line> {
        let runs = compared.runs.iter().enumerate();
        runs.map(|(number, (name, run))| Line {
            class: color(number),
            name: name.clone(),
            points: of(run),
        })
        .collect()
    };
    let metrics: std::collections::BTreeSet<&str> =
        compared.runs.iter().map(|(_, run)| run.summary.metric.as_str()).collect();
    let metric = match metrics.into_iter().collect::<Vec<_>>()[..] {
        [one] => one.replace('_', " "),
        _ => "score of each run".into(),
    };
    let charts = [
        figure("Mean training loss", &lines(&loss), None),
        figure(&format!("Validation: {metric}"), &lines(&|run| scores(run, |r| &r.valid)), None),
        figure(&format!("Test: {metric}"), &lines(&|run| scores(run, |r| &r.test)), None),
    ];
    let charts = charts.concat();
    match charts.is_empty() {
        true => "<p>No epoch was trained.</p>".into(),
        false => format!("<div class=\"pair\">{charts}</div>"),
    }
}
