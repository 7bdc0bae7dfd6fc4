//! The axes, and the page that is made of the answers.

use std::fmt::Write;

use gnarl_config::support::Combination;
use gnarl_config::{Parts, RunConfig, Servers, Strategy, TaskKind};

/// A task on a kind of graph.
pub struct Task {
    pub name: &'static str,
    pub kind: TaskKind,
    pub heterogeneous: bool,
    pub edge_type: Option<&'static str>,
}

pub const TASKS: &[Task] = &[
    task("node classification, homogeneous", TaskKind::NodeClassification, None),
    task("node classification, heterogeneous", TaskKind::NodeClassification, Some("")),
    task("link prediction, homogeneous", TaskKind::LinkPrediction, None),
    task("link prediction, heterogeneous", TaskKind::LinkPrediction, Some("paper:r0:author")),
    task("edge classification, homogeneous", TaskKind::EdgeClassification, None),
    task("edge regression, heterogeneous", TaskKind::EdgeRegression, Some("user:rates:item")),
];

const fn task(name: &'static str, kind: TaskKind, of_types: Option<&'static str>) -> Task {
    let edge_type = match of_types {
        Some(name) if !name.is_empty() => Some(name),
        _ => None,
    };
    Task { name, kind, heterogeneous: of_types.is_some(), edge_type }
}

/// A model, on which kinds of graphs.
pub struct Model {
    pub name: &'static str,
    homogeneous: bool,
    heterogeneous: bool,
    pub set: fn(&mut RunConfig),
}

macro_rules! model {
    ($name:literal, $homogeneous:literal, $heterogeneous:literal, $($key:ident).+ = $value:expr) => {
        Model {
            name: $name,
            homogeneous: $homogeneous,
            heterogeneous: $heterogeneous,
            set: |run| {
                let name = $name.split(' ').next().unwrap_or_default();
                run.model.name = name.into();
                run.$($key).+ = $value;
            },
        }
    };
}

pub const MODELS: &[Model] = &[
    model!("gcn", true, false, model.decoupled = false),
    model!("gcn decoupled", true, false, model.decoupled = true),
    model!("sage", true, false, model.decoupled = false),
    model!("sage max-pool", true, false, model.aggregator = gnarl_nn::models::Aggregator::MaxPool),
    model!("sage lstm", true, false, model.aggregator = gnarl_nn::models::Aggregator::Lstm),
    model!("gat", true, false, model.decoupled = false),
    model!("gat decoupled", true, false, model.decoupled = true),
    model!("gatv2", true, false, model.decoupled = false),
    model!("gin", true, false, model.decoupled = false),
    model!("sgc", true, false, model.decoupled = false),
    model!("ngnn", true, false, model.decoupled = false),
    model!("mlp", true, true, model.decoupled = false),
    model!("none", true, true, model.decoupled = false),
    model!("rgcn", false, true, model.decoupled = false),
    model!("rgcn decoupled", false, true, model.decoupled = true),
    model!("rgat", false, true, model.decoupled = false),
    model!("hgt", false, true, model.decoupled = false),
    model!("hetero", false, true, model.decoupled = false),
];

impl Model {
    /// Returns whether the model is for graphs of the task; embeddings without a model are for
    /// edges.
    pub fn is_for(&self, task: &Task) -> bool {
        let of_nodes = task.kind == TaskKind::NodeClassification;
        let fits = if task.heterogeneous { self.heterogeneous } else { self.homogeneous };
        fits && !(of_nodes && self.name == "none")
    }
}

/// How steps are executed and synchronized, and where the graph is.
pub struct Execution {
    pub name: &'static str,
    pub served: bool,
    pub set: fn(&mut RunConfig),
}

impl Execution {
    pub const ALL: &[Self] = &[
        Self { name: "`gradient`", served: false, set: |run| run.train.workers = 2 },
        Self {
            name: "`average`",
            served: false,
            set: |run| {
                run.train.strategy = Strategy::Average;
                run.train.workers = 2;
                run.partition.parts = Parts::Count(2);
            },
        },
        Self {
            name: "`disaggregated`",
            served: false,
            set: |run| {
                run.train.strategy = Strategy::Disaggregated;
                run.train.workers = 2;
                run.partition.parts = Parts::Count(2);
            },
        },
        Self {
            name: "`tensor`",
            served: false,
            set: |run| {
                run.train.strategy = Strategy::Tensor;
                run.train.workers = 2;
            },
        },
        Self {
            name: "`tensor` in chunks",
            served: false,
            set: |run| {
                run.train.strategy = Strategy::Tensor;
                run.train.workers = 2;
                run.tensor.chunks = 3;
            },
        },
        Self {
            name: "parts on other hosts",
            served: true,
            set: |run| run.partition.servers = Some(Servers::Ranks),
        },
        Self {
            name: "`average` of parts on other hosts",
            served: true,
            set: |run| {
                run.partition.servers = Some(Servers::Ranks);
                run.train.strategy = Strategy::Average;
            },
        },
    ];
}

/// The text of docs/support.md.
pub fn document() -> String {
    let mut reasons: Vec<String> = Vec::new();
    let mut text = String::from(
        "# What works together\n\nMade by `GNARL_UPDATE_DOCS=1 cargo test -p gnarl-train --features serve --test train support::` \
         of the rules that runs are\nchecked by (`crates/config/src/support.rs`); the same test trains every *yes* for two \
         epochs with two workers, those on other\nhosts from parts, with the losses of the whole graph. A number is the \
         reason below. `tensor` in chunks is `tensor` with\n`tensor.memory` or `tensor.chunks`; parts on other hosts is \
         `partition.servers` with\n`gradient`, or with `average`. Threads and MPI are alike.\n",
    );
    let (mut yes, mut all) = (0, 0);
    for task in TASKS {
        let names: Vec<&str> = Execution::ALL.iter().map(|execution| execution.name).collect();
        _ = writeln!(text, "\n## {}\n", capitalized(task.name));
        _ = writeln!(text, "| `model.name` | {} |", names.join(" | "));
        _ = writeln!(text, "|---|{}", "---|".repeat(names.len()));
        for model in MODELS.iter().filter(|model| model.is_for(task)) {
            let mut row = format!("| {} |", model.name);
            for execution in Execution::ALL {
                let mut run = RunConfig::default();
                run.task.kind = task.kind;
                (model.set)(&mut run);
                (execution.set)(&mut run);
                let answer = Combination { run: &run, heterogeneous: task.heterogeneous };
                all += 1;
                match answer.check() {
                    Ok(()) => {
                        yes += 1;
                        row += " yes |";
                    }
                    Err(reason) => {
                        let reason = reason.to_string();
                        let known = reasons.iter().position(|known| *known == reason);
                        let number = known.unwrap_or_else(|| {
                            reasons.push(reason);
                            reasons.len() - 1
                        });
                        _ = write!(row, " {} |", number + 1);
                    }
                }
            }
            text += &row;
            text.push('\n');
        }
    }
    _ = writeln!(text, "\n## Reasons\n\n{yes} of {all} combinations work.\n");
    for (number, reason) in reasons.iter().enumerate() {
        let line =
            reason.replace("\nhint: ", ". Hint: ").split_whitespace().collect::<Vec<_>>().join(" ");
        _ = writeln!(text, "{}. {line}", number + 1);
    }
    text
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
