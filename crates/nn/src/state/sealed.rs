//! Safetensors files with a checksum of their own.
//!
//! The metadata has it under the name `crc32`: the CRC-32 of the names, lengths and contents of all other metadata and of all
//! tensors, both in the order of their names. Files without it, of earlier versions or of other programs, are read unchecked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crc32fast::Hasher;
use gnarl_common::Buf;
use gnarl_common::error::{Error, Result, ResultExt};
use safetensors::tensor::SafeTensors;

use super::stream::{self, Named};

/// Metadata key of the checksum.
const KEY: &str = "crc32";

/// Stands for the checksum until it is known.
const UNKNOWN: &str = "00000000";

/// Bytes that are hashed, and written or read, at a time.
const PIECE: usize = 1 << 20;

/// Writes `tensors` to `out`, with `metadata` and the checksum. Values are read once. An error of `out` is the inner one.
///
/// # Errors
/// If the format cannot hold them.
pub fn write(
    out: &mut (impl Write + Seek),
    tensors: &[Named<'_>],
    metadata: BTreeMap<String, String>,
) -> Result<std::io::Result<()>> {
    let mut with_sum = metadata.clone();
    with_sum.insert(KEY.into(), UNKNOWN.into());
    let (header, in_order) = stream::header(tensors, &with_sum)?;
    // Quotes within other texts are escaped, so that this is the entry itself.
    let entry = format!("\"{KEY}\":\"{UNKNOWN}\"");
    let place = header.windows(entry.len()).position(|part| part == entry.as_bytes());
    let place = place.ok_or_else(|| Error::invalid("writing safetensors: no checksum"))?;
    let place = (place + entry.len() - 1 - UNKNOWN.len()) as u64;
    let written = || -> std::io::Result<()> {
        let start = out.stream_position()?;
        out.write_all(&header)?;
        let mut arrays = Vec::with_capacity(in_order.len());
        for Named { name, bytes, .. } in in_order {
            let mut sum = Sum::of(name);
            for piece in bytes.chunks(PIECE) {
                sum.add(piece);
                out.write_all(piece)?;
            }
            arrays.push(sum);
        }
        let end = out.stream_position()?;
        out.seek(SeekFrom::Start(start + place))?;
        write!(out, "{:08x}", combined(texts(&metadata), arrays))?;
        out.seek(SeekFrom::Start(end)).map(drop)
    };
    Ok(written())
}

/// Compares the checksum of the file at `path` by reading it, and returns it; none if the file has none.
///
/// # Errors
/// If it differs, or the file is no safetensors file, naming it.
pub fn check(path: &Path) -> Result<Option<u32>> {
    let damaged = |why: &dyn std::fmt::Display| {
        Error::invalid(format!("{}: the file is damaged: {why}", path.display()))
    };
    let map = Buf::map(path)?;
    let (length, header) = SafeTensors::read_metadata(&map).map_err(|e| damaged(&e))?;
    let Some(metadata) = header.metadata() else { return Ok(None) };
    let Some(expected) = metadata.get(KEY) else { return Ok(None) };
    // Pages of the mapping would count as memory of this process.
    let mut file = File::open(path).at(path)?;
    let mut buffer = vec![0; PIECE.min(map.len())];
    let tensors = header.tensors();
    let mut arrays = Vec::with_capacity(tensors.len());
    for (name, tensor) in &tensors {
        let mut sum = Sum::of(name);
        let (start, end) = tensor.data_offsets;
        let first = (size_of::<u64>() + length + start) as u64;
        file.seek(SeekFrom::Start(first)).at(path)?;
        let mut left = end - start;
        while left > 0 {
            let piece = left.min(buffer.len());
            file.read_exact(&mut buffer[..piece]).at(path)?;
            sum.add(&buffer[..piece]);
            left -= piece;
        }
        arrays.push(sum);
    }
    let found = combined(texts(metadata), arrays);
    // Whoever makes a file makes its checksum: the readers behind it are fuzzed.
    match cfg!(fuzzing) || format!("{found:08x}") == *expected {
        true => Ok(Some(found)),
        false => Err(damaged(&"its checksum differs")),
    }
}

/// The checksum of a named content.
struct Sum<'a> {
    name: &'a str,
    length: usize,
    crc: Hasher,
}

impl<'a> Sum<'a> {
    fn of(name: &'a str) -> Self {
        Self { name, length: 0, crc: Hasher::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        self.crc.update(bytes);
    }
}

/// Those of metadata, without the entry of the checksum.
fn texts<'a>(metadata: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<Sum<'a>> {
    let sum = |(name, text): (&'a String, &'a String)| {
        let mut sum = Sum::of(name);
        sum.add(text.as_bytes());
        sum
    };
    metadata.into_iter().filter(|(name, _)| *name != KEY).map(sum).collect()
}

/// The checksum of a file: of names, lengths and contents, each kind by name.
fn combined(mut texts: Vec<Sum<'_>>, mut arrays: Vec<Sum<'_>>) -> u32 {
    texts.sort_unstable_by_key(|sum| sum.name);
    arrays.sort_unstable_by_key(|sum| sum.name);
    let mut all = Hasher::new();
    for Sum { name, length, crc } in texts.iter().chain(&arrays) {
        all.update(format!("{name} {length} ").as_bytes());
        all.combine(crc);
    }
    all.finalize()
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::Dtype;

    use super::*;

    fn tensors(values: &[f32]) -> [Named<'_>; 3] {
        let bytes = bytemuck::cast_slice(values);
        let tensor = |name: &str, dtype, shape: &[usize], bytes| Named {
            name: name.into(),
            dtype,
            shape: shape.into(),
            bytes,
        };
        [
            tensor("b", Dtype::F32, &[values.len() - 2, 1], &bytes[8..]),
            // Stored first, and second by name.
            tensor("ids", Dtype::U64, &[1], &bytes[..8]),
            tensor("a", Dtype::F32, &[0, 3], &[]),
        ]
    }

    fn metadata() -> BTreeMap<String, String> {
        let entries = [("about", "\"crc32\":\"00000000\""), ("z", "é")];
        entries.map(|(name, text)| (name.to_string(), text.to_string())).into()
    }

    fn written(path: &Path, values: &[f32]) {
        let mut file = File::create(path).unwrap();
        write(&mut file, &tensors(values), metadata()).unwrap().unwrap();
        drop(file);
    }

    #[test]
    fn the_checksum_is_that_of_names_lengths_and_contents() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        // More than a piece.
        let values: Vec<f32> = (0..PIECE / 2).map(|i| i as f32).collect();
        written(&path, &values);
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let mut all = b"about 18 \"crc32\":\"00000000\"z 2 \xc3\xa9a 0 b ".to_vec();
        all.extend(format!("{} ", bytes.len() - 8).as_bytes());
        all.extend(&bytes[8..]);
        all.extend(b"ids 8 ");
        all.extend(&bytes[..8]);
        assert_eq!(check(&path).unwrap(), Some(crc32fast::hash(&all)));
        let found = std::fs::read(&path).unwrap();
        let found = SafeTensors::deserialize(&found).unwrap();
        assert_eq!(found.tensor("b").unwrap().data(), &bytes[8..]);
        assert_eq!(found.tensor("ids").unwrap().data(), &bytes[..8]);
    }

    #[test]
    fn every_flip_of_a_value_or_a_text_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        let values = [1.0, 2.0, 3.0, -4.0];
        written(&path, &values);
        let whole = std::fs::read(&path).unwrap();
        let entries = |bytes: &[u8]| {
            let found = SafeTensors::deserialize(bytes).unwrap();
            let arrays = found.iter().map(|(name, of)| (name.to_string(), of.data().to_vec()));
            let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
            let mut texts = header.metadata().clone().unwrap();
            texts.remove(KEY);
            (arrays.collect::<BTreeMap<_, _>>(), texts)
        };
        for bit in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            match check(&path) {
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("model: the file is damaged: "), "{text}");
                }
                // The name of the checksum, of which nothing is known then, or spaces.
                Ok(None) => assert_eq!(entries(&flipped).0, entries(&whole).0),
                Ok(Some(_)) => assert_eq!(entries(&flipped), entries(&whole), "bit {bit}"),
            }
        }
    }

    #[test]
    fn files_without_it_are_read_unchecked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        for metadata in [BTreeMap::new(), metadata()] {
            let mut file = File::create(&path).unwrap();
            stream::write(&mut file, &tensors(&[0.5; 4]), &metadata).unwrap().unwrap();
            assert_eq!(check(&path).unwrap(), None);
        }
        std::fs::write(&path, b"neither").unwrap();
        let text = check(&path).unwrap_err().to_string();
        assert!(text.contains("model: the file is damaged: "), "{text}");
    }
}
