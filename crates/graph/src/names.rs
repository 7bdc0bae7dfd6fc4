//! Texts by number: ids of nodes, names of classes and of relations.

use gnarl_common::{Buf, Context, Error, Result};

use crate::column::Column;
use crate::dataset::Dataset;
use crate::manifest::Triple;

/// Texts checked between two releases of their pages.
const PIECE: usize = 1 << 16;

/// Texts by number, mapped from two columns: `<name>.offsets` (u64 `[N + 1]`) and `<name>.bytes`
/// (u8, UTF-8).
#[derive(Debug, Clone)]
pub struct Names {
    offsets: Buf<u64>,
    bytes: Buf<u8>,
}

impl Names {
    /// The texts `name` of a node type, such as `class_name`, if it has them.
    ///
    /// # Errors
    /// If one of the two columns is missing or unreadable, offsets do not ascend within the bytes,
    /// or a text is not UTF-8. All of them are read for that, and none is kept in memory.
    pub fn of_nodes(dataset: &Dataset, node_type: &str, name: &str) -> Result<Option<Self>> {
        let column = |part: &str| dataset.node_column(node_type, &format!("{name}.{part}"));
        Self::of_columns(name, column("offsets")?, column("bytes")?)
            .while_doing(|| format!("{}: {node_type}", dataset.dir().display()))
    }

    /// The texts `name` of an edge type, such as `relation_name`, if it has them.
    ///
    /// # Errors
    /// As [`Self::of_nodes`].
    pub fn of_edges(dataset: &Dataset, triple: &Triple, name: &str) -> Result<Option<Self>> {
        let column = |part: &str| dataset.edge_column(triple, &format!("{name}.{part}"));
        Self::of_columns(name, column("offsets")?, column("bytes")?)
            .while_doing(|| format!("{}: {triple}", dataset.dir().display()))
    }

    fn of_columns(
        name: &str,
        offsets: Option<Column>,
        bytes: Option<Column>,
    ) -> Result<Option<Self>> {
        let missing = |part| Error::invalid(format!("column {name}.{part} is missing"));
        match (offsets, bytes) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(missing("offsets")),
            (Some(_), None) => Err(missing("bytes")),
            (Some(offsets), Some(bytes)) => {
                let names = Self { offsets: offsets.values()?, bytes: bytes.values()? };
                names.check(name)?;
                Ok(Some(names))
            }
        }
    }

    /// Makes sure that every text can be returned.
    fn check(&self, name: &str) -> Result<()> {
        if self.offsets.is_empty() {
            return Err(Error::invalid(format!("column {name}.offsets is empty")));
        }
        for start in (0..self.len()).step_by(PIECE) {
            let end = self.len().min(start + PIECE);
            for (i, pair) in (start..end).zip(self.offsets[start..=end].windows(2)) {
                let (from, to) = (pair[0], pair[1]);
                let text = self.bytes.get(from as usize..to as usize).ok_or_else(|| {
                    let bytes = self.bytes.len();
                    Error::invalid(format!(
                        "{name}.offsets: row {i}: {from}..{to} is no range of {bytes} bytes"
                    ))
                })?;
                std::str::from_utf8(text).map_err(|e| {
                    Error::invalid(format!("{name}.bytes: text {i} is not UTF-8: {e}"))
                })?;
            }
            self.forget(start, end);
        }
        Ok(())
    }

    /// Advises the system that texts `start..end` are not read for a while.
    pub(crate) fn forget(&self, start: usize, end: usize) {
        let bytes = self.offsets[start] as usize..self.offsets[end] as usize;
        self.bytes.forget(bytes);
        self.offsets.forget(start..end);
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True without any text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Text number `i`.
    ///
    /// # Panics
    /// If there are at most `i` texts.
    pub fn get(&self, i: usize) -> &str {
        let text = &self.bytes[self.offsets[i] as usize..self.offsets[i + 1] as usize];
        std::str::from_utf8(text).expect("checked when it was opened")
    }

    /// All texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i))
    }
}
