//! Safetensors that are written as they are read: no copy of the values is made.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;

use gnarl_common::error::{Error, Result};
use safetensors::tensor::{Dtype, View};

/// Bytes of the length of the header, which comes first; the header is aligned to as many.
const LENGTH: usize = 8;

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
struct Place<'a, 'o> {
    tensor: &'a Named<'a>,
    order: &'o RefCell<Vec<&'a Named<'a>>>,
}

impl View for Place<'_, '_> {
    fn dtype(&self) -> Dtype {
        self.tensor.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.tensor.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.order.borrow_mut().push(self.tensor);
        Cow::Borrowed(&[])
    }

    fn data_len(&self) -> usize {
        self.tensor.bytes.len()
    }
}

/// Writes `tensors` to `out`, with `metadata` in the order of its keys. An error of `out` is the inner one.
///
/// # Errors
/// If the format cannot hold them.
pub fn write(
    out: &mut impl Write,
    tensors: &[Named<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<std::io::Result<()>> {
    let (header, tensors) = header(tensors, metadata)?;
    let values = tensors.into_iter().map(|tensor| tensor.bytes);
    let mut all = [&*header].into_iter().chain(values);
    Ok(all.try_for_each(|bytes| out.write_all(bytes)))
}

/// The bytes before the values, and the tensors in the order of their values in the file.
///
/// # Errors
/// If the format cannot hold the tensors.
pub(super) fn header<'a>(
    tensors: &'a [Named<'a>],
    metadata: &BTreeMap<String, String>,
) -> Result<(Vec<u8>, Vec<&'a Named<'a>>)> {
    let refused = |e: &dyn std::fmt::Display| Error::invalid(format!("writing safetensors: {e}"));
    for Named { name, dtype, shape, bytes } in tensors {
        if shape.iter().product::<usize>() * dtype.bitsize() != 8 * bytes.len() {
            let found = bytes.len();
            let message = format!("tensor '{name}': {found} bytes for the shape {shape:?}");
            return Err(Error::invalid(message));
        }
    }
    let order = RefCell::default();
    let places = tensors.iter().map(|tensor| (&tensor.name, Place { tensor, order: &order }));
    let header = safetensors::serialize(places, None).map_err(|e| refused(&e))?;
    if metadata.is_empty() {
        return Ok((header, order.take()));
    }
    // The library writes metadata in no fixed order, and equal models are to have equal bytes.
    let metadata = serde_json::to_string(metadata).map_err(|e| refused(&e))?;
    let entries = header[LENGTH + 1..].trim_ascii_end();
    let comma = if entries == b"}" { "" } else { "," };
    let mut text = format!("{{\"__metadata__\":{metadata}{comma}").into_bytes();
    text.extend(entries);
    text.resize(text.len().next_multiple_of(LENGTH), b' ');
    let length = text.len() as u64;
    Ok(([&length.to_le_bytes()[..], &text].concat(), order.take()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::{SafeTensors, TensorView};

    #[test]
    fn bytes_are_those_of_the_library() {
        let tensors = [
            ("b", Dtype::F16, vec![3, 1], &[2u8; 6][..]),
            ("a", Dtype::F32, vec![3], &[1; 12][..]),
            ("empty", Dtype::U32, vec![0, 4], &[][..]),
            ("c", Dtype::F64, vec![1], &[3; 8][..]),
        ];
        let metadata = [("about".to_string(), "a \"test\"".to_string())];
        let views = tensors.clone().map(|(name, dtype, shape, bytes)| {
            (name, TensorView::new(dtype, shape, bytes).unwrap())
        });
        let expected = safetensors::serialize(views, Some(metadata.clone().into())).unwrap();
        let named = tensors.map(|(name, dtype, shape, bytes)| Named {
            name: name.into(),
            dtype,
            shape,
            bytes,
        });
        let mut found = Vec::new();
        write(&mut found, &named, &metadata.into()).unwrap().unwrap();
        assert_eq!(found, expected);
        let short = Named { shape: vec![4], ..named[1].clone() };
        let error = write(&mut found, &[short], &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("tensor 'a': 12 bytes for the shape [4]"), "{error}");
    }

    #[test]
    fn several_entries_are_ordered() {
        let entries = [("b", "2"), ("a", "1"), ("c", "é")];
        let metadata: BTreeMap<String, String> =
            entries.map(|(name, text)| (name.to_string(), text.to_string())).into();
        let mut found = Vec::new();
        write(&mut found, &[], &metadata).unwrap().unwrap();
        let text = String::from_utf8(found[LENGTH..].to_vec()).unwrap();
        assert_eq!(text.trim_end(), r#"{"__metadata__":{"a":"1","b":"2","c":"é"}}"#);
        let (_, header) = SafeTensors::read_metadata(&found).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap().len(), 3);
    }
}
