//! Embeddings on disk: one safetensors file with ids, rows, optimizer state and steps.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use gnarl_common::{Context, Error, Result, ResultExt};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};
use tempfile::NamedTempFile;

use super::Embedding;
use crate::RowSource;

/// Metadata key of the optimizer's name.
const OPTIMIZER: &str = "optimizer";

impl Embedding {
    /// Writes the table to `path`, which is replaced entirely or not at all.
    ///
    /// # Errors
    /// If the file cannot be written; the one before stays.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.write(path).while_doing(|| format!("writing embeddings to {}", path.display()))
    }

    /// Restores the file of [`Embedding::save`] into a table with equal ids, width and optimizer,
    /// so that training continues without a difference. The file is read into memory meanwhile.
    ///
    /// # Errors
    /// If the file is damaged or belongs to another table; this one has not changed then.
    pub fn load(&mut self, path: &Path) -> Result<()> {
        let bytes = std::fs::read(path).at(path)?;
        self.read(&bytes).while_doing(|| format!("reading embeddings from {}", path.display()))
    }

    /// Shapes of the tensors, in the order of [`Embedding::write`].
    fn shapes(&self) -> [(&'static str, Dtype, Vec<usize>); 4] {
        let (rows, width) = (self.ids.len(), self.width());
        [
            ("ids", Dtype::U64, vec![rows]),
            ("rows", Dtype::F32, vec![rows, width]),
            ("state", Dtype::F32, vec![rows, self.optimizer.state_size(), width]),
            ("steps", Dtype::U32, vec![rows]),
        ]
    }

    fn write(&self, path: &Path) -> Result<()> {
        let parts: [&[u8]; 4] = [
            cast_slice(&self.ids),
            cast_slice(&self.values),
            cast_slice(&self.state),
            cast_slice(&self.steps),
        ];
        let mut views = Vec::new();
        for ((name, dtype, shape), bytes) in self.shapes().into_iter().zip(parts) {
            views.push((name, TensorView::new(dtype, shape, bytes).map_err(damaged)?));
        }
        let metadata = HashMap::from([(OPTIMIZER.to_string(), self.optimizer.name().to_string())]);
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let tmp = NamedTempFile::new_in(dir.unwrap_or(Path::new("."))).at(path)?.into_temp_path();
        safetensors::serialize_to_file(views, Some(metadata), &tmp)
            .map_err(|e| unwritten(e, path))?;
        File::open(&tmp).and_then(|file| file.sync_all()).at(&tmp)?;
        tmp.persist(path).map_err(|e| e.error).at(path)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let saved = metadata.metadata().as_ref().and_then(|m| m.get(OPTIMIZER));
        let saved = saved.ok_or_else(|| Error::invalid("the file names no optimizer"))?;
        if saved != self.optimizer.name() {
            return Err(Error::invalid(format!(
                "invalid optimizer '{saved}': expected '{}'",
                self.optimizer.name()
            )));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let mut parts = Vec::new();
        for (name, dtype, shape) in self.shapes() {
            parts.push(tensor(&tensors, name, dtype, &shape)?);
        }
        self.same_ids(parts[0])?;
        copy(&mut self.values, parts[1]);
        copy(&mut self.state, parts[2]);
        copy(&mut self.steps, parts[3]);
        Ok(())
    }

    fn same_ids(&self, bytes: &[u8]) -> Result<()> {
        let mut ids = vec![0u64; self.ids.len()];
        copy(&mut ids, bytes);
        match ids.iter().zip(&self.ids).position(|(saved, id)| saved != id) {
            None => Ok(()),
            Some(row) => Err(Error::invalid(format!(
                "row {row} belongs to node {}, expected {}",
                ids[row], self.ids[row]
            ))
            .hint("the file belongs to another part or dataset")),
        }
    }
}

/// The bytes of tensor `name`, if it is of that type and shape.
fn tensor<'a>(
    tensors: &SafeTensors<'a>,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<&'a [u8]> {
    let view = tensors.tensor(name).map_err(damaged)?;
    if view.dtype() != dtype || view.shape() != shape {
        return Err(Error::invalid(format!(
            "tensor '{name}': expected {dtype:?} of shape {shape:?}, found {:?} of shape {:?}",
            view.dtype(),
            view.shape()
        ))
        .hint("the file belongs to an embedding of another size"));
    }
    Ok(view.data())
}

/// Copies by bytes, as tensors in a file need not be aligned.
fn copy<T: Pod>(to: &mut [T], from: &[u8]) {
    cast_slice_mut::<T, u8>(to).copy_from_slice(from);
}

fn damaged(e: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the file is damaged: {e}"))
}

fn unwritten(e: SafeTensorError, path: &Path) -> Error {
    match e {
        SafeTensorError::IoError(e) => Error::io(path, e),
        other => Error::invalid(other.to_string()),
    }
}
