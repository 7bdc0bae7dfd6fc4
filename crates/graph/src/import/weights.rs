//! Edge weights in the requested type.

use std::fmt;
use std::str::FromStr;

use gnarl_common::{Error, Result};
use half::{bf16, f16};

use crate::column::ColumnSpec;
use crate::manifest::Triple;
use crate::writer::{ColumnWriter, DatasetWriter};

/// The storage type of edge weights. In 16 bits they take half the memory, and draws are by
/// the rounded weight: to 11 bits of precision below 65,520 (`f16`), or to 8 bits with the range of
/// single precision (`bf16`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum WeightType {
    #[default]
    F32,
    F16,
    BF16,
}

impl fmt::Display for WeightType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
        })
    }
}

impl FromStr for WeightType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::F32, Self::F16, Self::BF16];
        all.into_iter().find(|known| known.to_string() == text).ok_or_else(|| {
            Error::usage(format!("unknown type of edge weights '{text}'"))
                .hint("use f32, f16 or bf16")
        })
    }
}

impl WeightType {
    /// The stored value of a weight.
    fn stored(self, weight: f64) -> f32 {
        match self {
            Self::F32 => weight as f32,
            Self::F16 => f16::from_f32(weight as f32).to_f32(),
            Self::BF16 => bf16::from_f32(weight as f32).to_f32(),
        }
    }

    /// Rejects a weight, found at `place`, that is missing or negative, or that the type cannot
    /// hold: one that is not finite, before or after rounding; or that is 0 only after rounding,
    /// since its edge would never be drawn.
    pub(super) fn check(self, weight: f64, place: impl FnOnce() -> String) -> Result<()> {
        if weight.is_nan() {
            return Err(Error::invalid(format!(
                "{}: the weight is missing (empty or NaN)",
                place()
            )));
        }
        if weight < 0.0 {
            let what = format!("{}: the weight {weight} is negative", place());
            return Err(Error::invalid(what).hint("edges are drawn in proportion to their weights"));
        }
        let stored = self.stored(weight);
        if stored.is_finite() && (stored == 0.0) == (weight == 0.0) {
            return Ok(());
        }
        if !weight.is_finite() {
            return Err(Error::invalid(format!("{}: the weight is {weight}", place())));
        }
        Err(Error::invalid(format!("{}: the weight {weight} is {stored} in {self}", place())).hint(
            "scale all weights, samplers see their ratios only, or give another --weight-type",
        ))
    }
}

/// The column `weight` of an edge type, being written.
pub(super) enum WeightColumn {
    F32(ColumnWriter<f32>),
    F16(ColumnWriter<f16>),
    BF16(ColumnWriter<bf16>),
}

impl WeightColumn {
    pub fn create(writer: &DatasetWriter, triple: &Triple, stored: WeightType) -> Result<Self> {
        Ok(match stored {
            WeightType::F32 => Self::F32(writer.edge_column(triple, "weight", &[])?),
            WeightType::F16 => Self::F16(writer.edge_column(triple, "weight", &[])?),
            WeightType::BF16 => Self::BF16(writer.edge_column(triple, "weight", &[])?),
        })
    }

    /// Appends weights that [`WeightType::check`] has accepted.
    pub fn push(&mut self, weights: &[f32]) -> Result<()> {
        let all = weights.iter().copied();
        match self {
            Self::F32(column) => column.push(weights),
            Self::F16(column) => column.push(&all.map(f16::from_f32).collect::<Vec<_>>()),
            Self::BF16(column) => column.push(&all.map(bf16::from_f32).collect::<Vec<_>>()),
        }
    }

    pub fn finish(self) -> Result<ColumnSpec> {
        match self {
            Self::F32(column) => column.finish(),
            Self::F16(column) => column.finish(),
            Self::BF16(column) => column.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_do_not_fit_are_told() {
        let text = |stored: WeightType, weight| {
            let error = stored.check(weight, || "w.csv: line 7".into()).err()?;
            Some(error.to_string())
        };
        for stored in [WeightType::F32, WeightType::F16, WeightType::BF16] {
            for weight in [0.0, -0.0, 1.0, 65_504.0, 65_519.0, 1e-4] {
                assert_eq!(text(stored, weight), None, "{weight} in {stored}");
            }
            assert_eq!(stored.to_string().parse::<WeightType>().unwrap(), stored);
            let message = text(stored, f64::NAN).unwrap();
            assert!(message.contains("w.csv: line 7: the weight is missing"), "{message}");
            let message = text(stored, -3.5).unwrap();
            assert!(message.contains("w.csv: line 7: the weight -3.5 is negative"), "{message}");
        }
        for (stored, weight, told) in [
            (WeightType::F16, 65_520.0, "the weight 65520 is inf in f16"),
            (WeightType::F16, 1e-8, "the weight 0.00000001 is 0 in f16"),
            (WeightType::F32, 1e39, "is inf in f32"),
            (WeightType::BF16, 1e-45, "is 0 in bf16"),
        ] {
            let message = text(stored, weight).unwrap();
            assert!(message.contains(told) && message.contains("--weight-type"), "{message}");
        }
        assert!("f64".parse::<WeightType>().unwrap_err().to_string().contains("f32, f16 or bf16"));
    }
}
