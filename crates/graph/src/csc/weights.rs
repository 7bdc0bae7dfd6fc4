//! Edge weights in the order of the lists, so that samplers read them in the order of sources.

use gnarl_common::{DType, Error, Result};
use half::{bf16, f16};

use super::job::CscJob;
use crate::column::ColumnSpec;
use crate::writer::ColumnWriter;

/// Writes `csc.weight` in the type of the column `weight`.
pub(super) enum ListWeights {
    F32(ColumnWriter<f32>),
    F16(ColumnWriter<f16>),
    BF16(ColumnWriter<bf16>),
}

impl ListWeights {
    /// # Errors
    /// If the weights are of a type that no sampler reads.
    pub fn create(job: &CscJob<'_>, spec: &ColumnSpec) -> Result<Self> {
        let dir = job.dir;
        let stem = job.stem;
        let name = "csc.weight";
        Ok(match spec.dtype {
            DType::F32 => Self::F32(ColumnWriter::create(dir, stem, name, &[])?),
            DType::F16 => Self::F16(ColumnWriter::create(dir, stem, name, &[])?),
            DType::BF16 => Self::BF16(ColumnWriter::create(dir, stem, name, &[])?),
            other => {
                let message = format!("{}: edge weights of type {other}", spec.file);
                return Err(Error::invalid(message).hint("store them as f32, f16 or bf16"));
            }
        })
    }

    /// Appends weights by their bits.
    pub fn write(&mut self, bits: &[u32]) -> Result<()> {
        let half = bits.iter().map(|&bits| bits as u16);
        match self {
            Self::F32(column) => {
                column.push(&bits.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>())
            }
            Self::F16(column) => column.push(&half.map(f16::from_bits).collect::<Vec<_>>()),
            Self::BF16(column) => column.push(&half.map(bf16::from_bits).collect::<Vec<_>>()),
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
