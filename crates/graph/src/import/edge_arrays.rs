//! Arrays with a row for each edge of a type.

use std::path::{Path, PathBuf};

use super::array::{ArrayReader, Num};
use super::columns::ClassChecker;
use super::extra::{Extra, NO_SPLIT, split_number};
use super::source::Source;
use super::weights::WeightType;
use crate::error::{Error, Kind, Result};

/// What goes along with the edges of a type, read beside them a stretch at a time.
#[derive(Default)]
pub(super) struct EdgeArrays(Vec<(Extra, Values)>);

enum Values {
    Numbers(ArrayReader),
    Classes(ArrayReader, ClassChecker),
    /// Numbers of splits, and which edges are in them.
    Masks(Vec<(u8, ArrayReader)>),
}

impl EdgeArrays {
    /// A weight for each edge.
    pub fn weights(&mut self, array: ArrayReader, stored: WeightType) {
        self.0.push((Extra::Weight(stored), Values::Numbers(array)));
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
                return Err(Error::usage("edges are given both labels and values")
                    .hint("classes are --edge-labels, numbers for a regression --edge-values"));
            }
            (Some(path), None) => self.labels(open(path)?)?,
            (None, Some(path)) => {
                let array = open(path)?;
                array.expect_vector()?;
                self.0.push((Extra::Value, Values::Numbers(array)));
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
            self.0.push((Extra::Split, Values::Masks(masks)));
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
            [_] | [_, 1] => (Extra::Class, Values::Classes(array, ClassChecker::new(None))),
            _ => {
                let shape = array.shape();
                return Err(array.error(format!("labels of shape {shape:?}, not [E] or [E, C]")));
            }
        };
        self.0.push(column);
        Ok(())
    }

    /// Whether edges carry nothing but their ends.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How the values are stored.
    pub fn extras(&self) -> Vec<Extra> {
        self.0.iter().map(|(extra, _)| *extra).collect()
    }

    /// Number of classes, or of labels that may hold, of what was read.
    pub fn classes(&self) -> Option<u64> {
        self.0.iter().find_map(|(extra, values)| match (extra, values) {
            (Extra::Marks(tasks), _) => Some(*tasks as u64),
            (_, Values::Classes(_, checker)) => Some(checker.count()),
            _ => None,
        })
    }

    /// Refuses arrays that have not a row for each of so many edges.
    pub fn check_rows(&self, edges: u64) -> Result<()> {
        for (extra, values) in &self.0 {
            let what = match extra {
                Extra::Weight(_) => "weights",
                Extra::Split => "booleans",
                _ => "labels",
            };
            let arrays: Vec<&ArrayReader> = match values {
                Values::Numbers(array) | Values::Classes(array, _) => vec![array],
                Values::Masks(masks) => masks.iter().map(|(_, array)| array).collect(),
            };
            for array in arrays {
                let rows = array.len() / extra.width() as u64;
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

    /// Appends what the next `count` edges carry, column after column; `first` is their first row.
    ///
    /// # Errors
    /// For the first bad value, with file and row; for an edge in two splits.
    pub fn read(&mut self, count: usize, first: u64, out: &mut Vec<f64>) -> Result<()> {
        let mut read = Vec::new();
        for (extra, values) in &mut self.0 {
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
                Values::Classes(array, checker) => {
                    array.read_f64(count, &mut read)?;
                    for (&value, row) in read.iter().zip(first..) {
                        let class = checker.class(value);
                        let class = class.map_err(|e| array.error(format!("row {row}: {e}")))?;
                        out.push(f64::from(class));
                    }
                }
                Values::Masks(masks) => out.extend(splits(masks, count, first)?),
            }
        }
        Ok(())
    }
}

/// The numbers of the splits of the next edges.
fn splits(masks: &mut [(u8, ArrayReader)], count: usize, first: u64) -> Result<Vec<f64>> {
    let (mut found, mut read) = (vec![f64::from(NO_SPLIT); count], Vec::new());
    for (number, array) in masks {
        array.read_f64(count, &mut read)?;
        let both = |(split, inside): (&f64, &f64)| *split != f64::from(NO_SPLIT) && *inside != 0.0;
        if let Some(i) = found.iter().zip(&read).position(both) {
            return Err(array
                .error(format!("row {}: the edge is in another split too", first + i as u64))
                .hint("splits must not overlap, or test figures mean nothing"));
        }
        let inside = found.iter_mut().zip(&read).filter(|(_, inside)| **inside != 0.0);
        inside.for_each(|(split, _)| *split = f64::from(*number));
    }
    Ok(found)
}
