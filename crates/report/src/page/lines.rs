//! Charts of curves over epochs.

use super::svg::{Axis, Svg, legend, responsive, x_axis, y_axis};
use super::text::escape;

const HEIGHT: f64 = 280.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Most points of a curve for each unit of width; more would be indistinguishable.
const DENSITY: f64 = 0.9;

/// Epochs and values.
pub(crate) type Points = Vec<(f64, f64)>;

/// A curve of a chart.
pub(crate) struct Line {
    /// Class of the style sheet, for its color.
    pub class: &'static str,
    /// Name in the legend, as plain text.
    pub name: String,
    /// Points in the order of their epochs.
    pub points: Points,
}

/// A chart with its title and legend; `best` is an epoch to be marked. Nothing if no curve has a point.
pub(crate) fn figure(title: &str, lines: &[Line], best: Option<usize>) -> String {
    let shown: Vec<&Line> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    if shown.is_empty() {
        return String::new();
    }
    let entries: Vec<(&str, &str)> =
        shown.iter().map(|line| (line.class, line.name.as_str())).collect();
    let picture = responsive(|width| chart(title, &shown, best, width));
    format!(
        "<figure><figcaption>{}{}</figcaption>{picture}</figure>",
        escape(title),
        if entries.len() > 1 { legend(&entries) } else { String::new() }
    )
}

fn chart(title: &str, lines: &[&Line], best: Option<usize>, width: f64) -> Svg {
    let points = || lines.iter().flat_map(|line| &line.points);
    let finite = || points().map(|point| point.1).filter(|value| value.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let values = if low <= high { low..high } else { 0.0..1.0 };
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    let x = Axis::counts(1.0..last, 60.0..width - 10.0);
    let y = Axis::new(values, BOTTOM..TOP, 5.0, true);
    let mut svg = Svg::new(width, HEIGHT, title);
    y_axis(&mut svg, &x, &y, "");
    x_axis(&mut svg, &x, BOTTOM, "epoch");
    if let Some(epoch) = best {
        let at = x.at(epoch as f64);
        svg.line("best", (at, TOP), (at, BOTTOM));
        let (class, shift) = if at > width / 2.0 { ("label end", -6.0) } else { ("label", 6.0) };
        svg.text(class, at + shift, BOTTOM - 8.0, &format!("best validation: epoch {epoch}"));
    }
    for line in lines {
        let points = thin(&line.points, (width * DENSITY) as usize);
        let points: Vec<_> = points.into_iter().map(|(e, v)| (x.at(e), y.at(v))).collect();
        svg.curve(line.class, &points);
    }
    svg
}

/// Reduces points to about `most`: the lowest and the highest value of each range of epochs, so
/// that no spike is lost, and a gap where a value is not finite.
fn thin(points: &[(f64, f64)], most: usize) -> Points {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(most / 2);
    let mut out = Points::new();
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
