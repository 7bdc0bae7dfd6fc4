//! The outputs of a run, as columns.

use clap::ValueEnum;
use gnarl_common::{Error, Result};
use gnarl_config::TaskKind;
use gnarl_graph::{Dataset, Names};
use gnarl_infer::export::{Cells, Column, Kind};
use gnarl_nn::Tensor;
use gnarl_train::TrainedRun;
use rayon::prelude::*;

/// One output of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The input of the last layer where nodes are predicted, else the model's output: column embedding
    Embeddings,
    /// The model's output: column logits
    Logits,
    /// The most likely class and its probability: columns class and probability
    Classes,
    /// The probability of each class, or of each label where several may hold: column probabilities
    Probabilities,
    /// The predicted number: column value
    Values,
}

/// The labels that a run predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// One of some classes.
    Classes,
    /// Any of some labels.
    Several,
    Numbers,
    /// None of nodes.
    None,
}

impl What {
    /// The name of its first column.
    pub(in crate::commands) fn column(self) -> &'static str {
        match self {
            Self::Embeddings => "embedding",
            Self::Logits => "logits",
            Self::Classes => "class",
            Self::Probabilities => "probabilities",
            Self::Values => "value",
        }
    }
}

impl Labels {
    /// The outputs of a model of such labels, the default first.
    fn outputs(self) -> &'static [What] {
        match self {
            Self::Classes => &[What::Classes, What::Probabilities, What::Logits, What::Embeddings],
            Self::Several => &[What::Probabilities, What::Logits, What::Embeddings],
            Self::Numbers => &[What::Values, What::Logits, What::Embeddings],
            Self::None => &[What::Embeddings],
        }
    }
}

/// The outputs of a run, and the names of its classes.
#[derive(Clone)]
pub(in crate::commands) struct Outputs {
    what: Vec<What>,
    labels: Labels,
    names: Option<Names>,
}

impl Outputs {
    /// The outputs `what` of `run`, or by default what it predicts.
    ///
    /// # Errors
    /// If the run has no such output.
    pub fn of(what: &[What], run: &TrainedRun, dataset: &Dataset, node_type: &str) -> Result<Self> {
        let labels = labels(run, dataset, node_type)?;
        Self::new(what, labels, || class_names(run, node_type))
    }

    /// The outputs `what` of the labels of edges, whose classes are named by `names`.
    ///
    /// # Errors
    /// If the run has no such output.
    pub fn of_edges(
        what: &[What],
        (kind, several): (TaskKind, bool),
        names: impl FnOnce() -> Result<Option<Names>>,
    ) -> Result<Self> {
        let labels = match kind {
            TaskKind::EdgeRegression => Labels::Numbers,
            _ if several => Labels::Several,
            _ => Labels::Classes,
        };
        if what.contains(&What::Embeddings) {
            return Err(Error::usage("--what embeddings: edges have none")
                .hint("leave out --edges to write embeddings of nodes"));
        }
        Self::new(what, labels, names)
    }

    fn new(
        what: &[What],
        labels: Labels,
        names: impl FnOnce() -> Result<Option<Names>>,
    ) -> Result<Self> {
        let has = labels.outputs();
        let mut all = if what.is_empty() { vec![has[0]] } else { Vec::new() };
        for &one in what {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        let name =
            |one: What| one.to_possible_value().map_or(String::new(), |v| v.get_name().into());
        if let Some(&one) = all.iter().find(|one| !has.contains(one)) {
            let predicts = match labels {
                Labels::Classes => "classes",
                Labels::Several => "several labels per node",
                Labels::Numbers => "numbers",
                Labels::None => "edges",
            };
            let names: Vec<String> = has.iter().map(|&one| name(one)).collect();
            return Err(Error::usage(format!("--what {}: the run predicts {predicts}", name(one)))
                .hint(format!("it has: {}", names.join(", "))));
        }
        let names = match all.contains(&What::Classes) {
            true => names()?,
            false => None,
        };
        Ok(Self { what: all, labels, names })
    }

    /// The outputs that the run has, the default first.
    #[cfg(feature = "serve")]
    pub fn available(&self) -> &'static [What] {
        self.labels.outputs()
    }

    /// The outputs `what`, of those available, of the same run. Names of classes are those of its default outputs.
    #[cfg(feature = "serve")]
    pub fn select(&self, what: Vec<What>) -> Self {
        Self { what, ..self.clone() }
    }

    /// True if hidden rows are among the outputs.
    pub fn needs_hidden(&self) -> bool {
        self.labels != Labels::None && self.what.contains(&What::Embeddings)
    }

    /// True if the model's output is.
    pub fn needs_last(&self) -> bool {
        self.labels == Labels::None || self.what.iter().any(|what| *what != What::Embeddings)
    }

    /// The columns beside the ids.
    pub fn columns(&self, widths: Widths) -> Vec<Column> {
        let of = |what: &What| match what {
            What::Embeddings => vec![Column::new(what.column(), Kind::List(widths.embedding))],
            What::Logits | What::Probabilities => {
                vec![Column::new(what.column(), Kind::List(widths.last))]
            }
            What::Classes => {
                let class = if self.names.is_some() { Kind::Text } else { Kind::Integer };
                vec![Column::new(what.column(), class), Column::new("probability", Kind::Float)]
            }
            What::Values => vec![Column::new(what.column(), Kind::Float)],
        };
        self.what.iter().flat_map(of).collect()
    }

    /// Calls `append` with the cells of some nodes.
    ///
    /// # Errors
    /// Those of `append`; if a class has no name.
    pub fn cells(
        &self,
        hidden: Option<&Tensor>,
        last: Option<&Tensor>,
        append: impl FnOnce(Vec<Cells<'_>>) -> Result<()>,
    ) -> Result<()> {
        let nothing = Tensor::zeros(0, 0);
        let last = last.unwrap_or(&nothing);
        let embeddings = hidden.unwrap_or(last);
        let wanted = |what| self.what.contains(&what);
        let probabilities = match wanted(What::Probabilities) || wanted(What::Classes) {
            true => probabilities(last, self.labels),
            false => Vec::new(),
        };
        let cols = last.cols().max(1);
        let largest = |row: &[f32]| {
            // The first of equal ones, as accuracy counts.
            (0..row.len()).reduce(|best, i| if row[i] > row[best] { i } else { best }).unwrap_or(0)
        };
        let best: Vec<usize> = match wanted(What::Classes) {
            true => last.data().par_chunks(cols).map(largest).collect(),
            false => Vec::new(),
        };
        let of_best: Vec<f32> = best
            .iter()
            .enumerate()
            .map(|(row, &class)| probabilities[row * cols + class])
            .collect();
        let numbers: Vec<i64>;
        let texts: Vec<&str>;
        let classes = match &self.names {
            Some(names) => {
                if let Some(&class) = best.iter().find(|&&class| class >= names.len()) {
                    let found = names.len();
                    return Err(Error::invalid(format!("class {class} of {found} named ones")));
                }
                texts = best.iter().map(|&class| names.get(class)).collect();
                Cells::Texts(&texts)
            }
            None => {
                numbers = best.iter().map(|&class| class as i64).collect();
                Cells::Integers(&numbers)
            }
        };
        let mut cells = Vec::new();
        for what in &self.what {
            match what {
                What::Embeddings => cells.push(Cells::Lists(embeddings.data())),
                What::Logits => cells.push(Cells::Lists(last.data())),
                What::Classes => cells.extend([classes, Cells::Floats(&of_best)]),
                What::Probabilities => cells.push(Cells::Lists(&probabilities)),
                What::Values => cells.push(Cells::Floats(last.data())),
            }
        }
        append(cells)
    }
}

/// Widths of rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Widths {
    pub embedding: usize,
    pub last: usize,
}

/// The names of classes, as the run was trained on them: another dataset may number them otherwise.
///
/// # Errors
/// If they are damaged.
fn class_names(run: &TrainedRun, node_type: &str) -> Result<Option<Names>> {
    match (Dataset::open(run.trained_on()), run.catalog_of_parts()) {
        (Ok(dataset), _) => Names::of_nodes(&dataset, node_type, "class_name"),
        (Err(_), Some(catalog)) => Names::of_nodes(catalog, node_type, "class_name"),
        (Err(e), None) => {
            let place = run.trained_on().display();
            tracing::warn!(
                "classes are written by number: their names are in {place}, which is not there: {e}"
            );
            Ok(None)
        }
    }
}

/// The kind of labels that a run predicts.
fn labels(run: &TrainedRun, dataset: &Dataset, node_type: &str) -> Result<Labels> {
    Ok(match run.kind() {
        TaskKind::NodeRegression => Labels::Numbers,
        TaskKind::NodeClassification => match dataset.labels(node_type)? {
            Some(gnarl_graph::Labels::Multi { .. }) => Labels::Several,
            _ => Labels::Classes,
        },
        // Tasks of a program's own are opened, and inferred, by that program.
        _ => Labels::None,
    })
}

/// Softmax over the classes of a row, or the logistic function of each label.
fn probabilities(logits: &Tensor, labels: Labels) -> Vec<f32> {
    let mut values = logits.data().to_vec();
    values.par_chunks_mut(logits.cols().max(1)).for_each(|row| {
        if labels == Labels::Several {
            return row.iter_mut().for_each(|value| *value = 1.0 / (1.0 + (-*value).exp()));
        }
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|value| *value = (*value - largest).exp());
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_classes_add_up_to_one() {
        let logits = Tensor::from_vec(2, 3, vec![1000.0, 1000.0, -1000.0, 0.0, 1.0, 2.0]);
        let found = probabilities(&logits, Labels::Classes);
        assert_eq!(&found[..3], [0.5, 0.5, 0.0]);
        assert!((found[3..].iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((found[5] - 0.665_24).abs() < 1e-4, "{found:?}");
        let several = probabilities(&logits, Labels::Several);
        assert_eq!((several[0], several[2], several[3]), (1.0, 0.0, 0.5));
    }
}
