//! Parsers and checks shared by several commands.

use gnarl_common::Error;
use gnarl_config::Engine;
use serde::Deserialize;
use serde::de::IntoDeserializer;

use crate::output::launched;

/// Parses `512MiB`, `4GiB`, `1000000`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim();
    let number: f64 = digits.parse().map_err(|_| {
        format!("invalid size '{text}': expected a number with a unit such as 512MiB")
    })?;
    let factor: f64 = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024f64.powi(2),
        "gib" | "g" => 1024f64.powi(3),
        "tib" | "t" => 1024f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        unit => return Err(format!("invalid unit '{unit}': expected MiB or GiB")),
    };
    if !(number.is_finite() && number >= 0.0) {
        return Err(format!("invalid size '{text}': expected a number with a unit such as 512MiB"));
    }
    Ok((number * factor) as u64)
}

/// The engine of that name.
pub fn engine(text: &str) -> Result<Engine, String> {
    let engine = Engine::deserialize(text.into_deserializer());
    engine.map_err(|e: serde::de::value::Error| e.to_string())
}

/// Returns an error if this is one of several processes without MPI, all of which would write to the same place.
pub fn alone(what: &str, otherwise: &str) -> gnarl_common::Result<()> {
    let processes = launched("SIZE").unwrap_or(1);
    if processes < 2 {
        return Ok(());
    }
    Err(Error::usage(format!("{what} runs one process; found {processes}"))
        .hint(format!("add --engine mpi, or {otherwise}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("1.5 MiB"), Ok(3 << 19));
        assert_eq!(size("1000"), Ok(1000));
        assert!(size("lots").is_err() && size("3 parsecs").is_err());
    }
}
