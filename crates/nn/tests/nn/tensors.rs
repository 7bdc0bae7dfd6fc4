//! `docs/tensors.md` has the name and shape of every parameter that models and decoders make, and no other.

use std::collections::{BTreeMap, BTreeSet};

use gnarl_common::rng::Key;
use gnarl_graph::blocks::Schema;
use gnarl_graph::{Csc, Triple};
use gnarl_nn::decoders::{self, DecoderConfig};
use gnarl_nn::heads::{self, HeadSizes};
use gnarl_nn::models::heterogeneous::{self, Source};
use gnarl_nn::models::{self, Aggregator, Decomposition, ModelConfig};
use gnarl_nn::{Params, ParamsBuilder};
use gnarl_sample::HeteroSampleGraph;

const DOCUMENT: &str = include_str!("../../../../docs/tensors.md");
const FEATURES: usize = 7;
const CLASSES: usize = 5;
const RELATIONS: usize = 3;

type Symbols = BTreeMap<&'static str, usize>;

/// Rows of the document's tables: its section and its cells.
fn documented() -> Vec<(String, Vec<String>)> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in DOCUMENT.lines() {
        if let Some(title) = line.strip_prefix("# ").or(line.strip_prefix("## ")) {
            section = title.trim_matches('`').to_string();
        }
        if line.starts_with("| `") {
            let cells = line.trim_matches('|').split('|');
            let cells = cells.map(|cell| cell.trim().trim_matches('`').to_string());
            rows.push((section.clone(), cells.collect()));
        }
    }
    rows
}

/// `R·in/B × out` with the values of its symbols.
fn shape(text: &str, symbols: &Symbols) -> Option<(usize, usize)> {
    let factor = |text: &str| text.parse().ok().or_else(|| symbols.get(text).copied());
    let product = |text: &str| {
        text.split('·').try_fold(1, |all, part| {
            let (above, below) = part.split_once('/').unwrap_or((part, "1"));
            Some(all * factor(above)? / factor(below)?)
        })
    };
    let sum = |text: &str| text.split(" + ").try_fold(0, |all, part| Some(all + product(part)?));
    let (rows, cols) = text.split_once(" × ")?;
    Some((sum(rows)?, sum(cols)?))
}

/// The document's name for a parameter, and its layer.
fn general(name: &str) -> (String, usize) {
    let mut layer = 0;
    let mut is_inner = false;
    let mut parts: Vec<String> = Vec::new();
    for part in name.split('.') {
        let number = part.trim_start_matches(|c: char| !c.is_ascii_digit());
        parts.push(match part {
            "film" | "person" => "{type}".into(),
            _ if part.contains(':') => {
                // What follows is the name that the relation's own layer gives.
                parts.clear();
                is_inner = true;
                continue;
            }
            _ if part.starts_with("mlp") || number.is_empty() => part.into(),
            _ => {
                if !is_inner {
                    layer = number.parse().unwrap_or(layer);
                }
                part.replace(number, "{i}")
            }
        });
    }
    (parts.join("."), layer)
}

/// Finds every parameter among the rows of these sections, and notes which rows were met.
fn check(
    label: &str,
    params: &Params,
    sections: &[&str],
    symbols: impl Fn(usize) -> Symbols,
    met: &mut BTreeSet<usize>,
) {
    let rows = documented();
    for spec in params.specs() {
        let (name, layer) = general(&spec.name);
        let fits = |(section, cells): &(String, Vec<String>)| {
            let own = cells[0] == name || cells[0] == spec.name;
            let expected = shape(&cells[1], &symbols(layer));
            sections.contains(&section.as_str()) && own && expected == Some((spec.rows, spec.cols))
        };
        let found: Vec<usize> = (0..rows.len()).filter(|&row| fits(&rows[row])).collect();
        let Some(row) = found.first() else {
            panic!("{label}: {} of {} × {} is not documented", spec.name, spec.rows, spec.cols);
        };
        met.insert(*row);
    }
}

fn assert_all_met(sections: &[&str], met: &BTreeSet<usize>) {
    for (row, (section, cells)) in documented().iter().enumerate() {
        let belongs = sections.contains(&section.as_str());
        assert!(!belongs || met.contains(&row), "{section}: {cells:?} belongs to no model");
    }
}

/// Sizes of layer `i` of a model.
fn sizes(config: &ModelConfig, i: usize) -> Symbols {
    let (input, output) = config.dims(i);
    let last = i + 1 == config.layers;
    let by_type = config.name == "hgt";
    let heads = if last && !by_type { config.out_heads } else { config.heads };
    let width = if last && !by_type { output } else { config.hidden / config.heads };
    let blocks = if output.is_multiple_of(config.bases) { config.bases } else { 1 };
    Symbols::from([
        ("in", input),
        ("out", output),
        ("hidden", config.hidden),
        ("F", FEATURES),
        ("C", CLASSES),
        ("heads", heads),
        ("out_heads", config.out_heads),
        ("width", width),
        ("bases", config.bases),
        ("B", blocks),
        ("T", 2),
        ("R", RELATIONS),
        ("E", config.edge_dim),
    ])
}

fn config(name: &str) -> ModelConfig {
    let name = name.to_string();
    ModelConfig {
        name,
        in_dim: FEATURES,
        out_dim: CLASSES,
        hidden: 12,
        out_heads: 2,
        ..Default::default()
    }
}

#[test]
fn homogeneous_models_make_the_documented_tensors() {
    let mut configs: Vec<ModelConfig> = models::names().iter().map(|name| config(name)).collect();
    for aggregator in [Aggregator::MaxPool, Aggregator::Lstm] {
        configs.push(ModelConfig { aggregator, ..config("sage") });
    }
    for name in ["gcn", "gat"] {
        configs.push(ModelConfig { decoupled: true, ..config(name) });
    }
    for name in models::OF_EDGE_FEATURES {
        configs.push(ModelConfig { edge_features: true, edge_dim: 5, ..config(name) });
    }
    let mut met = BTreeSet::new();
    for config in configs {
        let (_, params) = models::build(&config, Key::new(1)).unwrap();
        let inherited = if config.name == "ngnn" { "sage" } else { "" };
        let sections = [config.name.as_str(), inherited];
        check(&config.name, &params, &sections, |i| sizes(&config, i), &mut met);
    }
    assert_all_met(models::names(), &met);
}

/// Films with features and persons without; nothing ends in persons.
fn schema() -> Schema {
    let mut graph = HeteroSampleGraph::new().with_nodes("film", 4).unwrap();
    graph = graph.with_nodes("person", 3).unwrap();
    for relation in ["acted_in", "directed", "wrote"] {
        let triple: Triple = format!("person:{relation}:film").parse().unwrap();
        graph = graph.with_edges(&triple, Csc::from_edges(4, &[(0, 1)])).unwrap();
    }
    Schema::clone(graph.schema())
}

#[test]
fn heterogeneous_models_make_the_documented_tensors() {
    let mut configs: Vec<ModelConfig> =
        heterogeneous::names().iter().map(|name| config(name)).collect();
    configs.push(ModelConfig { decoupled: true, ..config("rgcn") });
    let basis = ModelConfig { decomposition: Decomposition::Basis, ..config("rgcn") };
    configs.push(ModelConfig { one_hot: true, ..basis.clone() });
    configs.push(basis);
    configs.push(ModelConfig { decomposition: Decomposition::Block, ..config("rgcn") });
    let mut met = BTreeSet::new();
    for config in configs {
        let sources = [Source::Features(FEATURES), Source::Embeddings];
        let (_, params) = heterogeneous::build(&config, &schema(), &sources, Key::new(1)).unwrap();
        let layer = if config.name == "hetero" { "sage" } else { "" };
        let sections = [config.name.as_str(), "Heterogeneous models", layer];
        let config = ModelConfig { in_dim: config.input_width(), ..config.clone() };
        check(&config.name, &params, &sections, |i| sizes(&config, i), &mut met);
    }
    let own = ["Heterogeneous models", "hetero", "hgt", "rgat", "rgcn"];
    assert_all_met(&own, &met);
}

/// Names and shapes that one of the tables of decoders has.
fn decoder_rows(
    section: &str,
    decoder: &str,
    symbols: &Symbols,
) -> BTreeSet<(String, (usize, usize))> {
    let rows = documented().into_iter();
    let own = rows.filter(|(title, cells)| title == section && cells[0] == decoder);
    let named = own.filter(|(_, cells)| !cells[1].is_empty());
    named
        .map(|(_, cells)| (cells[1].clone(), shape(&cells[2], symbols).expect(&cells[2])))
        .collect()
}

fn made(params: &Params) -> BTreeSet<(String, (usize, usize))> {
    params.specs().iter().map(|spec| (spec.name.clone(), (spec.rows, spec.cols))).collect()
}

#[test]
fn decoders_of_links_make_the_documented_tensors() {
    for name in decoders::names() {
        let config = DecoderConfig { name: (*name).into(), hidden: 9, ..Default::default() };
        let (_, params) = decoders::build(&config, 6, 4, Key::new(1)).unwrap();
        let symbols = Symbols::from([("dim", 6), ("q", 4), ("hidden", 9)]);
        let rows = decoder_rows("Decoders of link prediction", name, &symbols);
        assert_eq!(rows, made(&params), "{name}");
    }
}

#[test]
fn decoders_of_edge_labels_make_the_documented_tensors() {
    for name in heads::names() {
        let config =
            DecoderConfig { name: (*name).into(), hidden: 9, layers: 1, ..Default::default() };
        let mut params = ParamsBuilder::new(Key::new(1));
        let sizes = HeadSizes { width: 6, features: 0, outputs: CLASSES };
        heads::add(&config, sizes, &mut params).unwrap();
        let made = made(&params.build());
        let made = made.into_iter().map(|(name, shape)| (general(&name).0, shape)).collect();
        let symbols = [("w", 6), ("rank", 9), ("C", CLASSES), ("in", 12), ("out", CLASSES)];
        let symbols = Symbols::from(symbols);
        let rows = decoder_rows("Decoders of edge labels", name, &symbols);
        assert_eq!(rows, made, "{name}");
    }
}
