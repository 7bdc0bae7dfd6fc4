//! Classes from labels that are numbers.

use std::collections::BTreeSet;

use gnarl_common::{Error, Result, ResultExt};

use super::array::BLOCK;
use super::splits::members_of;
use crate::column::{Column, ColumnSpec};
use crate::inspect::grouped;
use crate::writer::{ColumnWriter, DatasetWriter};

/// Converts label values to class ids and records the distinct ones.
pub(super) struct ClassChecker {
    limit: Option<u64>,
    met: BTreeSet<i32>,
    /// The previous id: labels often repeat.
    last: i32,
}

impl ClassChecker {
    /// `limit` is the number of classes where it is stated.
    pub fn new(limit: Option<u64>) -> Self {
        Self { limit, met: BTreeSet::new(), last: -1 }
    }

    /// The class id of `value`; -1 and NaN mean none.
    pub fn class(&mut self, value: f64) -> std::result::Result<i32, String> {
        if value.is_nan() || value == -1.0 {
            return Ok(-1);
        }
        if value < 0.0 || value.fract() != 0.0 || value >= f64::from(i32::MAX) {
            return Err(format!("label {value} is not a class: a whole number from 0, or -1"));
        }
        if let Some(limit) = self.limit
            && value as u64 >= limit
        {
            return Err(format!("label {value} is not below the number of classes, {limit}"));
        }
        let class = value as i32;
        if class != self.last {
            self.met.insert(class);
            self.last = class;
        }
        Ok(class)
    }

    /// The numbering of the class ids: unchanged if a number of classes was stated or at least half
    /// of those from 0 to the largest occur, else from 0 in ascending order.
    pub fn numbering(self) -> Numbering {
        let met: Vec<i32> = self.met.into_iter().collect();
        let span = met.last().map_or(0, |&largest| largest as u64 + 1);
        if let Some(count) = self.limit {
            return Numbering::Kept { count, unused: Vec::new() };
        }
        if (met.len() as u64) * 2 < span {
            return Numbering::Compact(met);
        }
        let unused = (0..span as i32).filter(|class| met.binary_search(class).is_err()).collect();
        Numbering::Kept { count: span, unused }
    }
}

/// The numbering of stored class ids.
pub(super) enum Numbering {
    /// Unchanged; `unused` are those that no node or edge has.
    Kept { count: u64, unused: Vec<i32> },
    /// As their positions among these, which ascend.
    Compact(Vec<i32>),
}

impl Numbering {
    /// The stored class of an id that occurred, or of -1.
    pub fn class(&self, id: i32) -> i32 {
        match self {
            Self::Kept { .. } => id,
            Self::Compact(ids) => ids.binary_search(&id).map_or(-1, |class| class as i32),
        }
    }

    /// Number of classes.
    pub fn count(&self) -> u64 {
        match self {
            Self::Kept { count, .. } => *count,
            Self::Compact(ids) => ids.len() as u64,
        }
    }

    /// Logs renumbered or unused ids. `members` are the `nodes` or
    /// `edges` of `of_type`.
    pub fn report(&self, writer: &mut DatasetWriter, of_type: &str, members: &str) {
        match self {
            Self::Kept { unused, .. } if unused.is_empty() => {}
            Self::Kept { count, unused } => tracing::warn!(
                "{} of {} classes are on none of the {}: {}; number classes from 0 without gaps, or \
                 state their number if that is meant",
                grouped(unused.len() as u64),
                grouped(*count),
                members_of(of_type, members),
                listed(unused)
            ),
            Self::Compact(ids) => {
                tracing::warn!(
                    "the class ids of {} have gaps: {} are stored as 0 to {}; the columns \
                     class_name.* hold the ids given",
                    members_of(of_type, members),
                    listed(ids),
                    ids.len() - 1
                );
                writer.notes.renumbered_classes.push(of_type.to_string());
            }
        }
    }

    /// The columns `class_name.offsets` and `class_name.bytes` with the ids given as text, if they
    /// changed.
    pub fn names(
        &self,
        offsets: impl FnOnce(&str) -> Result<ColumnWriter<u64>>,
        bytes: impl FnOnce(&str) -> Result<ColumnWriter<u8>>,
    ) -> Result<Vec<ColumnSpec>> {
        let Self::Compact(ids) = self else { return Ok(Vec::new()) };
        let mut offsets = offsets("class_name.offsets")?;
        let mut bytes = bytes("class_name.bytes")?;
        let mut end = 0;
        offsets.push(&[end])?;
        for id in ids {
            let text = id.to_string();
            end += text.len() as u64;
            offsets.push(&[end])?;
            bytes.push(text.as_bytes())?;
        }
        Ok(vec![offsets.finish()?, bytes.finish()?])
    }
}

/// The first ids of a list, with their total number if longer.
fn listed(ids: &[i32]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = ids.iter().take(SHOWN).map(i32::to_string).collect();
    let shown = shown.join(", ");
    if ids.len() <= SHOWN { shown } else { format!("{shown}, … ({} ids)", ids.len()) }
}

/// The column `label` of a node type, written from numbers.
pub(super) struct ClassColumn {
    column: ColumnWriter<i32>,
    checker: ClassChecker,
}

impl ClassColumn {
    /// Starts the column; `limit` is the number of classes where it is stated.
    pub fn create(writer: &DatasetWriter, ntype: &str, limit: Option<u64>) -> Result<Self> {
        let column = writer.node_column::<i32>(ntype, "label", &[])?;
        Ok(Self { column, checker: ClassChecker::new(limit) })
    }

    /// Appends the classes of `values`; `place` names the position of an invalid one.
    pub fn push(&mut self, values: &[f64], place: impl Fn(usize) -> String) -> Result<()> {
        let mut classes = Vec::with_capacity(values.len());
        for (i, &value) in values.iter().enumerate() {
            let class = self.checker.class(value);
            classes.push(class.map_err(|e| Error::invalid(format!("{}: {e}", place(i))))?);
        }
        self.column.push(&classes)
    }

    /// Completes the column, renumbers classes without gaps if there are many, and logs it.
    pub fn finish(self, writer: &mut DatasetWriter, ntype: &str) -> Result<()> {
        let spec = self.column.finish()?;
        finish_labels(writer, ntype, spec, self.checker)
    }
}

/// Adds a complete column `label` of class ids to a node type, as [`ClassColumn::finish`].
pub(super) fn finish_labels(
    writer: &mut DatasetWriter,
    ntype: &str,
    mut spec: ColumnSpec,
    checker: ClassChecker,
) -> Result<()> {
    let numbering = checker.numbering();
    numbering.report(writer, ntype, "nodes");
    if let Numbering::Compact(_) = numbering {
        spec = rewritten(writer, ntype, spec, &numbering)?;
    }
    let names = numbering.names(
        |name| writer.node_column(ntype, name, &[]),
        |name| writer.node_column(ntype, name, &[]),
    )?;
    let node_type = writer.node_type(ntype)?;
    node_type.columns.push(spec);
    node_type.columns.extend(names);
    node_type.classes = Some(numbering.count());
    Ok(())
}

/// A column of class ids, rewritten as classes.
fn rewritten(
    writer: &DatasetWriter,
    ntype: &str,
    spec: ColumnSpec,
    numbering: &Numbering,
) -> Result<ColumnSpec> {
    let dir = writer.tmp_dir();
    let ids = Column::open(dir, &spec)?.values::<i32>()?;
    // The file is mapped while it is read: the new one takes its place only when it is complete.
    let mut column = writer.node_column::<i32>(ntype, "label.new", &[])?;
    for block in ids.chunks(BLOCK) {
        let classes: Vec<i32> = block.iter().map(|&id| numbering.class(id)).collect();
        column.push(&classes)?;
    }
    let new = column.finish()?;
    let path = dir.join(&spec.file);
    std::fs::rename(dir.join(&new.file), &path).at(&path)?;
    Ok(ColumnSpec { name: spec.name, file: spec.file, ..new })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbering(labels: &[f64], limit: Option<u64>) -> Numbering {
        let mut checker = ClassChecker::new(limit);
        for &label in labels {
            checker.class(label).unwrap();
        }
        checker.numbering()
    }

    #[test]
    fn ids_are_compacted_where_most_are_unused() {
        let found = numbering(&[77.0, 10.0, f64::NAN, 1000.0, 10.0], None);
        assert_eq!([10, 77, 1000, -1].map(|id| found.class(id)), [0, 1, 2, -1]);
        assert_eq!(found.count(), 3);
        // Of two ids from 0 one is used: just half.
        for (labels, count, expected) in [
            (&[1.0][..], 2, &[0][..]),
            (&[1.0, 2.0, 4.0], 5, &[0, 3]),
            (&[0.0, 1.0, 2.0, 4.0], 5, &[3]),
            (&[0.0, 1.0, 2.0], 3, &[]),
            (&[-1.0], 0, &[]),
        ] {
            let Numbering::Kept { count: found, unused } = numbering(labels, None) else {
                panic!("{labels:?} must be kept")
            };
            assert_eq!((found, &unused[..]), (count, expected), "{labels:?}");
        }
        assert!(matches!(numbering(&[2.0], None), Numbering::Compact(ids) if ids == [2]));
        assert_eq!(numbering(&[10.0, 77.0], Some(100)).count(), 100);
    }
}
