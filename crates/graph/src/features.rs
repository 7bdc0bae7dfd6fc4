//! Node features and labels as stored.

use gnarl_common::{Buf, DType};

use crate::column::Column;

/// The features of a node type.
#[derive(Debug, Clone)]
pub enum Features {
    /// One row of values per node, f32, f16, bf16 or u8.
    Dense(Column),
    /// Few non-zero values in each row (bag of words).
    Csr {
        /// `rows + 1` offsets.
        indptr: Buf<u64>,
        /// Column of each value, ascending within a row.
        indices: Buf<u32>,
        /// The values.
        values: Buf<f32>,
        /// Columns of the matrix.
        width: usize,
    },
}

impl Features {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(column) => column.rows(),
            Self::Csr { indptr, .. } => indptr.len() - 1,
        }
    }

    /// Feature width.
    pub fn width(&self) -> usize {
        match self {
            Self::Dense(column) => column.width(),
            Self::Csr { width, .. } => *width,
        }
    }

    /// Type of the stored values.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Dense(column) => column.spec().dtype,
            Self::Csr { .. } => DType::F32,
        }
    }
}

/// The labels of a node type.
#[derive(Debug, Clone)]
pub enum Labels {
    /// One class for each node; -1 where there is none.
    Single {
        /// Class of each node.
        classes: Buf<i32>,
        /// Number of classes.
        count: usize,
    },
    /// Any number of `tasks` labels hold for a node.
    Multi {
        /// 0 or 1, `nodes × tasks`.
        values: Buf<u8>,
        /// Number of labels.
        tasks: usize,
    },
    /// One number for each node; NaN where there is none.
    Values {
        /// Number of each node.
        values: Buf<f32>,
    },
}

impl Labels {
    /// Labels of so many nodes, none of which is known, of the kind of these.
    pub fn unknown(&self, nodes: usize) -> Self {
        match self {
            Self::Single { count, .. } => {
                Self::Single { classes: vec![-1; nodes].into(), count: *count }
            }
            Self::Multi { tasks, .. } => {
                Self::Multi { values: vec![0; nodes * tasks].into(), tasks: *tasks }
            }
            Self::Values { .. } => Self::Values { values: vec![f32::NAN; nodes].into() },
        }
    }

    /// Width of a model's output for these labels.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Single { count, .. } => *count,
            Self::Multi { tasks, .. } => *tasks,
            Self::Values { .. } => 1,
        }
    }

    /// True if there is a label for a node; false for nodes beyond the last. Where several may hold, all nodes
    /// count as labeled.
    pub fn has(&self, node: usize) -> bool {
        match self {
            Self::Single { classes, .. } => classes.get(node).is_some_and(|&class| class >= 0),
            Self::Multi { values, tasks } => node < values.len() / (*tasks).max(1),
            Self::Values { values } => values.get(node).is_some_and(|value| !value.is_nan()),
        }
    }
}
