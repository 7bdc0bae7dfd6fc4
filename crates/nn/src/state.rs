//! Parameters and optimizer state as safetensors bytes.
//!
//! In and out: named f32 tensors. Names are those of the parameter specs, so that any safetensors
//! reader can open a model; equal values always give equal bytes.

use std::collections::HashMap;

use gnarl_common::error::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::Params;

/// Key of the one entry of the metadata.
const ABOUT: &str = "gnarl";

/// A matrix saved beside parameters, such as an embedding table.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Unique among parameters and matrices.
    pub name: String,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// All values, row by row.
    pub values: Vec<f32>,
}

/// All parameters, one `rows × cols` tensor each.
///
/// # Errors
/// If the format cannot hold them.
pub fn params_to_bytes(params: &Params) -> Result<Vec<u8>> {
    to_bytes(params, &[], None)
}

/// All parameters and some matrices, one tensor each, with `about` under the name `gnarl` in the
/// metadata. One entry alone, since the format keeps several in no fixed order.
///
/// # Errors
/// If the format cannot hold them.
pub fn to_bytes(params: &Params, matrices: &[Matrix], about: Option<String>) -> Result<Vec<u8>> {
    let values = |id| bytemuck::cast_slice::<f32, u8>(params.get(id));
    let weights = params.ids().map(|id| {
        let spec = params.spec(id);
        (spec.name.clone(), vec![spec.rows, spec.cols], values(id))
    });
    let others = matrices.iter().map(|m| {
        let shape = vec![m.shape.0, m.shape.1];
        (m.name.clone(), shape, bytemuck::cast_slice::<f32, u8>(&m.values))
    });
    encode(weights.chain(others), about)
}

/// Fills `params` from the output of [`params_to_bytes`]; nothing changes on an error.
///
/// # Errors
/// [`gnarl_common::error::Kind::InvalidInput`] if the bytes are no safetensors file, or names or
/// shapes are not those of `params`.
pub fn params_from_bytes(params: &mut Params, bytes: &[u8]) -> Result<()> {
    from_bytes(params, &[], bytes).map(drop)
}

/// Fills `params` from the output of [`to_bytes`], and returns the values of the matrices of these
/// names and shapes; nothing changes on an error.
///
/// # Errors
/// As [`params_from_bytes`].
pub fn from_bytes(
    params: &mut Params,
    matrices: &[(String, (usize, usize))],
    bytes: &[u8],
) -> Result<Vec<Vec<f32>>> {
    let file = open(bytes)?;
    let weights = params.specs().iter().map(|spec| (&spec.name, (spec.rows, spec.cols)));
    for (name, (rows, cols)) in weights.chain(matrices.iter().map(|(name, shape)| (name, *shape))) {
        let tensor = find(&file, name)?;
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
        let values = floats(find(&file, &params.spec(id).name)?.data());
        params.get_mut(id).copy_from_slice(&values);
    }
    matrices.iter().map(|(name, _)| Ok(floats(find(&file, name)?.data()))).collect()
}

/// Named vectors, such as the state of an optimizer.
///
/// # Errors
/// If the format cannot hold them.
pub fn vectors_to_bytes(vectors: &[(String, Vec<f32>)]) -> Result<Vec<u8>> {
    encode(
        vectors
            .iter()
            .map(|(name, values)| (name.clone(), vec![values.len()], bytemuck::cast_slice(values))),
        None,
    )
}

/// The metadata that [`to_bytes`] wrote, if any.
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

fn encode<'a>(
    tensors: impl Iterator<Item = (String, Vec<usize>, &'a [u8])>,
    about: Option<String>,
) -> Result<Vec<u8>> {
    let refused = |e| Error::invalid(format!("writing safetensors: {e}"));
    let views = tensors
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape, bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(refused)?;
    let metadata = about.map(|about| HashMap::from([(ABOUT.to_string(), about)]));
    safetensors::serialize(views, metadata).map_err(refused)
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
        let told = to_bytes(&saved, &[], Some("of a test".into())).unwrap();
        assert_eq!(about(&told).unwrap().as_deref(), Some("of a test"));
        let mut loaded = params(2, 4);
        params_from_bytes(&mut loaded, &bytes).unwrap();
        assert_eq!(loaded.flat(), saved.flat());
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
