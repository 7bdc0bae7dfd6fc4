//! Files of `torch.save`: tensors and arrays of numbers in dicts, lists and tuples.
//!
//! Such a file is a zip archive of a pickle and of the numbers of its tensors. A pickle is a
//! program for a small stack machine that may call any function of Python. This reader implements
//! only the few instructions and the few names that tensors and arrays need, calls nothing, and
//! rejects everything else by name. Libraries that read pickles do not support torch's persistent
//! ids.

mod archive;
mod numbers;
mod objects;
mod pickle;

use std::path::{Path, PathBuf};

use super::errors::over_budget;
use archive::Archive;
use gnarl_common::{Error, Result};
use numbers::{Array, Values};
use objects::{Objects, Value};
use pickle::Machine;

/// A file of `torch.save`. Numbers are read on access.
#[derive(Debug)]
pub struct TorchFile {
    path: PathBuf,
    archive: Archive,
    made: Objects,
    root: Value,
    memory: u64,
}

impl TorchFile {
    /// Opens a file in the zip format, which torch writes since 1.6; its pickle, and each accessed
    /// array, may have up to `memory` bytes.
    ///
    /// # Errors
    /// If the file is damaged, of another format, or has anything that is not made of tensors, arrays of
    /// numbers, dicts with strings as keys, lists, tuples, strings and integers; nothing in it is run.
    pub fn open(path: &Path, memory: u64) -> Result<Self> {
        let archive = Archive::open(path)?;
        let (size, name) = (archive.size("data.pkl")?, path.display());
        if size > memory {
            return Err(over_budget(memory, &format!("{name}: a pickle of {size} bytes")));
        }
        let machine = Machine::new(archive.read("data.pkl")?, &archive, memory);
        let (made, root) = machine.run().map_err(|wrong| wrong.of(&name.to_string()))?;
        Ok(Self { path: path.into(), archive, made, root, memory })
    }

    /// The object that was saved.
    pub fn root(&self) -> Item<'_> {
        Item { file: self, value: self.root, name: self.path.display().to_string() }
    }
}

/// An object in a file.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    file: &'a TorchFile,
    value: Value,
    name: String,
}

impl<'a> Item<'a> {
    /// Name in messages: `file.pt[key]`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys of a dict, in their order; none of anything else.
    pub fn keys(&self) -> Vec<&'a str> {
        let Value::Dict(at) = self.value else { return Vec::new() };
        let keys = self.file.made.dicts[at].iter().map(|(key, _)| self.file.made.text(*key));
        keys.collect()
    }

    /// The value of a key of a dict, if there is one.
    pub fn get(&self, key: &str) -> Option<Self> {
        let Value::Dict(at) = self.value else { return None };
        let made = &self.file.made;
        // A key that was set again has its last value.
        let found = made.dicts[at].iter().rev().find(|(span, _)| made.text(*span) == key);
        found.map(|&(_, value)| Self {
            file: self.file,
            value,
            name: format!("{}[{key}]", self.name),
        })
    }

    /// The lengths of the dimensions of a tensor or array.
    pub fn shape(&self) -> Option<&'a [usize]> {
        match self.value {
            Value::Array(at) => Some(&self.file.made.arrays[at].shape),
            _ => None,
        }
    }

    /// The integers of a tensor or array, row after row.
    ///
    /// # Errors
    /// If it is something else, holds other numbers or exceeds the memory.
    pub fn integers(&self) -> Result<Vec<i64>> {
        let (array, values) = self.values()?;
        if array.num.is_float() {
            return Err(self
                .error("holds floating-point numbers, integers are needed")
                .hint("convert it with tensor.long()"));
        }
        Ok(array.collect(&values, numbers::integer))
    }

    /// The numbers of a tensor or array, row after row.
    ///
    /// # Errors
    /// If it is something else or exceeds the memory.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        let (array, values) = self.values()?;
        Ok(array.collect(&values, numbers::number))
    }

    /// The strings of a list or tuple.
    ///
    /// # Errors
    /// If it is something else.
    pub fn strings(&self) -> Result<Vec<&'a str>> {
        let made = &self.file.made;
        let text = |value: &Value| match value {
            Value::Text(span) => Some(made.text(*span)),
            _ => None,
        };
        let all = match self.value {
            Value::List(at) => made.lists[at].iter().map(text).collect(),
            _ => None,
        };
        all.ok_or_else(|| self.error("is no list of strings"))
    }

    /// An error about this object.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid(format!("{}: {message}", self.name))
    }

    fn values(&self) -> Result<(&'a Array, Vec<u8>)> {
        let made = &self.file.made;
        let Value::Array(at) = self.value else {
            return Err(self.error("is no tensor and no array"));
        };
        let array = &made.arrays[at];
        let (count, held) = (array.len() as u64, array.held());
        let bytes = count.saturating_mul(8).saturating_add(held as u64);
        if bytes > self.file.memory {
            return Err(over_budget(
                self.file.memory,
                &format!("{} of {count} numbers", self.name),
            ));
        }
        let values = match &array.values {
            Values::Record(record) => self.file.archive.read(record)?,
            Values::Bytes(span) => made.bytes(*span).to_vec(),
            Values::Characters(span) => {
                numbers::from_latin1(made.text(*span), held).map_err(|wrong| self.error(wrong))?
            }
        };
        Ok((array, values))
    }
}
