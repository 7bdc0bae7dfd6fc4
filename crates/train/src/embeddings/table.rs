//! A named embedding table, before and after it is distributed over ranks.

use std::fmt;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_store::embedding::{Embedding, SparseOptimizer};
use gnarl_store::placement::Placement;

use super::Owners;

/// The specification of a table, from which it is initialized.
#[derive(Clone)]
pub struct TableSpec {
    /// Name in checkpoints.
    pub name: String,
    /// Node type of the embeddings.
    pub node_type: String,
    /// Number of rows, above all ids.
    pub count: u64,
    /// Embedding width.
    pub width: usize,
    /// Initial values are uniform in `[-bound, bound)`.
    pub bound: f32,
    /// Key of the initialization.
    pub key: Key,
    /// Optimizer.
    pub optimizer: Arc<dyn SparseOptimizer>,
}

impl TableSpec {
    /// The table of the `count` nodes of a type, whose initialization is keyed by the type's name.
    ///
    /// # Errors
    /// If the run file's optimizer of embeddings is invalid.
    pub(crate) fn of_type(config: &RunConfig, node_type: &str, count: u64) -> Result<Self> {
        let width = config.model.input_width();
        let bound = config.embedding.bound.unwrap_or_else(|| match config.model.one_hot {
            // Glorot's bound of a basis, which has one row per node.
            true => (6.0 / (count as f32 + config.model.hidden as f32)).sqrt(),
            false => 1.0 / (width as f32).sqrt(),
        });
        let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        let key = Key::new(config.train.seed).with(4);
        let key = key.with(node_type.bytes().fold(0xcbf2_9ce4_8422_2325, hash));
        let optimizer = config.embedding.optimizer(&config.optimizer)?;
        let name = format!("embedding.{node_type}");
        Ok(Self { name, node_type: node_type.into(), count, width, bound, key, optimizer })
    }

    /// The rows of one of `ranks` ranks: those of its parts if there is a placement with parts for
    /// all ranks, else an even share.
    ///
    /// # Errors
    /// If rows cannot be that wide or that many.
    pub fn share(
        &self,
        placement: Option<&Arc<dyn Placement>>,
        rank: usize,
        ranks: usize,
    ) -> Result<Table> {
        let owners = match placement {
            Some(placement) if placement.parts() >= ranks => {
                Owners::new(placement.clone(), rank, ranks)
            }
            _ => Owners::even(self.count, rank, ranks),
        };
        let (ids, optimizer) = (owners.own(), self.optimizer.clone());
        let rows = Embedding::new(ids, self.width, self.bound, self.key, optimizer)?;
        Ok(Table { name: self.name.clone(), best: rows.values().to_vec(), rows, owners })
    }

    /// A table of `count` rows for tests, updated by Adam.
    #[cfg(test)]
    pub(crate) fn of_entities(count: u64, width: usize) -> Self {
        let adam = gnarl_store::embedding::SparseAdam::new(0.9, 0.999, 1e-8);
        Self {
            name: "entity".into(),
            node_type: "entity".into(),
            count,
            width,
            bound: 0.5,
            key: Key::new(1),
            optimizer: Arc::new(adam.expect("constants in range")),
        }
    }

    /// Number of values of all rows.
    pub fn values(&self) -> usize {
        self.count as usize * self.width
    }
}

/// One rank's rows of a table.
#[derive(Clone)]
pub struct Table {
    /// Name in checkpoints.
    pub name: String,
    /// The rows, by ascending id, with the state of their optimizer.
    pub rows: Embedding,
    /// Embeddings of the best evaluation so far.
    pub best: Vec<f32>,
    /// Owners of the rows.
    pub owners: Owners,
}

impl Table {
    /// This rank's share of an array that has some values for each row of all ranks.
    ///
    /// # Errors
    /// If it is an array of another table.
    pub fn own<T: Copy>(&self, all: &[T], name: &str) -> Result<Vec<T>> {
        let rows = self.owners.rows() as usize;
        let (found, each) = (all.len(), all.len().checked_div(rows).unwrap_or(0));
        if found != each * rows {
            return Err(Error::invalid(format!(
                "invalid '{name}': expected {rows} rows, found {found} values"
            ))
            .hint("the checkpoint belongs to another graph or model configuration"));
        }
        let row = |&id: &u64| &all[id as usize * each..(id as usize + 1) * each];
        Ok(self.rows.ids().iter().flat_map(row).copied().collect())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use gnarl_store::RowSource;
        write!(f, "Table({}: {} × {})", self.name, self.rows.ids().len(), self.rows.width())
    }
}
