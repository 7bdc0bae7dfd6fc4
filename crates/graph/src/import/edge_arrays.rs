//! Arrays with one row per edge of a type.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Kind, Result};

use super::array::{ArrayReader, Num};
use super::classes::{ClassChecker, Numbering};
use super::extra::{Extra, NO_SPLIT};
use super::source::Source;
use super::splits::{EdgeSplits, split_number};
use super::weights::WeightType;

/// Edge columns of a type, read beside the edges in chunks.
#[derive(Default)]
pub(super) struct EdgeArrays {
    columns: Vec<(Extra, Values)>,
    splits: EdgeSplits,
}

enum Values {
    Numbers(ArrayReader),
    Classes(ArrayReader, Numbering),
    /// Split masks, by split number.
    Masks(Vec<(u8, ArrayReader)>),
}

impl EdgeArrays {
    /// A weight for each edge.
    pub fn weights(&mut self, array: ArrayReader, stored: WeightType) {
        self.columns.push((Extra::Weight(stored), Values::Numbers(array)));
    }

    /// A time for each edge.
    pub fn times(&mut self, array: ArrayReader) {
        self.columns.push((Extra::Time, Values::Numbers(array)));
    }

    /// A row of features for each edge.
    ///
    /// # Errors
    /// If the array is not `[E, F]`.
    pub fn features(&mut self, array: ArrayReader) -> Result<()> {
        let &[_, width] = array.shape() else {
            let shape = array.shape();
            return Err(array
                .error(format!("features of edges of shape {shape:?}, not [E, F]"))
                .hint("numpy: features.reshape(len(features), -1)"));
        };
        if array.fortran() {
            return Err(array.error("is stored column after column"));
        }
        self.columns.push((Extra::Features(width as usize), Values::Numbers(array)));
        Ok(())
    }

    /// Files of labels or of values, and of splits by name.
    ///
    /// # Errors
    /// If labels and values are given, or a file is no array of the right shape and type.
    pub fn answers(
        &mut self,
        labels: Option<&Path>,
        values: Option<&Path>,
        splits: &[(String, PathBuf)],
    ) -> Result<()> {
        let open = |path: &Path| ArrayReader::open(Source::npy(path)?);
        match (labels, values) {
            (Some(_), Some(_)) => {
                return Err(Error::usage("edges cannot have both labels and values")
                    .hint("classes are --edge-labels, numbers for a regression --edge-values"));
            }
            (Some(path), None) => self.labels(open(path)?)?,
            (None, Some(path)) => {
                let array = open(path)?;
                array.expect_vector()?;
                self.columns.push((Extra::Value, Values::Numbers(array)));
            }
            (None, None) => {}
        }
        let mut masks = Vec::new();
        for (name, path) in splits {
            let (number, array) = (split_number(name, Kind::Usage)?, open(path)?);
            array.expect_vector()?;
            if array.num() != Num::Bool {
                return Err(array
                    .error("a split of edges is a boolean for each edge")
                    .hint("numpy.save(path, mask), where mask[i] says whether edge i is in it"));
            }
            masks.push((number, array));
        }
        if !masks.is_empty() {
            self.columns.push((Extra::Split, Values::Masks(masks)));
        }
        Ok(())
    }

    fn labels(&mut self, array: ArrayReader) -> Result<()> {
        let column = match *array.shape() {
            [_, tasks] if tasks > 1 => {
                if array.fortran() {
                    return Err(array.error("is stored column after column"));
                }
                (Extra::Marks(tasks as usize), Values::Numbers(array))
            }
            [_] | [_, 1] => {
                let numbering = numbering(array.again()?)?;
                (Extra::Class, Values::Classes(array, numbering))
            }
            _ => {
                let shape = array.shape();
                return Err(array.error(format!("labels of shape {shape:?}, not [E] or [E, C]")));
            }
        };
        self.columns.push(column);
        Ok(())
    }

    /// Returns whether edges have no columns beside their endpoints.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Storage of the values.
    pub fn extras(&self) -> Vec<Extra> {
        self.columns.iter().map(|(extra, _)| *extra).collect()
    }

    /// Number of classes, or of labels in multi-label data.
    pub fn classes(&self) -> Option<u64> {
        self.columns.iter().find_map(|(extra, values)| match (extra, values) {
            (Extra::Marks(tasks), _) => Some(*tasks as u64),
            (_, Values::Classes(_, numbering)) => Some(numbering.count()),
            _ => None,
        })
    }

    /// The numbering of classes, if edges have some.
    pub fn numbering(&self) -> Option<&Numbering> {
        self.columns.iter().find_map(|(_, values)| match values {
            Values::Classes(_, numbering) => Some(numbering),
            _ => None,
        })
    }

    /// Split membership of the edges read so far.
    pub fn splits(&self) -> &EdgeSplits {
        &self.splits
    }

    /// Rejects arrays whose rows are not one per edge.
    pub fn check_rows(&self, edges: u64) -> Result<()> {
        for (extra, values) in &self.columns {
            let what = match extra {
                Extra::Weight(_) => "weights",
                Extra::Split => "booleans",
                Extra::Features(_) => "rows of features",
                _ => "labels",
            };
            let arrays: Vec<&ArrayReader> = match values {
                Values::Numbers(array) | Values::Classes(array, _) => vec![array],
                Values::Masks(masks) => masks.iter().map(|(_, array)| array).collect(),
            };
            for array in arrays {
                let rows = array.len() / extra.width().max(1) as u64;
                if matches!(extra, Extra::Weight(_)) {
                    array.expect_vector()?;
                }
                if rows != edges {
                    return Err(array.error(format!("{rows} {what} for {edges} edges")));
                }
            }
        }
        Ok(())
    }

    /// Appends the columns of the next `count` edges, column after column; `first` is their first
    /// row.
    ///
    /// # Errors
    /// For the first invalid value, with file and row; for an edge in two splits.
    pub fn read(&mut self, count: usize, first: u64, out: &mut Vec<f64>) -> Result<()> {
        let mut read = Vec::new();
        // Labels come before splits.
        let mut labeled = vec![true; count];
        for (extra, values) in &mut self.columns {
            match values {
                Values::Numbers(array) => {
                    let width = extra.width();
                    array.read_f64(count * width, &mut read)?;
                    for (i, &value) in read.iter().enumerate() {
                        let row = first + (i / width) as u64;
                        extra.check(value, || format!("{}: row {row}", array.name()))?;
                    }
                    let columns = (0..width).flat_map(|c| read.iter().skip(c).step_by(width));
                    out.extend(columns);
                }
                Values::Classes(array, numbering) => {
                    array.read_f64(count, &mut read)?;
                    for (i, &value) in read.iter().enumerate() {
                        let id = if value.is_nan() { -1 } else { value as i32 };
                        labeled[i] = id >= 0;
                        out.push(f64::from(numbering.class(id)));
                    }
                }
                Values::Masks(masks) => {
                    let found = splits(masks, count, first)?;
                    let found = found.iter().zip(&labeled);
                    out.extend(found.map(|(&s, &labeled)| f64::from(self.splits.keep(s, labeled))));
                }
            }
        }
        Ok(())
    }
}

/// Reads a whole array of labels to determine the numbering of its classes.
fn numbering(mut array: ArrayReader) -> Result<Numbering> {
    let mut checker = ClassChecker::new(None);
    let (mut values, mut row) = (Vec::new(), 0u64);
    while array.read_f64(1 << 16, &mut values)? {
        for &value in &values {
            let class = checker.class(value);
            class.map_err(|e| array.error(format!("row {row}: {e}")))?;
            row += 1;
        }
    }
    Ok(checker.numbering())
}

/// The numbers of the splits of the next edges.
fn splits(masks: &mut [(u8, ArrayReader)], count: usize, first: u64) -> Result<Vec<u8>> {
    let (mut found, mut read) = (vec![NO_SPLIT; count], Vec::new());
    for (number, array) in masks {
        array.read_f64(count, &mut read)?;
        let both = |(split, inside): (&u8, &f64)| *split != NO_SPLIT && *inside != 0.0;
        if let Some(i) = found.iter().zip(&read).position(both) {
            return Err(array
                .error(format!("row {}: the edge is in another split too", first + i as u64))
                .hint("splits must not overlap, or test figures mean nothing"));
        }
        let inside = found.iter_mut().zip(&read).filter(|(_, inside)| **inside != 0.0);
        inside.for_each(|(split, _)| *split = *number);
    }
    Ok(found)
}
