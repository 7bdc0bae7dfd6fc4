//! Properties of a run on which the use of keys depends.

use crate::{Method, Parts, RowOptimizer, RunConfig, Strategy, TaskKind};

/// A run, with the properties of its dataset that rules depend on.
#[derive(Clone, Copy)]
pub struct Applied<'a> {
    /// The run file, with its strategy resolved.
    pub run: &'a RunConfig,
    /// True if the graph is heterogeneous.
    pub heterogeneous: bool,
    /// True if there are embeddings.
    pub tables: bool,
}

/// Keys, by name or as `section.*`, and the runs that they apply to.
pub(super) struct Rule {
    pub keys: &'static [&'static str],
    pub applies: fn(&Applied<'_>) -> bool,
    pub to: &'static str,
}

impl Rule {
    pub fn names(&self, key: &str) -> bool {
        self.keys.iter().any(|name| match name.strip_suffix('*') {
            Some(section) => key.starts_with(section),
            None => *name == key,
        })
    }
}

impl Applied<'_> {
    pub(super) fn nodes(&self) -> bool {
        self.run.task.kind.is_of_nodes()
    }

    pub(super) fn numbers(&self) -> bool {
        matches!(self.run.task.kind, TaskKind::NodeRegression | TaskKind::EdgeRegression)
    }

    pub(super) fn links(&self) -> bool {
        self.run.task.kind == TaskKind::LinkPrediction
    }

    pub(super) fn edges(&self) -> bool {
        self.run.task.kind.is_of_edges()
    }

    pub(super) fn model(&self, names: &[&str]) -> bool {
        names.contains(&self.run.model.name.as_str())
    }

    pub(super) fn hetero_of(&self, layer: &str) -> bool {
        self.model(&["hetero"]) && self.run.model.relation_layer == layer
    }

    pub(super) fn attends(&self) -> bool {
        self.model(&["gat", "gatv2", "rgat"]) || self.hetero_of("gat")
    }

    pub(super) fn decoder(&self, names: &[&str]) -> bool {
        let decoder = &self.run.decoder;
        names.contains(&if self.edges() { decoder.of_labels() } else { decoder.of_links() })
    }

    pub(super) fn loss(&self, names: &[&str]) -> bool {
        names.contains(&self.run.loss.name.as_str())
    }

    pub(super) fn negatives(&self, kinds: &[&str]) -> bool {
        kinds.contains(&self.run.negatives.kind.as_str())
    }

    pub(super) fn tensor(&self) -> bool {
        self.run.train.strategy.takes_whole_graph()
    }

    pub(super) fn disaggregated(&self) -> bool {
        self.run.train.strategy == Strategy::Disaggregated
    }

    pub(super) fn averages(&self) -> bool {
        self.run.train.strategy.parts_train_alone()
    }

    /// True if the model treats relations of one edge type as edge types.
    pub(super) fn relational(&self) -> bool {
        !self.nodes() && self.model(&["rgcn", "rgat", "hgt", "hetero"])
    }

    pub(super) fn subgraphs(&self) -> bool {
        let method = self.run.sample.method;
        !method.has_fanouts() && method != Method::Full
    }

    pub(super) fn is_cut(&self) -> bool {
        self.run.partition.path.is_some() || self.run.partition.parts != Parts::Count(1)
    }

    pub(super) fn partitioner(&self, names: &[&str]) -> bool {
        names.contains(&self.run.partition.algorithm.as_str())
    }

    pub(super) fn optimizer(&self, names: &[&str]) -> bool {
        names.contains(&self.run.optimizer.name.as_str())
    }

    pub(super) fn rows(&self, optimizer: RowOptimizer) -> bool {
        self.tables && self.run.embedding.optimizer == optimizer
    }
}
