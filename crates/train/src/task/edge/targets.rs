//! Labels of edges.

use gnarl_common::{DType, Error, Result};
use gnarl_graph::{Column, Labels};
use half::{bf16, f16};

/// An open column of labels.
pub(super) enum LabelColumn {
    /// Classes, negative for none, and their number.
    Classes(Vec<i64>, usize),
    /// Rows of 0 and 1.
    Marks(gnarl_common::Buf<u8>, usize),
    /// Numbers.
    Values(Vec<f32>),
}

impl LabelColumn {
    /// Opens labels as classes; `stated` is their number, if the dataset has it.
    ///
    /// # Errors
    /// If they are no classes.
    pub fn classes(column: &Column, stated: Option<u64>) -> Result<Self> {
        let spec = column.spec();
        if let ([_, tasks], DType::U8) = (&spec.shape[..], spec.dtype) {
            return Ok(Self::Marks(column.values()?, *tasks as usize));
        }
        let classes: Vec<i64> = match (spec.shape.len(), spec.dtype) {
            (1, DType::I32) => column.values::<i32>()?.iter().map(|&c| c.into()).collect(),
            (1, DType::I64) => column.values::<i64>()?.to_vec(),
            (1, DType::U8) => column.values::<u8>()?.iter().map(|&c| c.into()).collect(),
            (1, DType::U32) => column.values::<u32>()?.iter().map(|&c| c.into()).collect(),
            _ => {
                let (name, dtype) = (&spec.name, spec.dtype);
                return Err(Error::invalid(format!(
                    "column '{name}': expected classes, found {dtype}"
                ))
                .hint("for numbers set task.kind to 'edge-regression'"));
            }
        };
        let largest = classes.iter().copied().max().unwrap_or(-1);
        let limit = stated.map_or(i64::from(i32::MAX), |count| count as i64);
        if largest >= limit {
            let row = classes.iter().position(|&class| class == largest).unwrap_or(0);
            return Err(Error::invalid(format!(
                "column '{}': row {row}: class {largest} is not below their number, {limit}",
                spec.name
            )));
        }
        let count = stated.map_or(largest + 1, |count| count as i64);
        Ok(Self::Classes(classes, count.max(0) as usize))
    }

    /// Opens labels as numbers.
    ///
    /// # Errors
    /// If they are none, or not finite, naming the row.
    pub fn values(column: &Column) -> Result<Self> {
        let spec = column.spec();
        let values: Vec<f32> = match (spec.shape.len(), spec.dtype) {
            (1, DType::F32) => column.values::<f32>()?.to_vec(),
            (1, DType::F64) => column.values::<f64>()?.iter().map(|&x| x as f32).collect(),
            (1, DType::F16) => column.values::<f16>()?.iter().map(|x| x.to_f32()).collect(),
            (1, DType::BF16) => column.values::<bf16>()?.iter().map(|x| x.to_f32()).collect(),
            _ => {
                let (name, dtype) = (&spec.name, spec.dtype);
                return Err(Error::invalid(format!(
                    "column '{name}': expected numbers, found {dtype}"
                ))
                .hint("for classes set task.kind to 'edge-classification'"));
            }
        };
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(Self::Values(values)),
            Some(row) => Err(Error::invalid(format!(
                "column '{}': row {row}: the label is {}",
                spec.name, values[row]
            ))),
        }
    }

    /// Returns whether the edge in a row has a label.
    pub fn has(&self, row: usize) -> bool {
        match self {
            Self::Classes(classes, _) => classes[row] >= 0,
            Self::Marks(..) | Self::Values(_) => true,
        }
    }

    /// The class of the edge in a row; -1 where there is none.
    pub fn class(&self, row: u64) -> i32 {
        match self {
            Self::Classes(classes, _) => classes[row as usize] as i32,
            Self::Marks(..) | Self::Values(_) => -1,
        }
    }

    /// Appends 0 or 1 for each label of the edge in a row.
    pub fn marks(&self, row: u64, out: &mut Vec<u8>) {
        if let Self::Marks(values, tasks) = self {
            out.extend_from_slice(&values[row as usize * tasks..][..*tasks]);
        }
    }

    /// The number of the edge in a row; NaN where there is none.
    pub fn value(&self, row: u64) -> f32 {
        match self {
            Self::Values(values) => values[row as usize],
            Self::Classes(..) | Self::Marks(..) => f32::NAN,
        }
    }

    /// The labels of some rows.
    pub fn at(&self, rows: &[u64]) -> Labels {
        let rows = rows.iter().map(|&row| row as usize);
        match self {
            Self::Classes(classes, count) => {
                let classes: Vec<i32> = rows.map(|row| classes[row] as i32).collect();
                Labels::Single { classes: classes.into(), count: *count }
            }
            Self::Marks(values, tasks) => {
                let values = rows.flat_map(|row| &values[row * tasks..(row + 1) * tasks]);
                let values: Vec<u8> = values.copied().collect();
                Labels::Multi { values: values.into(), tasks: *tasks }
            }
            Self::Values(values) => {
                let values: Vec<f32> = rows.map(|row| values[row]).collect();
                Labels::Values { values: values.into() }
            }
        }
    }
}
