//! Feature columns.

use std::fmt;
use std::str::FromStr;

use gnarl_common::{Error, Result};

/// The transformation of a feature column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transform {
    /// No change.
    #[default]
    None,
    /// Numbers less their mean, over their standard deviation.
    Standard,
    /// Numbers from 0, the smallest, to 1, the largest.
    MaxMin,
    /// One column of 0 and 1 per value, in order of appearance; all 0 where the value is missing.
    Categorical,
}

/// The replacement of missing numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Impute {
    /// The mean of the column's other numbers.
    Mean,
    /// Their median: the middle one, of two in the middle their mean.
    Median,
    /// A number.
    Value(f64),
}

impl FromStr for Impute {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mean" => Ok(Self::Mean),
            "median" => Ok(Self::Median),
            number => match number.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Self::Value(value)),
                _ => Err(Error::usage(format!("invalid value '{text}' for missing numbers"))
                    .hint("expected mean, median or a number")),
            },
        }
    }
}

impl fmt::Display for Impute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("the mean"),
            Self::Median => f.write_str("the median"),
            Self::Value(_) => f.write_str("as asked"),
        }
    }
}

/// A column of features.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feature {
    /// Its name; `x*` stands for all columns that start with `x`.
    pub column: String,
    /// Transformation.
    pub transform: Transform,
    /// Replacement of missing numbers, before the transform; an error by default.
    pub impute: Option<Impute>,
    /// Add a column of 0 and 1 behind it that marks missing numbers, if there are any.
    pub indicator: bool,
}

impl From<&str> for Feature {
    fn from(column: &str) -> Self {
        Self { column: column.into(), ..Self::default() }
    }
}

impl From<String> for Feature {
    fn from(column: String) -> Self {
        Self { column, ..Self::default() }
    }
}
