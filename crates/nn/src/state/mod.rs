//! Parameters and optimizer state as safetensors bytes.
//!
//! In and out: named f32 tensors. Names are those of the parameter specs, so that any safetensors
//! reader can open a model; equal values always give equal bytes.

pub mod sealed;
pub mod stream;

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use gnarl_common::Buf;
use gnarl_common::error::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::Params;
use stream::Named;

/// Key of the entry of the metadata beside the checksum.
const ABOUT: &str = "gnarl";

/// A matrix saved beside parameters, such as an embedding table.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<'a> {
    /// Unique among parameters and matrices.
    pub name: String,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// All values, row by row.
    pub values: &'a [f32],
}

/// All parameters, one `rows × cols` tensor each.
///
/// # Errors
/// If the format cannot hold them.
pub fn params_to_bytes(params: &Params) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream::write(&mut bytes, &weights(params), &BTreeMap::new())?
        .map_err(|e| Error::invalid(e.to_string()))?;
    Ok(bytes)
}

/// Writes all parameters and some matrices, one tensor each, with a checksum and `about` under the name `gnarl` in the
/// metadata. An error of `out` is the inner one.
///
/// # Errors
/// If the format cannot hold them.
pub fn write(
    out: &mut (impl Write + Seek),
    params: &Params,
    matrices: &[Matrix<'_>],
    about: String,
) -> Result<std::io::Result<()>> {
    let mut tensors = weights(params);
    tensors.extend(matrices.iter().map(|m| named(&m.name, m.shape, m.values)));
    sealed::write(out, &tensors, BTreeMap::from([(ABOUT.to_string(), about)]))
}

/// All parameters as tensors.
fn weights(params: &Params) -> Vec<Named<'_>> {
    let weight = |id| {
        let spec = params.spec(id);
        named(&spec.name, (spec.rows, spec.cols), params.get(id))
    };
    params.ids().map(weight).collect()
}

fn named<'a>(name: &str, (rows, cols): (usize, usize), values: &'a [f32]) -> Named<'a> {
    Named {
        name: name.into(),
        dtype: Dtype::F32,
        shape: vec![rows, cols],
        bytes: bytemuck::cast_slice(values),
    }
}

/// Fills `params` from the output of [`params_to_bytes`]; nothing changes on an error.
///
/// # Errors
/// [`gnarl_common::error::Kind::InvalidInput`] if the bytes are no safetensors file, or names or
/// shapes are not those of `params`.
pub fn params_from_bytes(params: &mut Params, bytes: &[u8]) -> Result<()> {
    let file = open(bytes)?;
    fill(params, &[], &file)
}

/// Fills `params` from the output of [`write()`], and returns the values of the matrices of these
/// names and shapes, which stay in the file; nothing changes on an error.
///
/// # Errors
/// As [`params_from_bytes`].
pub fn from_file(
    params: &mut Params,
    matrices: &[(String, (usize, usize))],
    map: &Buf<u8>,
) -> Result<Vec<Buf<f32>>> {
    let file = open(map)?;
    fill(params, matrices, &file)?;
    let values = |(name, _): &(String, _)| {
        let bytes = find(&file, name)?.data();
        let start = bytes.as_ptr().addr() - map.as_ptr().addr();
        let values = map.values(start..start + bytes.len());
        values.ok_or_else(|| Error::invalid(format!("tensor '{name}' is truncated")))
    };
    matrices.iter().map(values).collect()
}

/// Fills `params` from a file that has them, and matrices of these names and shapes, and nothing else.
fn fill(
    params: &mut Params,
    matrices: &[(String, (usize, usize))],
    file: &SafeTensors<'_>,
) -> Result<()> {
    let weights = params.specs().iter().map(|spec| (&spec.name, (spec.rows, spec.cols)));
    for (name, (rows, cols)) in weights.chain(matrices.iter().map(|(name, shape)| (name, *shape))) {
        let tensor = find(file, name)?;
        if tensor.shape() != [rows, cols] || tensor.dtype() != Dtype::F32 {
            return Err(Error::invalid(format!(
                "tensor '{name}': expected F32 of shape [{rows}, {cols}], found {:?} of shape {:?}",
                tensor.dtype(),
                tensor.shape(),
            ))
            .hint("the checkpoint belongs to a model of another configuration"));
        }
    }
    let known = |name: &str| params.find(name).is_some() || matrices.iter().any(|m| m.0 == name);
    if let Some(name) = file.names().into_iter().find(|name| !known(name)) {
        return Err(Error::invalid(format!("tensor '{name}' is not part of the model"))
            .hint("the checkpoint belongs to a model of another configuration"));
    }
    for id in params.ids() {
        let values = floats(find(file, &params.spec(id).name)?.data());
        params.get_mut(id).copy_from_slice(&values);
    }
    Ok(())
}

/// Named vectors, such as the state of an optimizer.
///
/// # Errors
/// If the format cannot hold them.
pub fn vectors_to_bytes(vectors: &[(String, Vec<f32>)]) -> Result<Vec<u8>> {
    let named: Vec<Named<'_>> = vectors
        .iter()
        .map(|(name, values)| Named {
            name: name.clone(),
            dtype: Dtype::F32,
            shape: vec![values.len()],
            bytes: bytemuck::cast_slice(values),
        })
        .collect();
    let mut bytes = Vec::new();
    stream::write(&mut bytes, &named, &BTreeMap::new())?
        .map_err(|e| Error::invalid(e.to_string()))?;
    Ok(bytes)
}

/// The metadata that [`write()`] wrote, if any.
///
/// # Errors
/// [`gnarl_common::error::Kind::InvalidInput`] if the bytes are no safetensors file.
pub fn about(bytes: &[u8]) -> Result<Option<String>> {
    let (_, metadata) = SafeTensors::read_metadata(bytes)
        .map_err(|e| Error::invalid(format!("safetensors: {e}")))?;
    Ok(metadata.metadata().as_ref().and_then(|named| named.get(ABOUT)).cloned())
}

/// The vectors that [`vectors_to_bytes`] wrote, by name in ascending order.
///
/// # Errors
/// [`gnarl_common::error::Kind::InvalidInput`] if the bytes are no safetensors file of f32.
pub fn vectors_from_bytes(bytes: &[u8]) -> Result<Vec<(String, Vec<f32>)>> {
    let file = open(bytes)?;
    let mut vectors = Vec::with_capacity(file.len());
    for (name, tensor) in file.iter() {
        if tensor.dtype() != Dtype::F32 {
            return Err(Error::invalid(format!(
                "invalid tensor '{name}': expected F32, found {:?}",
                tensor.dtype()
            )));
        }
        vectors.push((name.to_string(), floats(tensor.data())));
    }
    vectors.sort_by(|(a, _): &(String, _), (b, _)| a.cmp(b));
    Ok(vectors)
}

fn open(bytes: &[u8]) -> Result<SafeTensors<'_>> {
    SafeTensors::deserialize(bytes).map_err(|e| Error::invalid(format!("safetensors: {e}")))
}

fn find<'a>(file: &SafeTensors<'a>, name: &str) -> Result<TensorView<'a>> {
    file.tensor(name).map_err(|_| {
        Error::invalid(format!("tensor '{name}' is missing"))
            .hint("the checkpoint belongs to a model of another configuration")
    })
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use gnarl_common::rng::Key;

    use super::*;
    use crate::{Init, ParamsBuilder};

    fn params(seed: u64, cols: usize) -> Params {
        let mut builder = ParamsBuilder::new(Key::new(seed));
        builder.add("layer0.weight", 3, cols, Init::XavierUniform);
        builder.add("layer0.bias", 1, cols, Init::Normal(1.0));
        builder.build()
    }

    #[test]
    fn parameters_survive_the_round_trip_bit_by_bit() {
        let saved = params(1, 4);
        let bytes = params_to_bytes(&saved).unwrap();
        assert_eq!(bytes, params_to_bytes(&saved).unwrap());
        assert_eq!(about(&bytes).unwrap(), None);
        let mut told = Cursor::new(Vec::new());
        write(&mut told, &saved, &[], "of a test".into()).unwrap().unwrap();
        assert_eq!(about(told.get_ref()).unwrap().as_deref(), Some("of a test"));
        let mut loaded = params(2, 4);
        params_from_bytes(&mut loaded, &bytes).unwrap();
        assert_eq!(loaded.flat(), saved.flat());
    }

    #[test]
    fn matrices_stay_in_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        let saved = params(1, 4);
        let values: Vec<f32> = (0..15).map(|i| i as f32 * 0.5).collect();
        let table = Matrix { name: "table".into(), shape: (5, 3), values: &values };
        let mut file = std::fs::File::create(&path).unwrap();
        write(&mut file, &saved, &[table], "é".into()).unwrap().unwrap();
        let map = Buf::map(&path).unwrap();
        let mut loaded = params(2, 4);
        let found = from_file(&mut loaded, &[("table".into(), (5, 3))], &map).unwrap();
        assert_eq!((loaded.flat(), &found[0][..]), (saved.flat(), &values[..]));
        let place = found[0].as_ptr().addr() - map.as_ptr().addr();
        assert!(place < map.len(), "no copy");
        let error = from_file(&mut loaded, &[("table".into(), (3, 5))], &map).unwrap_err();
        assert!(error.to_string().contains("[3, 5]"), "{error}");
    }

    #[test]
    fn another_model_is_refused_and_leaves_the_parameters() {
        let bytes = params_to_bytes(&params(1, 4)).unwrap();
        let mut other = params(2, 5);
        let error = params_from_bytes(&mut other, &bytes).unwrap_err().to_string();
        assert!(error.contains("layer0.weight") && error.contains("[3, 5]"), "{error}");
        assert_eq!(other.flat(), params(2, 5).flat());
        let mut builder = ParamsBuilder::new(Key::new(1));
        builder.add("layer0.weight", 3, 4, Init::Zeros);
        let error = params_from_bytes(&mut builder.build(), &bytes).unwrap_err().to_string();
        assert!(error.contains("layer0.bias"), "{error}");
        assert!(params_from_bytes(&mut other, &bytes[..20]).is_err());
    }

    #[test]
    fn vectors_survive_the_round_trip() {
        let vectors = vec![("b".to_string(), vec![1.5, -0.0]), ("a".to_string(), vec![])];
        let loaded = vectors_from_bytes(&vectors_to_bytes(&vectors).unwrap()).unwrap();
        assert_eq!(loaded, [vectors[1].clone(), vectors[0].clone()]);
    }
}
