//! Files of JSON with a checksum of their own.
//!
//! Their first entry is `crc32`, in eight hexadecimal digits: the CRC-32 of all bytes that follow these, up to the last brace.
//! Files without it, or written in another form, as by programs that change them, are read as they are.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result, ResultExt};

/// Begins a file with a checksum.
const START: &str = "{\n  \"crc32\": \"";

/// The text of an object with its checksum.
///
/// # Errors
/// If the value has no form in JSON.
pub fn to_string(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::invalid(format!("cannot be written as JSON: {e}")))?;
    let entries = format!("\",{}", text.trim_start_matches('{'));
    Ok(format!("{START}{:08x}{entries}", crc32fast::hash(entries.as_bytes())))
}

/// Reads the file at `path`, and compares its checksum if it has one.
///
/// # Errors
/// If it cannot be read, is damaged, or is no such value, naming it.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).at(path)?;
    let of_file = |why: &str| Error::invalid(format!("{}: {why}", path.display()));
    if let Some(rest) = text.strip_prefix(START) {
        let (sum, entries) = rest.split_at_checked(8).unwrap_or((rest, ""));
        // Editors end a file with a new line.
        let found = crc32fast::hash(entries.trim_end().as_bytes());
        // Whoever makes a file makes its checksum: the readers behind it are fuzzed.
        let is_whole = cfg!(fuzzing) || sum == format!("{found:08x}");
        if !is_whole {
            return Err(of_file("damaged or changed after it was written: checksum differs")
                .hint("remove its entry crc32 if the change is yours"));
        }
    }
    serde_json::from_str(&text).map_err(|e| of_file(&e.to_string()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Found {
        parts: u32,
        names: Vec<String>,
    }

    #[test]
    fn every_flipped_bit_is_found_and_changes_by_programs_are_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let value = Found { parts: 7, names: vec!["é".into(), "crc32".into()] };
        let text = to_string(&value).unwrap();
        let of_bytes = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read::<Found>(&path)
        };
        assert_eq!(of_bytes(text.as_bytes()).unwrap(), value);
        for bit in 0..8 * text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match of_bytes(&flipped) {
                // The name of the checksum.
                Ok(found) => assert_eq!(found, value, "bit {bit}"),
                Err(error) => assert!(error.to_string().contains("a.json"), "{error}"),
            }
        }
        assert_eq!(of_bytes(format!("{text}\n").as_bytes()).unwrap(), value);
        let by_hand = text.replace('7', "8");
        let error = of_bytes(by_hand.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("checksum differs") && error.contains("entry crc32"), "{error}");
        let mut parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        parsed["parts"] = 8.into();
        assert_eq!(of_bytes(parsed.to_string().as_bytes()).unwrap().parts, 8);
        parsed.as_object_mut().unwrap().remove("crc32");
        let pretty = serde_json::to_string_pretty(&parsed).unwrap();
        assert_eq!(of_bytes(pretty.as_bytes()).unwrap().parts, 8);
    }
}
