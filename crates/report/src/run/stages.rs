//! Time by stage, and the bottleneck.

use gnarl_train::{EpochRecord, Recorded, Stages, Verdict};

use crate::page::svg::{Axis, Svg, legend, responsive, x_axis, y_axis};
use crate::page::text::{percent, seconds};

const HEIGHT: f64 = 250.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Most bars; longer runs show means over neighboring epochs.
const MOST: usize = 100;
/// Stages in sequence within an epoch: class, name.
const LINE: [(&str, &str); 6] = [
    ("compute", "compute"),
    ("exchange", "exchange"),
    ("reduce", "reduce"),
    ("wait", "wait for batches"),
    ("other", "other"),
    ("evaluate", "evaluate"),
];
/// Stages that run concurrently.
const AHEAD: [(&str, &str); 6] = [
    ("schedule", "schedule"),
    ("load", "wait for parts"),
    ("sample", "sample"),
    ("fetch", "fetch features"),
    ("receive", "receive batches"),
    ("compact", "compact"),
];

/// The verdict, the means of an epoch, and every epoch.
pub(super) fn time(run: &Recorded) -> String {
    let history = &run.history;
    if history.is_empty() {
        return "<p>No epoch was trained.</p>".into();
    }
    let mean = mean(history);
    let mut out = verdict(&run.verdict(), mean.seconds);
    out += "<div class=\"pair\">";
    out += &format!(
        "<figure><figcaption>Mean of an epoch{}</figcaption>{}</figure>",
        legend(&used(&LINE, line(&mean)).chain(used(&AHEAD, ahead(&mean))).collect::<Vec<_>>()),
        responsive(|width| totals(&mean, width))
    );
    let group = history.len().div_ceil(MOST);
    let title = match group {
        1 => "Time of each epoch".into(),
        n => format!("Time of an epoch, means of {n} epochs"),
    };
    let bars = history.chunks(group).map(self::mean).collect::<Vec<_>>();
    out += &format!(
        "<figure><figcaption>{title}{}</figcaption>{}</figure>",
        legend(&used(&LINE, line(&mean)).collect::<Vec<_>>()),
        responsive(|width| bars_of(&bars, &title, width))
    );
    out + "</div>"
}

/// The mean of some epochs, with the number of the last.
fn mean(epochs: &[EpochRecord]) -> EpochRecord {
    let n = epochs.len().max(1) as f64;
    let mut stages = [0.0; Stages::COUNT];
    for record in epochs {
        for (sum, value) in stages.iter_mut().zip(record.stages.to_array()) {
            *sum += value / n;
        }
    }
    EpochRecord {
        epoch: epochs.last().map_or(0, |r| r.epoch),
        seconds: epochs.iter().map(|r| r.seconds).sum::<f64>() / n,
        stages: Stages::from_array(stages),
        ..EpochRecord::default()
    }
}

/// Seconds of [`LINE`], in its order.
fn line(record: &EpochRecord) -> [f64; 6] {
    let s = &record.stages;
    let other = (record.seconds - s.compute - s.exchange - s.reduce - s.wait).max(0.0);
    let line = [s.compute, s.exchange, s.reduce, s.wait, other, s.evaluate];
    line.map(|v| if v.is_finite() { v } else { 0.0 })
}

/// Seconds of [`AHEAD`], in its order.
fn ahead(record: &EpochRecord) -> [f64; 6] {
    let s = &record.stages;
    [s.schedule, s.load, s.sample, s.fetch, s.receive, s.compact]
}

/// The stages that took any time.
fn used(
    stages: &[(&'static str, &'static str); 6],
    seconds: [f64; 6],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    stages.iter().copied().zip(seconds).filter(|(_, spent)| *spent > 0.0).map(|(stage, _)| stage)
}

fn verdict(verdict: &Verdict, mean: f64) -> String {
    let Verdict { stage, share, doing, advice } = verdict;
    let advice = if advice.is_empty() { String::new() } else { format!("; {advice}") };
    format!(
        "<p class=\"verdict\">Bound by <strong>{stage}</strong>: {} of {doing} (a mean epoch takes {}){advice}.</p>",
        percent(*share),
        seconds(mean),
    )
}

/// Two bars on one scale: stages in sequence, and concurrent ones.
fn totals(mean: &EpochRecord, page: f64) -> Svg {
    let line = line(mean);
    let ahead = ahead(mean);
    let longest = line.iter().sum::<f64>().max(ahead.iter().sum());
    let (unit, factor) = unit(longest);
    let x = Axis::new(0.0..longest * factor, 82.0..page - 14.0, 4.0, false);
    let mut svg = Svg::new(page, HEIGHT, "Time of a mean epoch by stage");
    x_axis(&mut svg, &x, BOTTOM, unit);
    let rows: [(&str, f64, Vec<_>); 2] = [
        ("epoch", 40.0, LINE.into_iter().zip(line).collect()),
        ("beside it", 130.0, AHEAD.into_iter().zip(ahead).collect()),
    ];
    for (name, top, stages) in rows {
        svg.text("label end", 74.0, top + 30.0, name);
        let mut sum = 0.0;
        for ((class, stage), value) in stages {
            let hover = format!("{stage}: {}", seconds(value));
            let from = x.at(sum * factor);
            let to = x.at((sum + value) * factor);
            svg.rect(class, from, top, to - from, 50.0, &hover);
            if to - from > 56.0 {
                svg.text("on mid", (from + to) / 2.0, top + 30.0, &seconds(value));
            }
            sum += value;
        }
    }
    svg
}

/// One stacked bar per record.
fn bars_of(records: &[EpochRecord], title: &str, page: f64) -> Svg {
    let longest = records.iter().map(|r| line(r).iter().sum()).fold(0.0, f64::max);
    let (unit, factor) = unit(longest);
    let last = records.last().map_or(1, |r| r.epoch) as f64;
    let x = Axis::counts(0.5..last + 0.5, 52.0..page - 10.0);
    let y = Axis::new(0.0..longest * factor, BOTTOM..24.0, 4.0, true);
    let mut svg = Svg::new(page, HEIGHT, title);
    y_axis(&mut svg, &x, &y, unit);
    x_axis(&mut svg, &x, BOTTOM, "epoch");
    let mut left = x.at(0.5);
    for record in records {
        let right = x.at(record.epoch as f64 + 0.5);
        let width = ((right - left) * 0.86).min(60.0);
        let start = (left + right - width) / 2.0;
        let mut sum = 0.0;
        for ((class, name), value) in LINE.iter().zip(line(record)) {
            let from = y.at(sum * factor);
            let to = y.at((sum + value) * factor);
            if from - to >= 0.05 {
                let hover = format!("epoch {}, {name}: {}", record.epoch, seconds(value));
                svg.rect(class, start, to, width, from - to, &hover);
            }
            sum += value;
        }
        left = right;
    }
    svg
}

/// A suitable unit for `longest` seconds, and its number per second.
fn unit(longest: f64) -> (&'static str, f64) {
    match longest {
        s if s >= 1.0 => ("seconds", 1.0),
        s if s >= 1e-3 => ("milliseconds", 1e3),
        _ => ("microseconds", 1e6),
    }
}
