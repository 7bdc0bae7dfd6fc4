//! Rows collected for one chunk of a column.

use std::ops::Range;

use crate::export::table::{Cells, Kind};

/// The collected cells.
#[derive(Debug)]
pub(super) enum Chunk {
    Integers(Vec<i64>),
    /// `[rows, width]`; a width of 1 for single numbers.
    Floats {
        values: Vec<f32>,
        width: usize,
    },
    /// Texts one after the other; text i ends at `ends[i + 1]`, and `ends[0]` is 0.
    Texts {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    },
}

impl Chunk {
    /// An empty chunk of a column of `kind`.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integers(Vec::new()),
            Kind::Float => Self::Floats { values: Vec::new(), width: 1 },
            Kind::List(width) => Self::Floats { values: Vec::new(), width },
            Kind::Text => Self::Texts { bytes: Vec::new(), ends: vec![0] },
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Floats { values, width } => values.len() / width,
            Self::Texts { ends, .. } => ends.len() - 1,
        }
    }

    /// Collects the given rows of `cells`.
    pub fn extend(&mut self, cells: Cells<'_>, rows: Range<usize>) {
        match (self, cells) {
            (Self::Integers(all), Cells::Integers(values)) => all.extend_from_slice(&values[rows]),
            (Self::Floats { values: all, width }, Cells::Floats(values) | Cells::Lists(values)) => {
                all.extend_from_slice(&values[rows.start * *width..rows.end * *width]);
            }
            (Self::Texts { bytes, ends }, Cells::Texts(texts)) => {
                for text in &texts[rows] {
                    bytes.extend_from_slice(text.as_bytes());
                    ends.push(bytes.len());
                }
            }
            _ => unreachable!("cells were compared with columns"),
        }
    }

    /// Fills up with zeros or empty texts: chunks of an array are stored in one size, the last one too.
    pub fn pad(&mut self, rows: usize) {
        match self {
            Self::Integers(values) => values.resize(rows, 0),
            Self::Floats { values, width } => values.resize(rows * *width, 0.0),
            Self::Texts { bytes, ends } => ends.resize(rows + 1, bytes.len()),
        }
    }
}
