//! Safetensors that are written as they are read: no copy of the values is made.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;

use gnarl_common::error::{Error, Result};
use safetensors::tensor::{Dtype, View};

/// A tensor to be written.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    /// Unique in the file.
    pub name: String,
    /// Type of the values.
    pub dtype: Dtype,
    /// Number of values along each dimension.
    pub shape: Vec<usize>,
    /// The values, row by row, little-endian.
    pub bytes: &'a [u8],
}

/// A tensor that keeps its values to itself when it is asked for them, and notes that it was: so the library makes the
/// header alone, and tells the order of the values.
struct Place<'a> {
    tensor: &'a Named<'a>,
    order: &'a RefCell<Vec<&'a [u8]>>,
}

impl View for Place<'_> {
    fn dtype(&self) -> Dtype {
        self.tensor.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.tensor.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.order.borrow_mut().push(self.tensor.bytes);
        Cow::Borrowed(&[])
    }

    fn data_len(&self) -> usize {
        self.tensor.bytes.len()
    }
}

/// Writes `tensors` to `out`, with `metadata`. An error of `out` is the inner one.
///
/// # Errors
/// If the format cannot hold them.
pub fn write(
    out: &mut impl Write,
    tensors: &[Named<'_>],
    metadata: Option<HashMap<String, String>>,
) -> Result<std::io::Result<()>> {
    let refused = |e| Error::invalid(format!("writing safetensors: {e}"));
    for Named { name, dtype, shape, bytes } in tensors {
        if shape.iter().product::<usize>() * dtype.bitsize() != 8 * bytes.len() {
            let found = bytes.len();
            let message = format!("tensor '{name}': {found} bytes for the shape {shape:?}");
            return Err(Error::invalid(message));
        }
    }
    let order = RefCell::default();
    let places = tensors.iter().map(|tensor| (&tensor.name, Place { tensor, order: &order }));
    let header = safetensors::serialize(places, metadata).map_err(refused)?;
    let values = order.take();
    let mut all = [&*header].into_iter().chain(values);
    Ok(all.try_for_each(|bytes| out.write_all(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;

    #[test]
    fn bytes_are_those_of_the_library() {
        let tensors = [
            ("b", Dtype::F16, vec![3, 1], &[2u8; 6][..]),
            ("a", Dtype::F32, vec![3], &[1; 12][..]),
            ("empty", Dtype::U32, vec![0, 4], &[][..]),
            ("c", Dtype::F64, vec![1], &[3; 8][..]),
        ];
        let metadata = || Some(HashMap::from([("about".to_string(), "a test".to_string())]));
        let views = tensors.clone().map(|(name, dtype, shape, bytes)| {
            (name, TensorView::new(dtype, shape, bytes).unwrap())
        });
        let expected = safetensors::serialize(views, metadata()).unwrap();
        let named = tensors.map(|(name, dtype, shape, bytes)| Named {
            name: name.into(),
            dtype,
            shape,
            bytes,
        });
        let mut found = Vec::new();
        write(&mut found, &named, metadata()).unwrap().unwrap();
        assert_eq!(found, expected);
        let short = Named { shape: vec![4], ..named[1].clone() };
        let error = write(&mut found, &[short], None).unwrap_err().to_string();
        assert!(error.contains("tensor 'a': 12 bytes for the shape [4]"), "{error}");
    }
}
