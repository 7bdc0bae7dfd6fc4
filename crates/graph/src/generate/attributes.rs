//! Features, labels and splits of generated nodes: each a pure function of the node, written in
//! chunks of nodes, so that any amount streams to disk.

use std::ops::Range;

use gnarl_common::rng::{Key, mix};
use gnarl_common::{DType, Element, Error, Result};
use half::{bf16, f16};
use rayon::prelude::*;
use serde::Serialize;

use super::permute::Permutation;
use crate::writer::DatasetWriter;

/// Options of node attributes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attributes {
    /// Width of the features; 0 for none.
    pub features: usize,
    /// Type of the features: f32, f16 or bf16.
    pub dtype: DType,
    /// Number of label classes; 0 for no labels.
    pub classes: u32,
    /// Standard deviation of the features around their class's centroid, whose length is 1 on
    /// average. At 1, single rows say little and the mean of a node's neighbors says much.
    pub noise: f64,
    /// Share of the nodes in the training split.
    pub train: f64,
    /// Share in the validation split.
    pub valid: f64,
    /// Share in the test split.
    pub test: f64,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            features: 0,
            dtype: DType::F32,
            classes: 0,
            noise: 1.0,
            train: 0.0,
            valid: 0.0,
            test: 0.0,
        }
    }
}

/// Chunk size of a task, independent of the number of threads.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_NODES: u64 = 1 << 16;

impl Attributes {
    /// Checks that the options are valid.
    pub(crate) fn check(&self) -> Result<()> {
        let shares = [self.train, self.valid, self.test];
        if !shares.iter().all(|s| (0.0..=1.0).contains(s)) || shares.iter().sum::<f64>() > 1.000_001
        {
            return Err(Error::usage(format!(
                "invalid split shares {} + {} + {}",
                self.train, self.valid, self.test
            ))
            .hint("each must be in 0..1 and their sum at most 1"));
        }
        if !matches!(self.dtype, DType::F32 | DType::F16 | DType::BF16) {
            return Err(Error::usage(format!("features cannot be generated as {}", self.dtype))
                .hint("choose f32, f16 or bf16"));
        }
        if !self.noise.is_finite() || self.noise < 0.0 {
            return Err(Error::usage(format!(
                "invalid noise '{}': expected a standard deviation of at least 0",
                self.noise
            )));
        }
        Ok(())
    }

    /// Writes the columns of the node type `ntype` with `count` nodes, of which node `v` is of
    /// class `class(v)`.
    pub(crate) fn write(
        &self,
        writer: &mut DatasetWriter,
        ntype: &str,
        count: u64,
        key: Key,
        class: &(impl Fn(u64) -> u32 + Sync),
    ) -> Result<()> {
        self.write_rows(writer, ntype, count, key, class)?;
        if self.classes > 0 {
            let mut column = writer.node_column::<i32>(ntype, "label", &[])?;
            let fill = |nodes: Range<u64>, out: &mut Vec<i32>| {
                out.extend(nodes.map(|v| class(v) as i32));
            };
            in_order(count, CHUNK_NODES, fill, |labels| column.push(labels))?;
            let spec = column.finish()?;
            let node_type = writer.node_type(ntype)?;
            node_type.classes = Some(u64::from(self.classes));
            node_type.columns.push(spec);
        }
        self.write_splits(writer, ntype, count, key.with(2))
    }

    /// Writes the features alone.
    pub(crate) fn write_rows(
        &self,
        writer: &mut DatasetWriter,
        ntype: &str,
        count: u64,
        key: Key,
        class: &(impl Fn(u64) -> u32 + Sync),
    ) -> Result<()> {
        match (self.features, self.dtype) {
            (0, _) => Ok(()),
            (_, DType::F16) => self.write_features(writer, ntype, count, key, class, f16::from_f32),
            (_, DType::BF16) => {
                self.write_features(writer, ntype, count, key, class, bf16::from_f32)
            }
            _ => self.write_features(writer, ntype, count, key, class, |x: f32| x),
        }
    }

    fn write_features<T: Element>(
        &self,
        writer: &mut DatasetWriter,
        ntype: &str,
        count: u64,
        key: Key,
        class: &(impl Fn(u64) -> u32 + Sync),
        convert: impl Fn(f32) -> T + Sync,
    ) -> Result<()> {
        let width = self.features;
        let centroids = self.centroids(key.with(0));
        let noise = key.with(1);
        let chunk = (CHUNK_BYTES / (width * size_of::<T>())).max(1) as u64;
        let fill = |nodes: Range<u64>, out: &mut Vec<T>| {
            for v in nodes {
                let first = if self.classes > 0 { class(v) as usize * width } else { 0 };
                let row = noise.with(v).bits();
                let centroid = centroids[first..first + width].iter().enumerate();
                out.extend(
                    centroid.map(|(i, c)| convert(c + self.noise as f32 * bell(row, i as u64))),
                );
            }
        };
        let mut column = writer.node_column::<T>(ntype, "features", &[width as u64])?;
        in_order(count, chunk, fill, |rows| column.push(rows))?;
        let spec = column.finish()?;
        writer.node_type(ntype)?.columns.push(spec);
        Ok(())
    }

    /// A random direction for each class, or one row of zeros without classes.
    fn centroids(&self, key: Key) -> Vec<f32> {
        let scale = 1.0 / (self.features as f64).sqrt();
        match self.classes as usize {
            0 => vec![0.0; self.features],
            classes => (0..classes * self.features)
                .map(|i| (key.normal(i as u64) * scale) as f32)
                .collect(),
        }
    }

    /// Assigns nodes to splits by their position in a random order: the shares are exact.
    fn write_splits(
        &self,
        writer: &mut DatasetWriter,
        ntype: &str,
        count: u64,
        key: Key,
    ) -> Result<()> {
        let order = Permutation::new(count, key);
        let mut from = 0.0;
        for (name, share) in [("train", self.train), ("valid", self.valid), ("test", self.test)] {
            let place = |share: f64| ((share * count as f64).round() as u64).min(count);
            let places = place(from)..place(from + share);
            from += share;
            if places.is_empty() {
                continue;
            }
            let mut column = writer.split_column(ntype, name)?;
            let fill = |nodes: Range<u64>, out: &mut Vec<u64>| {
                out.extend(nodes.filter(|&v| places.contains(&order.apply(v))));
            };
            in_order(count, CHUNK_NODES, fill, |ids| column.push(ids))?;
            let spec = column.finish()?;
            writer.node_type(ntype)?.columns.push(spec);
        }
        Ok(())
    }
}

/// The sum of four uniform numbers, scaled to mean 0 and variance 1: close enough to a normal for
/// noise, the same on every machine, and fast enough to keep up with a disk.
#[inline(always)]
fn bell(row: u64, column: u64) -> f32 {
    let bits = mix(row.wrapping_add(column.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    // Each 16-bit word has mean 32767.5 and variance 2^32 / 12.
    const SCALE: f32 = 1.732_050_8 / 65536.0;
    (sum as f32 - 131_070.0) * SCALE
}

/// Fills chunks of `0..count` by all threads, a few at a time, and passes them on in order.
fn in_order<T: Send>(
    count: u64,
    chunk: u64,
    fill: impl Fn(Range<u64>, &mut Vec<T>) + Sync,
    mut sink: impl FnMut(&[T]) -> Result<()>,
) -> Result<()> {
    let mut buffers: Vec<Vec<T>> = Vec::new();
    buffers.resize_with(4 * rayon::current_num_threads(), Vec::new);
    let mut start = 0;
    while start < count {
        buffers.par_iter_mut().enumerate().for_each(|(i, buffer)| {
            let first = (start + i as u64 * chunk).min(count);
            buffer.clear();
            fill(first..(first + chunk).min(count), buffer);
        });
        for buffer in &buffers {
            sink(buffer)?;
        }
        start += buffers.len() as u64 * chunk;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_mean_0_and_variance_1() {
        let n = 200_000;
        let row = Key::new(5).bits();
        let draws: Vec<f64> = (0..n).map(|i| f64::from(bell(row, i))).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn impossible_attributes_are_refused() {
        let message = |a: Attributes| a.check().unwrap_err().to_string();
        let base = Attributes::default;
        assert!(
            message(Attributes { train: 0.8, test: 0.3, ..base() })
                .contains("invalid split shares")
        );
        assert!(message(Attributes { dtype: DType::U8, ..base() }).contains("as u8"));
        assert!(message(Attributes { noise: f64::NAN, ..base() }).contains("deviation"));
    }
}
