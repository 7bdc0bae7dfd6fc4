//! The settings of a run that its parts follow from.

use gnarl_common::{Error, Result};
use gnarl_config::{Leakage, MessagesOver, RunConfig, SplitBy, TaskKind};
use gnarl_graph::Triple;
use gnarl_graph::splits::RandomSplit;
use gnarl_partition::PartitionedDataset;
use serde::{Deserialize, Serialize};

use crate::data::target_edges::of_partition;
use crate::encoder::message_graph::MessageForm;

/// The settings of a task of edges that the message graph and the target edges of parts follow from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskSettings {
    pub kind: TaskKind,
    /// The type of the target edges.
    pub edge_type: Triple,
    pub messages: MessageForm,
    /// True if nodes of the heads' type have features.
    pub features: bool,
    pub splits: Splits,
    /// True if neighbors are sampled by time, so that edges of all splits pass messages.
    #[serde(default)]
    pub timed: bool,
    /// Held-out edges, or reverses of some, in the message graph.
    #[serde(default)]
    pub leaking: usize,
}

/// The settings that splits and labels follow from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Splits {
    /// Stored with the edges, for link prediction.
    Stored,
    /// Drawn for link prediction: shares of validation and test, and a seed.
    Drawn(f64, f64, u64),
    /// The latest edges, for link prediction: shares of validation and test.
    Latest(f64, f64),
    /// Labeled edges.
    Labeled {
        label: String,
        over: MessagesOver,
        /// None if splits are stored.
        split: Option<RandomSplit>,
        /// True if features of the edges are read.
        features: bool,
    },
}

impl TaskSettings {
    /// The settings that the parts of `cut` were made for.
    ///
    /// # Errors
    /// If they have no target edges.
    pub fn of(cut: &PartitionedDataset) -> Result<Self> {
        let targets = of_partition(cut)?;
        serde_json::from_value(targets.settings.clone()).map_err(|e| {
            let place = cut.dir().display();
            Error::invalid(format!("{place}: invalid settings of the parts' task: {e}"))
                .hint("make the parts again with this version of gnarl")
        })
    }

    /// Rejects a run for which parts would be others.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] naming the first setting that differs.
    pub fn check(&self, config: &RunConfig, messages: MessageForm) -> Result<()> {
        let task = &config.task;
        differs("task.kind", &task.kind, &self.kind)?;
        if let Some(name) = &task.edge_type {
            differs("task.edge_type", name, &self.edge_type.to_string())?;
        }
        differs("model.name: the message graph", &messages, &self.messages)?;
        differs("sampling by time (sample.time)", &config.samples_by_time(), &self.timed)?;
        if self.leaking > 0 && task.leakage != Leakage::Keep {
            let text =
                format!("{} held-out edges are in the message graph of the parts", self.leaking);
            return Err(Error::invalid(text).hint(
                "make parts with task.leakage = 'remove', or set it to 'keep' to train anyway",
            ));
        }
        match &self.splits {
            Splits::Stored => Ok(()),
            Splits::Latest(valid, test) => {
                differs("task.split_by", &config.split_by(), &SplitBy::Time)?;
                differs("task.valid", &task.valid, valid)?;
                differs("task.test", &task.test, test)
            }
            Splits::Drawn(valid, test, seed) => {
                differs("task.split_by", &config.split_by(), &SplitBy::Endpoints)?;
                differs("task.valid", &task.valid, valid)?;
                differs("task.test", &task.test, test)?;
                differs("task.split_seed", &task.split_seed, seed)
            }
            Splits::Labeled { label, over, split, features } => {
                differs("task.label", &task.label, label)?;
                differs("task.messages", &task.messages, over)?;
                differs("dataset.split", &config.dataset.split, split)?;
                differs("task.edge_features", &task.edge_features, features)
            }
        }
    }
}

fn differs<T: PartialEq + Serialize>(name: &str, own: &T, of_parts: &T) -> Result<()> {
    if own == of_parts {
        return Ok(());
    }
    let word = |value: &T| serde_json::to_string(value).unwrap_or_default();
    let (own, of_parts) = (word(own), word(of_parts));
    Err(Error::usage(format!("{name} is {own}, but the parts were made for {of_parts}"))
        .hint("make parts for this run: gnarl partition DATASET --task RUN.toml"))
}
