//! A batch as named columns, the form in which it travels.

use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use gnarl_common::{Error, Result};
use half::f16;

/// The values of a column, shared with the message they came in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Array {
    U8(ScalarBuffer<u8>),
    U32(ScalarBuffer<u32>),
    U64(ScalarBuffer<u64>),
    F16(ScalarBuffer<f16>),
    /// The bits of bfloat16, a type that Arrow lacks.
    Bf16(ScalarBuffer<u16>),
    F32(ScalarBuffer<f32>),
}

/// A type of values in columns.
pub(crate) trait Value: ArrowNativeType {
    /// The values as a column.
    fn array(values: Vec<Self>) -> Array;

    /// The values of a column, if it has this type.
    fn values(array: Array) -> Option<Vec<Self>>;
}

macro_rules! values {
    ($($kind:ident $type:ty),*) => {
        $(impl Value for $type {
            fn array(values: Vec<Self>) -> Array {
                Array::$kind(values.into())
            }

            fn values(array: Array) -> Option<Vec<Self>> {
                match array {
                    Array::$kind(values) => Some(values.into()),
                    _ => None,
                }
            }
        })*
    };
}

values!(U8 u8, U32 u32, U64 u64, F16 f16, F32 f32);

/// Named columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Columns(Vec<(String, Array)>);

impl Columns {
    /// Adds a column.
    pub fn add<T: Value>(&mut self, name: impl Into<String>, values: Vec<T>) {
        self.add_array(name, T::array(values));
    }

    /// Adds a column of any type.
    pub fn add_array(&mut self, name: impl Into<String>, array: Array) {
        self.0.push((name.into(), array));
    }

    /// Adds a column if there are values.
    pub fn add_some<T: Value>(&mut self, name: impl Into<String>, values: Option<Vec<T>>) {
        if let Some(values) = values {
            self.add(name, values);
        }
    }

    /// Takes a column, if there is one.
    pub fn take_array(&mut self, name: &str) -> Option<Array> {
        let at = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Takes a column.
    ///
    /// # Errors
    /// If it is missing or of another type.
    pub fn take<T: Value>(&mut self, name: &str) -> Result<Vec<T>> {
        let missing = || Error::invalid(format!("the batch has no column '{name}'"));
        self.take_some(name)?.ok_or_else(missing)
    }

    /// Takes a column, if there is one.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn take_some<T: Value>(&mut self, name: &str) -> Result<Option<Vec<T>>> {
        let wrong =
            || Error::invalid(format!("column '{name}' of the batch has values of another type"));
        self.take_array(name).map(|array| T::values(array).ok_or_else(wrong)).transpose()
    }

    /// Takes a column of one value.
    ///
    /// # Errors
    /// If it is missing, of another type, or has another number of values.
    pub fn take_one(&mut self, name: &str) -> Result<u64> {
        match self.take::<u64>(name)?[..] {
            [value] => Ok(value),
            _ => Err(Error::invalid(format!("column '{name}' of the batch: expected one value"))),
        }
    }

    /// The columns with their names.
    pub fn into_named(self) -> Vec<(String, Array)> {
        self.0
    }
}
