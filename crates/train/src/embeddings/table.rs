//! A named embedding table, before and after it is distributed over ranks.

use std::fmt;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{BufMut, Error, Home, Result};
use gnarl_config::{RunConfig, Strategy};
use gnarl_store::embedding::{Embedding, SparseOptimizer, Summed};
use gnarl_store::placement::Placement;

use super::Owners;
use crate::data::batch::Uses;

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
    /// True if rows in files are in the order of parts, as these are in memory in turns.
    pub in_turns: bool,
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
        let key = Key::new(config.train.seed).with(4);
        let key = key.with(gnarl_common::fnv1a(node_type.bytes()));
        let optimizer = config.embedding.optimizer(&config.optimizer)?;
        let name = format!("embedding.{node_type}");
        let in_turns = config.train.strategy == Strategy::Disaggregated;
        let node_type = node_type.into();
        Ok(Self { name, node_type, count, width, bound, key, optimizer, in_turns })
    }

    /// The rows of one of `ranks` ranks: those of its parts if there is a placement with parts for
    /// all ranks, else an even share; in `home`.
    ///
    /// # Errors
    /// If rows cannot be that wide or that many, files cannot be made, or there are fewer parts in turns than ranks.
    pub fn share(
        &self,
        placement: Option<&Arc<dyn Placement>>,
        (rank, ranks): (usize, usize),
        home: &Home,
    ) -> Result<Table> {
        let owners = match placement {
            Some(placement) if placement.parts() >= ranks => {
                Owners::new(placement.clone(), rank, ranks)
            }
            _ => Owners::even(self.count, rank, ranks),
        };
        let about = (self.width, self.bound, self.key);
        let ids = match self.in_turns && *home != Home::Memory {
            true => owners.own_in_parts()?,
            false => owners.own(),
        };
        let rows = Embedding::in_home(ids, about, self.optimizer.clone(), home)?;
        Ok(Table {
            name: self.name.clone(),
            rows,
            owners,
            home: home.clone(),
            best: Best::Unknown,
            kept: BufMut::default(),
        })
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
            in_turns: false,
        }
    }

    /// Number of values of all rows.
    pub fn values(&self) -> usize {
        self.count as usize * self.width
    }
}

/// The place of the embeddings of the best evaluation so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Best {
    /// There was no evaluation.
    Unknown,
    /// The rows have not changed since.
    Latest,
    /// A copy of the rows.
    Kept,
}

/// One rank's rows of a table.
pub struct Table {
    /// Name in checkpoints.
    pub name: String,
    /// The rows, with the state of their optimizer.
    pub(super) rows: Embedding,
    /// Owners of the rows.
    pub owners: Owners,
    /// Place of the rows.
    pub(super) home: Home,
    best: Best,
    /// Embeddings of the best evaluation, copied before the rows change.
    kept: BufMut<f32>,
}

impl Table {
    /// The rows, with the state of their optimizer.
    pub fn rows(&self) -> &Embedding {
        &self.rows
    }

    /// The rows of the best evaluation so far; the current ones before any.
    pub fn best(&self) -> &BufMut<f32> {
        match self.best {
            Best::Kept => &self.kept,
            Best::Unknown | Best::Latest => self.rows.values(),
        }
    }

    /// The copy of the rows of the best evaluation; none if they are the current ones.
    pub(super) fn kept(&self) -> Option<&BufMut<f32>> {
        (self.best == Best::Kept).then_some(&self.kept)
    }

    /// Keeps the current rows as the best ones. They are copied when they change.
    pub fn keep_latest(&mut self) {
        self.best = Best::Latest;
    }

    /// Sets the rows of the best evaluation.
    ///
    /// # Panics
    /// If they are of another table.
    pub(crate) fn set_best(&mut self, best: BufMut<f32>) {
        assert_eq!(best.len(), self.rows.values().len(), "rows of the table");
        self.kept = best;
        self.best = Best::Kept;
    }

    /// Sets the rows of the best evaluation to a copy of `best`.
    ///
    /// # Errors
    /// If they are of another table, or the disk has no room for them.
    pub(crate) fn restore_best(&mut self, best: &[f32]) -> Result<()> {
        let rows = self.rows.values().len();
        if best.len() != rows {
            let found = best.len();
            return Err(Error::invalid(format!(
                "invalid best rows of {}: expected {rows} values, found {found}",
                self.name
            )));
        }
        let mut kept = BufMut::zeros(rows, &self.home)?;
        kept.copy_from_slice(best);
        self.set_best(kept);
        Ok(())
    }

    /// The rows for writing: those of the best evaluation are copied first.
    ///
    /// # Errors
    /// If the disk has no room for the copy.
    pub fn rows_mut(&mut self) -> Result<&mut Embedding> {
        if self.best == Best::Latest {
            match self.kept.len() == self.rows.values().len() {
                true => self.kept.fill_from(self.rows.values()),
                false => self.kept = self.rows.values().copy_to(&self.home)?,
            }
            self.best = Best::Kept;
        }
        Ok(&mut self.rows)
    }

    /// Updates the rows of `summed` with learning rate `lr`, on the rayon pool this is called from.
    ///
    /// # Errors
    /// As [`Table::rows_mut`].
    pub fn apply(&mut self, summed: &Summed, lr: f32) -> Result<()> {
        self.rows_mut()?.apply(summed, lr);
        Ok(())
    }

    /// Holds the rows of these nodes in memory, if rows are in files, and reads ahead those of others.
    ///
    /// # Errors
    /// If the disk fails.
    pub(crate) fn uses(&mut self, uses: &Uses) -> Result<()> {
        self.rows_mut()?.hold(&uses.now)?;
        uses.ahead.iter().for_each(|ahead| self.rows.expect(ahead));
        Ok(())
    }

    /// Writes the rows back that are held in memory.
    ///
    /// # Errors
    /// If the disk fails.
    pub(crate) fn release(&mut self) -> Result<()> {
        self.rows.hold(&[])
    }

    /// Returns whether rows are in files, for they may exceed the memory.
    pub fn is_in_files(&self) -> bool {
        self.home != Home::Memory
    }

    /// The rows of the best evaluation; the others, and the state of the optimizer, are dropped.
    pub(super) fn into_best(self) -> BufMut<f32> {
        match self.best {
            Best::Kept => self.kept,
            Best::Unknown | Best::Latest => self.rows.into_values(),
        }
    }

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
        Ok(self.rows.ids().iter().flat_map(|id| row(&id)).copied().collect())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use gnarl_store::RowSource;
        write!(f, "Table({}: {} × {})", self.name, self.rows.ids().len(), self.rows.width())
    }
}
