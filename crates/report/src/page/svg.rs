//! Charts as inline SVG. Colors are classes of the page's style sheet, so that pictures follow the
//! light or dark setting too.

use std::fmt::Write;
use std::ops::Range;

use super::text::escape;

/// Width of a chart on wide and on narrow pages, in its own units.
///
/// Text scales with a picture: one drawn for a screen and shown on a phone could not be read there. So each is drawn for
/// both, and the style sheet shows one of them.
const WIDTHS: [(&str, f64); 2] = [("wide", 640.0), ("narrow", 340.0)];

/// A picture for wide and for narrow pages: `draw` makes it from its width.
pub fn responsive(draw: impl Fn(f64) -> Svg) -> String {
    let each = |(class, width): (&str, f64)| draw(width).finish(class);
    WIDTHS.map(each).concat()
}

/// A picture under construction.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// An empty picture of `width` × `height`, described by `title` for those who cannot see it.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, body: format!("<title>{}</title>", escape(title)) }
    }

    /// A rectangle with a hover text.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, hover: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\">"
        );
        self.title(hover);
        self.body += "</rect>";
    }

    /// A rectangle whose color is as strong as `share` in 0..=1.
    pub fn shade(&mut self, class: &str, share: f64, at: (f64, f64), size: f64, hover: &str) {
        let (x, y) = at;
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" fill-opacity=\"{share:.3}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{size:.1}\" height=\"{size:.1}\">"
        );
        self.title(hover);
        self.body += "</rect>";
    }

    fn title(&mut self, text: &str) {
        if !text.is_empty() {
            let _ = write!(self.body, "<title>{}</title>", escape(text));
        }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Text; `class` sets its alignment.
    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ =
            write!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// A line through the points, interrupted where one is not finite. A single point is a dot.
    pub fn curve(&mut self, class: &str, points: &[(f64, f64)]) {
        for run in points.split(|p| !p.1.is_finite()) {
            if let [(x, y)] = run {
                let _ = write!(
                    self.body,
                    "<circle class=\"{class} dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
                );
            } else if !run.is_empty() {
                let _ = write!(self.body, "<polyline class=\"{class}\" points=\"");
                for (x, y) in run {
                    let _ = write!(self.body, "{x:.1},{y:.1} ");
                }
                self.body += "\"/>";
            }
        }
    }

    /// The finished element, of a class of pages.
    fn finish(self, class: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             xmlns=\"http://www.w3.org/2000/svg\">{body}</svg>"
        )
    }
}

/// A linear map from values to a range of the picture, with round ticks.
#[derive(Debug, Clone)]
pub struct Axis {
    values: Range<f64>,
    pixels: Range<f64>,
    step: f64,
}

impl Axis {
    /// An axis that shows `values` and about `ticks` round numbers; bounds are rounded outwards
    /// where `rounded`.
    pub fn new(values: Range<f64>, pixels: Range<f64>, ticks: f64, rounded: bool) -> Self {
        let Range { start, mut end } = values;
        // Closer values than steps that a float can count between them.
        if end - start <= 1e-12 * start.abs().max(end.abs()) {
            end = start + if start == 0.0 { 1.0 } else { start.abs() };
        }
        let step = round_step((end - start) / ticks);
        let values = if rounded {
            (start / step + 1e-9).floor() * step..(end / step - 1e-9).ceil() * step
        } else {
            start..end
        };
        Self { values, pixels, step }
    }

    /// An axis of whole numbers.
    pub fn counts(values: Range<f64>, pixels: Range<f64>) -> Self {
        let ticks = if pixels.end - pixels.start < 400.0 { 4.0 } else { 6.0 };
        let axis = Self::new(values, pixels, ticks, false);
        Self { step: axis.step.max(1.0), ..axis }
    }

    /// The position of a value in the picture.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.values.start) / (self.values.end - self.values.start);
        self.pixels.start + share * (self.pixels.end - self.pixels.start)
    }

    /// The round numbers, with their labels.
    fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        let first = (self.values.start / self.step - 1e-9).ceil() as i64;
        let last = (self.values.end / self.step + 1e-9).floor() as i64;
        let decimals = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        (first..=last).map(move |i| {
            let value = i as f64 * self.step;
            (self.at(value), format!("{value:.decimals$}"))
        })
    }
}

/// The next of 1, 2, 5 × 10ⁿ above `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= raw * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Grid lines and labels of a vertical axis, across the width of `x`.
pub fn y_axis(svg: &mut Svg, x: &Axis, y: &Axis, title: &str) {
    let (left, right) = (x.pixels.start, x.pixels.end);
    for (at, label) in y.ticks() {
        svg.line("grid", (left, at), (right, at));
        svg.text("tick end", left - 7.0, at + 4.0, &label);
    }
    svg.text("label", 0.0, 10.0, title);
}

/// The horizontal axis, below a chart that ends at `bottom`.
pub fn x_axis(svg: &mut Svg, x: &Axis, bottom: f64, title: &str) {
    for (at, label) in x.ticks() {
        svg.line("axis", (at, bottom), (at, bottom + 4.0));
        svg.text("tick mid", at, bottom + 17.0, &label);
    }
    svg.line("axis", (x.pixels.start, bottom), (x.pixels.end, bottom));
    svg.text("label end", x.pixels.end, bottom + 34.0, title);
}

/// Names of the colors used, as a line of HTML.
pub fn legend(entries: &[(&str, &str)]) -> String {
    let entry = |(class, name): &(&str, &str)| {
        format!("<span><i class=\"{class}\"></i>{}</span>", escape(name))
    };
    format!("<p class=\"legend\">{}</p>", entries.iter().map(entry).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::new(0.13..0.87, 0.0..100.0, 4.0, true);
        let labels: Vec<String> = axis.ticks().map(|t| t.1).collect();
        assert_eq!(labels, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert!(axis.ticks().all(|(at, _)| (-1e-6..=100.000001).contains(&at)));
        let epochs = Axis::new(1.0..2000.0, 0.0..100.0, 6.0, false);
        assert_eq!(epochs.ticks().next().unwrap().1, "500");
    }

    #[test]
    fn an_empty_range_still_has_an_axis() {
        for value in [0.0, 3.0, -2.0] {
            let axis = Axis::new(value..value, 0.0..100.0, 4.0, true);
            assert!(axis.ticks().count() >= 2 && axis.at(value).is_finite());
            let close = Axis::new(value..value * (1.0 + f64::EPSILON), 0.0..100.0, 4.0, true);
            assert!((2..20).contains(&close.ticks().count()));
        }
    }
}
