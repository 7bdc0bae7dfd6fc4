//! The names that a pickle may use, and the results of calling them.

use gnarl_common::Error;

use super::archive::Archive;
use super::numbers::{Array, Span, Values};
use crate::import::array::Num;
use crate::import::errors::over_budget;

/// The most dimensions of an array in numpy.
const DIMENSIONS: usize = 64;
/// The longest name of a storage; torch's are numbers.
const KEY: usize = 20;

/// No bytes.
const NOTHING: Span = Span { start: 0, end: 0 };

/// An object; those with contents are indices into [`Objects`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Text(Span),
    Bytes(Span),
    /// Bytes as a string with one character per byte.
    Characters(Span),
    Name(Name),
    Kind(usize),
    Storage(usize),
    Array(usize),
    /// A list or a tuple.
    List(usize),
    Dict(usize),
}

/// The supported names of Python.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name {
    Tensor,
    Storage(Num),
    NdArray,
    Reconstruct,
    DType,
    Encode,
    /// Called without arguments only: protocol 2 writes empty bytes so.
    NoBytes,
    OrderedDict,
}

impl Name {
    pub fn find(module: &str, name: &str) -> Result<Self, Wrong> {
        Ok(match (module, name) {
            ("torch._utils", "_rebuild_tensor_v2") => Self::Tensor,
            ("torch", "BoolStorage") => Self::Storage(Num::Bool),
            ("torch", "ByteStorage") => Self::Storage(Num::U8),
            ("torch", "CharStorage") => Self::Storage(Num::I8),
            ("torch", "ShortStorage") => Self::Storage(Num::I16),
            ("torch", "IntStorage") => Self::Storage(Num::I32),
            ("torch", "LongStorage") => Self::Storage(Num::I64),
            ("torch", "HalfStorage") => Self::Storage(Num::F16),
            ("torch", "FloatStorage") => Self::Storage(Num::F32),
            ("torch", "DoubleStorage") => Self::Storage(Num::F64),
            ("numpy", "ndarray") => Self::NdArray,
            ("numpy", "dtype") => Self::DType,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => {
                Self::Reconstruct
            }
            ("_codecs", "encode") => Self::Encode,
            ("__builtin__", "bytes") => Self::NoBytes,
            ("collections", "OrderedDict") => Self::OrderedDict,
            _ => {
                let full = format!("{module}.{name}");
                return Err(Wrong::Name(full.escape_debug().take(100).collect()));
            }
        })
    }
}

/// The reason why a pickle is rejected.
#[derive(Debug)]
pub(super) enum Wrong {
    /// An unsupported name.
    Name(String),
    /// Content that torch does not write.
    Form(String),
    /// Too large.
    Memory(u64),
    /// A damaged archive.
    File(Error),
}

impl Wrong {
    /// The error about the file `name`.
    pub fn of(self, name: &str) -> Error {
        match self {
            Self::Name(other) => Error::invalid(format!(
                "{name}: holds {other}, which is not a tensor or an array of numbers; nothing was run"
            ))
            .hint("save a dict of tensors or arrays: torch.save({'edge': edge}, f)"),
            Self::Form(what) => Error::invalid(format!("{name}: its pickle {what}; nothing was run"))
                .hint("save tensors and arrays of numbers in dicts, lists and tuples"),
            Self::Memory(memory) => over_budget(memory, &format!("what {name} holds")),
            Self::File(error) => error,
        }
    }
}

/// An error of the form.
pub(super) fn form<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Form(what.into()))
}

/// A numpy dtype: its letters, and its byte order once known.
#[derive(Debug)]
struct Kind {
    letters: Span,
    order: Option<Span>,
}

/// Numbers of a tensor: a record of the archive.
#[derive(Debug)]
struct Storage {
    num: Num,
    record: String,
    numbers: usize,
}

/// The pickle and its objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub pickle: Vec<u8>,
    pub lists: Vec<Vec<Value>>,
    pub dicts: Vec<Vec<(Span, Value)>>,
    pub arrays: Vec<Array>,
    kinds: Vec<Kind>,
    storages: Vec<Storage>,
}

impl Objects {
    /// None yet.
    pub fn new(pickle: Vec<u8>) -> Self {
        Self { pickle, ..Self::default() }
    }

    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.pickle[span.start..span.end]
    }

    /// A byte range that was found to be UTF-8.
    pub fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.bytes(span)).unwrap_or_default()
    }

    pub fn list(&mut self, items: Vec<Value>) -> Value {
        self.lists.push(items);
        Value::List(self.lists.len() - 1)
    }

    pub fn dict(&mut self) -> Value {
        self.dicts.push(Vec::new());
        Value::Dict(self.dicts.len() - 1)
    }

    fn array(&mut self, array: Array) -> Value {
        self.arrays.push(array);
        Value::Array(self.arrays.len() - 1)
    }

    /// The result of calling `name`.
    pub fn call(&mut self, name: Name, arguments: &[Value]) -> Result<Value, Wrong> {
        match (name, arguments) {
            (Name::OrderedDict, []) => Ok(self.dict()),
            (Name::NoBytes, []) => Ok(Value::Bytes(NOTHING)),
            (Name::Encode, &[Value::Text(text), Value::Text(code)])
                if self.text(code) == "latin1" =>
            {
                Ok(Value::Characters(text))
            }
            (Name::DType, &[Value::Text(letters), ..]) => {
                self.kinds.push(Kind { letters, order: None });
                Ok(Value::Kind(self.kinds.len() - 1))
            }
            // An array is empty until its state is set.
            (Name::Reconstruct, [Value::Name(Name::NdArray), ..]) => {
                Array::dense(Num::U8, vec![0], false, Values::Bytes(NOTHING))
                    .map(|array| self.array(array))
                    .map_err(Wrong::Form)
            }
            (
                Name::Tensor,
                &[
                    Value::Storage(storage),
                    Value::Int(offset),
                    Value::List(shape),
                    Value::List(strides),
                    ..,
                ],
            ) => {
                let Storage { num, record, numbers } = &self.storages[storage];
                let view = (self.sizes(shape)?, self.sizes(strides)?, size(&Value::Int(offset))?);
                let array = Array::view(*num, view, *numbers, Values::Record(record.clone()));
                Ok(self.array(array.map_err(|wrong| Wrong::Form(format!("has {wrong}")))?))
            }
            _ => form(format!("calls {name:?} as torch does not")),
        }
    }

    /// Sets the state of objects that numpy makes in two steps.
    pub fn set_state(&mut self, target: Value, state: Value) -> Result<(), Wrong> {
        let Value::List(state) = state else { return form("sets a state of another kind") };
        match (target, &self.lists[state][..]) {
            (Value::Kind(at), &[_, Value::Text(order), ..]) => {
                self.kinds[at].order = Some(order);
                Ok(())
            }
            (
                Value::Array(at),
                &[_, Value::List(shape), Value::Kind(kind), Value::Bool(fortran), values],
            ) => {
                let (num, shape) = (self.num(kind)?, self.sizes(shape)?);
                let (values, length) = match values {
                    Value::Bytes(span) => (Values::Bytes(span), Some(span.end - span.start)),
                    Value::Characters(span) => (Values::Characters(span), None),
                    _ => return form("has an array without bytes"),
                };
                let array = Array::dense(num, shape, fortran, values).map_err(Wrong::Form)?;
                if length.is_some_and(|length| length != array.held()) {
                    let (shape, held) = (&array.shape, array.held());
                    return form(format!(
                        "has an array of shape {shape:?}, whose {held} bytes are not there"
                    ));
                }
                self.arrays[at] = array;
                Ok(())
            }
            _ => form("sets the state of something else than an array"),
        }
    }

    /// The storage of a persistent id.
    pub fn storage(&mut self, id: Value, archive: &Archive) -> Result<Value, Wrong> {
        let Value::List(id) = id else { return form("has a persistent id of another kind") };
        let &[_, Value::Name(Name::Storage(num)), Value::Text(key), _, ref numbers] =
            &self.lists[id][..]
        else {
            return form("has a persistent id of another kind");
        };
        if key.end - key.start > KEY {
            return form("has a storage with a long name");
        }
        let (record, numbers) = (format!("data/{}", self.text(key)), size(numbers)?);
        let held = archive.size(&record).map_err(Wrong::File)?;
        if numbers.checked_mul(num.size()).map(|bytes| bytes as u64) != Some(held) {
            return form(format!("wants {numbers} numbers of {record}, which has {held} bytes"));
        }
        self.storages.push(Storage { num, record, numbers });
        Ok(Value::Storage(self.storages.len() - 1))
    }

    fn sizes(&self, list: usize) -> Result<Vec<usize>, Wrong> {
        if self.lists[list].len() > DIMENSIONS {
            return form(format!("has a tensor of more than {DIMENSIONS} dimensions"));
        }
        self.lists[list].iter().map(size).collect()
    }

    /// The number type of a dtype.
    fn num(&self, kind: usize) -> Result<Num, Wrong> {
        let Kind { letters, order } = &self.kinds[kind];
        let order = order.map_or("|", |order| self.text(order));
        let descr = format!("{order}{}", self.text(*letters));
        match Num::parse(&descr) {
            Some(num) => Ok(num),
            None => form(format!("has an array of dtype {}", descr.escape_debug())),
        }
    }
}

/// A length, offset or stride.
fn size(value: &Value) -> Result<usize, Wrong> {
    match value {
        Value::Int(value) => usize::try_from(*value).or(form(format!("has a size of {value}"))),
        _ => form("has a size that is no integer"),
    }
}
