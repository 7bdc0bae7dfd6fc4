//! Time and reads of each layer.

use gnarl_infer::{Figures, LayerFigures};

use crate::page::svg::{Axis, Svg, legend, responsive, x_axis};
use crate::page::text::{bytes, count, escape, percent, seconds};

/// Height of a layer's bar, and of the space below it.
const BAR: (f64, f64) = (26.0, 14.0);
const BOTTOM: f64 = 42.0;

/// A layer with its name: the pass, and its number.
fn named(passes: &[(String, Figures)]) -> Vec<(String, &LayerFigures)> {
    let of = |(pass, figures): &'_ (String, Figures)| -> Vec<String> {
        (1..=figures.layers.len()).map(|number| format!("{pass} {number}")).collect()
    };
    let names = passes.iter().flat_map(of).collect::<Vec<_>>();
    names.into_iter().zip(passes.iter().flat_map(|(_, figures)| &figures.layers)).collect()
}

/// A bar for each layer: its time, and the part of it in which rows came from other ranks.
pub(super) fn time(passes: &[(String, Figures)]) -> String {
    let layers = named(passes);
    if layers.is_empty() {
        return "<p>Neighbors were sampled, not layers computed.</p>".into();
    }
    let kinds = [("compute", "computed"), ("exchange", "rows fetched from other ranks")];
    let fills = layers.iter().any(|(_, layer)| layer.fill_seconds > 0.0);
    let legend = if fills { legend(&kinds) } else { String::new() };
    let picture = responsive(|width| bars(&layers, width));
    format!("<figure><figcaption>Time{legend}</figcaption>{picture}</figure>")
}

fn bars(layers: &[(String, &LayerFigures)], width: f64) -> Svg {
    let longest = layers.iter().map(|(_, layer)| layer.seconds).fold(0.0, f64::max);
    let bottom = layers.len() as f64 * (BAR.0 + BAR.1) + 8.0;
    let mut svg = Svg::new(width, bottom + BOTTOM, "Time of each layer");
    let x = Axis::new(0.0..longest.max(1e-9), 110.0..width - 14.0, 4.0, false);
    x_axis(&mut svg, &x, bottom, "seconds");
    for (number, (name, layer)) in layers.iter().enumerate() {
        let top = 4.0 + number as f64 * (BAR.0 + BAR.1);
        svg.text("label end", 102.0, top + 18.0, name);
        let compute = (layer.seconds - layer.fill_seconds).max(0.0);
        let (start, middle, end) = (x.at(0.0), x.at(compute), x.at(layer.seconds));
        let hover = format!("{name}: computed in {}", seconds(compute));
        svg.rect("compute", start, top, middle - start, BAR.0, &hover);
        let hover = format!("{name}: rows of other ranks in {}", seconds(layer.fill_seconds));
        svg.rect("exchange", middle, top, end - middle, BAR.0, &hover);
    }
    svg
}

/// A column of the table: its head, the value of a layer, and whether any layer has one.
type Column = (&'static str, fn(&LayerFigures) -> String, fn(&LayerFigures) -> bool);

/// The counts of each layer; columns that no layer has are left out.
pub(super) fn table(passes: &[(String, Figures)]) -> String {
    let columns: [Column; 8] = [
        ("nodes", |layer| count(layer.nodes), |_| true),
        ("inputs", |layer| count(layer.inputs), |_| true),
        ("ranges", |layer| count(layer.ranges), |_| true),
        ("time", |layer| seconds(layer.seconds), |_| true),
        ("rows in files", |layer| bytes(layer.spilled), |layer| layer.spilled > 0),
        ("chunks read", |layer| count(layer.chunks.total()), |layer| layer.chunks.total() > 0),
        ("in the cache", hits, |layer| layer.chunks.total() > 0),
        ("from other ranks", |layer| bytes(layer.fetched), |layer| layer.fetched > 0),
    ];
    let layers = named(passes);
    let shown = columns.iter().filter(|(_, _, has)| layers.iter().any(|(_, layer)| has(layer)));
    let shown: Vec<&Column> = shown.collect();
    let head: String = shown.iter().map(|(name, ..)| format!("<td>{name}</td>")).collect();
    let row = |(name, layer): &(String, &LayerFigures)| {
        let cells: String =
            shown.iter().map(|(_, value, _)| format!("<td>{}</td>", value(layer))).collect();
        format!("<tr><th>{}</th>{cells}</tr>", escape(name))
    };
    let rows: String = layers.iter().map(row).collect();
    format!("<table><tr><th>layer</th>{head}</tr>{rows}</table>")
}

fn hits(layer: &LayerFigures) -> String {
    percent(layer.chunks.hits as f64 / layer.chunks.total().max(1) as f64)
}
