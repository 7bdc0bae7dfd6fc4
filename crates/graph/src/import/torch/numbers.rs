//! Tensors and arrays: shapes, strides, and the location of their numbers.

use half::f16;

use super::super::array::Num;

/// A byte range of the pickle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
}

/// The location of numbers.
#[derive(Debug, Clone)]
pub(super) enum Values {
    /// In a record of the archive.
    Record(String),
    /// In the pickle.
    Bytes(Span),
    /// In the pickle, as a string with one character per byte, as protocol 2 writes bytes.
    Characters(Span),
}

/// A tensor or an array of numbers.
#[derive(Debug, Clone)]
pub(super) struct Array {
    pub num: Num,
    pub shape: Vec<usize>,
    /// Numbers from one to the next along each dimension.
    strides: Vec<usize>,
    /// Numbers before the first.
    offset: usize,
    /// Numbers in `values`.
    stored: usize,
    pub values: Values,
}

/// Product of the lengths of dimensions.
fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length))
}

impl Array {
    /// A view of `stored` numbers.
    ///
    /// # Errors
    /// If the view would exceed them, or read one of them twice: then a short file could stand for
    /// any amount of numbers.
    pub fn view(
        num: Num,
        (shape, strides, offset): (Vec<usize>, Vec<usize>, usize),
        stored: usize,
        values: Values,
    ) -> Result<Self, String> {
        let view = format!("a tensor of shape {shape:?} and strides {strides:?} at {offset}");
        if shape.len() != strides.len() {
            return Err(format!("{view} has not one stride for each dimension"));
        }
        let numbers = count(&shape).ok_or_else(|| format!("{view} has too many numbers"))?;
        let last = shape.iter().zip(&strides).try_fold(offset, |at, (&length, &stride)| {
            at.checked_add(length.saturating_sub(1).checked_mul(stride)?)
        });
        if numbers > 0 && last.is_none_or(|last| last >= stored) {
            return Err(format!("{view} leaves its storage of {stored} numbers"));
        }
        if numbers > stored {
            return Err(format!("{view} repeats numbers of its storage, which has {stored}"));
        }
        Ok(Self { num, shape, strides, offset, stored, values })
    }

    /// An array without gaps; `fortran` if its first dimension is contiguous.
    pub fn dense(
        num: Num,
        shape: Vec<usize>,
        fortran: bool,
        values: Values,
    ) -> Result<Self, String> {
        let stored = count(&shape).filter(|numbers| numbers.checked_mul(num.size()).is_some());
        let stored = stored.ok_or_else(|| format!("an array of shape {shape:?} is too large"))?;
        let mut strides = vec![1; shape.len()];
        let mut next = 1usize;
        for i in 0..shape.len() {
            let axis = if fortran { i } else { shape.len() - 1 - i };
            strides[axis] = next;
            // An empty dimension leaves no number to reach, whatever the strides.
            next = next.saturating_mul(shape[axis]);
        }
        Self::view(num, (shape, strides, 0), stored, values)
    }

    /// Number of numbers.
    pub fn len(&self) -> usize {
        count(&self.shape).unwrap_or(0)
    }

    /// Bytes of `values`.
    pub fn held(&self) -> usize {
        self.stored * self.num.size()
    }

    /// The numbers, the last dimension fastest, decoded from `bytes`.
    pub fn collect<T>(&self, bytes: &[u8], decode: fn(Num, &[u8]) -> T) -> Vec<T> {
        let (mut out, size) = (Vec::with_capacity(self.len()), self.num.size());
        let (mut index, mut at) = (vec![0; self.shape.len()], self.offset);
        for _ in 0..self.len() {
            out.push(decode(self.num, &bytes[at * size..(at + 1) * size]));
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.strides[axis] * self.shape[axis];
                index[axis] = 0;
            }
        }
        out
    }
}

/// The bytes of a string with one character per byte.
pub(super) fn from_latin1(text: &str, size: usize) -> Result<Vec<u8>, String> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    match bytes {
        Some(bytes) if bytes.len() == size => Ok(bytes),
        Some(bytes) => Err(format!("has {} bytes of numbers, its shape needs {size}", bytes.len())),
        None => Err("its bytes are no bytes".into()),
    }
}

macro_rules! read {
    ($type:ty, $bytes:expr) => {
        <$type>::from_le_bytes($bytes.try_into().expect("as many bytes as a number has"))
    };
}

/// One integer; those beyond 63 bits become negative, which no id or count is.
pub(super) fn integer(num: Num, bytes: &[u8]) -> i64 {
    match num {
        Num::Bool | Num::U8 => i64::from(bytes[0]),
        Num::I8 => i64::from(bytes[0] as i8),
        Num::I16 => i64::from(read!(i16, bytes)),
        Num::U16 => i64::from(read!(u16, bytes)),
        Num::I32 => i64::from(read!(i32, bytes)),
        Num::U32 => i64::from(read!(u32, bytes)),
        Num::I64 => read!(i64, bytes),
        Num::U64 => read!(u64, bytes) as i64,
        Num::F16 | Num::F32 | Num::F64 => number(num, bytes) as i64,
    }
}

/// One number.
pub(super) fn number(num: Num, bytes: &[u8]) -> f64 {
    match num {
        Num::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
        Num::F32 => f64::from(read!(f32, bytes)),
        Num::F64 => read!(f64, bytes),
        Num::U64 => read!(u64, bytes) as f64,
        _ => integer(num, bytes) as f64,
    }
}
