//! Chunk sizes of a stream of edges.

use std::fmt;
use std::str::FromStr;

use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Size of a chunk: a fraction of all edges or a number of edges.
///
/// ```
/// use gnarl_partition::Chunk;
///
/// assert_eq!("10%".parse::<Chunk>()?, Chunk::Fraction(0.1));
/// assert_eq!("0.1".parse::<Chunk>()?, Chunk::Fraction(0.1));
/// assert_eq!("5000000".parse::<Chunk>()?, Chunk::Edges(5_000_000));
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub enum Chunk {
    /// This fraction of the edges, above 0 and at most 1.
    Fraction(f64),
    /// This many edges, at least 1.
    Edges(u64),
}

impl Default for Chunk {
    fn default() -> Self {
        Self::Fraction(0.1)
    }
}

impl Chunk {
    /// The number of edges of `total` in a chunk, at least 1.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Fraction(share) => (share * total as f64).ceil().max(1.0) as u64,
            Self::Edges(count) => count.max(1),
        }
    }

    /// Rejects empty chunks and fractions above 1.
    pub(crate) fn check(self) -> Result<()> {
        let possible = match self {
            Self::Fraction(share) => share > 0.0 && share <= 1.0,
            Self::Edges(count) => count > 0,
        };
        if possible { Ok(()) } else { Err(refused(&self.to_string())) }
    }
}

impl FromStr for Chunk {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let chunk = match (text.strip_suffix('%'), text.parse()) {
            (Some(percent), _) => percent.trim_end().parse().ok().map(|p: f64| p / 100.0),
            (None, Ok(edges)) => return Self::Edges(edges).check().map(|()| Self::Edges(edges)),
            (None, Err(_)) => text.parse().ok(),
        };
        let chunk = chunk.map(Self::Fraction).ok_or_else(|| refused(text))?;
        chunk.check().map(|()| chunk)
    }
}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction(share) => write!(f, "{:?}", share),
            Self::Edges(count) => write!(f, "{count}"),
        }
    }
}

/// A chunk size as written in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Edges(u64),
    Fraction(f64),
    Text(String),
}

impl TryFrom<Written> for Chunk {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        let chunk = match written {
            Written::Edges(count) => Self::Edges(count),
            Written::Fraction(share) => Self::Fraction(share),
            Written::Text(text) => text.parse()?,
        };
        chunk.check().map(|()| chunk)
    }
}

impl From<Chunk> for String {
    fn from(chunk: Chunk) -> Self {
        chunk.to_string()
    }
}

fn refused(text: &str) -> Error {
    Error::usage(format!(
        "invalid chunk '{text}': expected a percentage such as 10% or an edge count"
    ))
    .hint("for example 10%, 0.1 or 5000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_print_as_they_parse() {
        for text in ["0.1", "1.0", "7"] {
            assert_eq!(text.parse::<Chunk>().unwrap().to_string(), text);
        }
        assert_eq!(Chunk::Fraction(0.1).of(25), 3);
        assert_eq!(Chunk::Edges(40).of(25), 40);
    }

    #[test]
    fn files_hold_numbers_or_text() {
        let read = |text: &str| serde_json::from_str::<Chunk>(text);
        assert_eq!(read("7").unwrap(), Chunk::Edges(7));
        assert_eq!(read("0.25").unwrap(), Chunk::Fraction(0.25));
        assert_eq!(read("\"25%\"").unwrap(), Chunk::Fraction(0.25));
        assert_eq!(serde_json::to_string(&Chunk::Fraction(0.25)).unwrap(), "\"0.25\"");
        assert!(read("-1").is_err() && read("1.5").is_err() && read("0").is_err());
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for text in ["", "0", "0.0", "-1", "1.5", "120%", "%", "ten", "NaN"] {
            let error = text.parse::<Chunk>().unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}");
            assert!(error.to_string().contains("10%"), "{error}");
        }
    }
}
