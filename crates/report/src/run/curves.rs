//! Loss and scores over the epochs.

use gnarl_train::evaluation::Scores;
use gnarl_train::{EpochRecord, Finished};

use crate::page::svg::{Axis, Svg, WIDTH, legend, x_axis, y_axis};
use crate::page::text::escape;

const HEIGHT: f64 = 280.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Most points of a curve; more would be indistinguishable.
const MOST: usize = 600;

/// A curve: epoch and value.
type Series = Vec<(f64, f64)>;

/// The loss curve, and the score curves if there were evaluations.
pub(super) fn learning(finished: &Finished) -> String {
    let history = &finished.history;
    let loss: Series = history.iter().map(|r| (r.epoch as f64, r.loss)).collect();
    let mut out = String::from("<div class=\"pair\">");
    out += &figure("Mean training loss", &[("loss", "training", loss)], history, None);
    let valid = scores(finished, |r| &r.valid);
    let test = scores(finished, |r| &r.test);
    if let Some(name) = metric(finished) {
        let title = format!("Score: {}", name.replace('_', " "));
        let best = (finished.summary.best_epoch > 0).then_some(finished.summary.best_epoch);
        out += &figure(
            &title,
            &[("valid", "validation", valid), ("test", "test", test)],
            history,
            best,
        );
    }
    out += "</div>";
    let lost = history.iter().filter(|r| !r.loss.is_finite()).count();
    if lost > 0 {
        out += &format!(
            "<p class=\"warn\">The loss of {lost} of {} epochs is not a finite number: try a smaller \
             <code>train.lr</code>, or <code>train.clip_norm</code>.</p>",
            history.len()
        );
    }
    out
}

/// The metric's name, if there were evaluations.
pub(super) fn metric(finished: &Finished) -> Option<&str> {
    let summary = &finished.summary;
    let scores = [&summary.valid, &summary.test].into_iter();
    let epochs = finished.history.iter().flat_map(|r| [&r.valid, &r.test]);
    let used = scores.chain(epochs).any(|scores| scores.contains_key(&summary.metric));
    used.then_some(summary.metric.as_str())
}

fn scores(finished: &Finished, of: impl Fn(&EpochRecord) -> &Scores) -> Series {
    let metric = &finished.summary.metric;
    let value = |r: &EpochRecord| of(r).get(metric).map(|&v| (r.epoch as f64, v));
    finished.history.iter().filter_map(value).collect()
}

fn figure(
    title: &str,
    series: &[(&str, &str, Series)],
    history: &[EpochRecord],
    best: Option<usize>,
) -> String {
    let picture = chart(title, series, history, best);
    let shown: Vec<(&str, &str)> =
        series.iter().filter(|s| !s.2.is_empty()).map(|s| (s.0, s.1)).collect();
    format!(
        "<figure><figcaption>{}{}</figcaption>{picture}</figure>",
        escape(title),
        legend(&shown)
    )
}

fn chart(
    title: &str,
    series: &[(&str, &str, Series)],
    history: &[EpochRecord],
    best: Option<usize>,
) -> String {
    let finite = || series.iter().flat_map(|s| &s.2).map(|p| p.1).filter(|v| v.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let values = if low <= high { low..high } else { 0.0..1.0 };
    let last = history.last().map_or(1, |r| r.epoch) as f64;
    let x = Axis::counts(1.0..last, 52.0..WIDTH - 10.0);
    let y = Axis::new(values, BOTTOM..TOP, 5.0, true);
    let mut svg = Svg::new(HEIGHT, title);
    y_axis(&mut svg, &x, &y, "");
    x_axis(&mut svg, &x, BOTTOM, "epoch");
    if let Some(epoch) = best {
        let at = x.at(epoch as f64);
        svg.line("best", (at, TOP), (at, BOTTOM));
        let (class, shift) = if at > WIDTH / 2.0 { ("label end", -6.0) } else { ("label", 6.0) };
        svg.text(class, at + shift, BOTTOM - 8.0, &format!("best validation: epoch {epoch}"));
    }
    for (class, _, points) in series {
        let points: Vec<_> = thin(points).into_iter().map(|(e, v)| (x.at(e), y.at(v))).collect();
        svg.curve(class, &points);
    }
    svg.finish()
}

/// Reduces points to about [`MOST`]: the lowest and the highest value of each range of epochs, so
/// that no spike is lost, and a gap where a value is not finite.
fn thin(points: &[(f64, f64)]) -> Series {
    if points.len() <= MOST {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(MOST / 2);
    let mut out = Series::new();
    for part in points.chunks(stretch) {
        match part.iter().find(|p| !p.1.is_finite()) {
            Some(&gap) => out.push(gap),
            None => {
                let low = *part.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(&part[0]);
                let high = *part.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(&part[0]);
                out.extend(if low.0 <= high.0 { [low, high] } else { [high, low] });
            }
        }
    }
    out
}
