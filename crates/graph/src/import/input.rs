//! Input files: their kind is detected by their first bytes, never by their name.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use gnarl_common::{Error, Result, ResultExt};

/// The kind of a file, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Anything else: presumably text.
    Text,
    Gzip,
    Parquet,
    Npy,
    /// Also a workbook of Excel, and a file of torch.
    Zip,
    Utf16,
    /// A kind that no importer supports, by its name.
    Other(&'static str),
}

/// First bytes of each kind.
const MAGIC: [(&[u8], FileKind); 12] = [
    (b"\x1f\x8b", FileKind::Gzip),
    (b"PAR1", FileKind::Parquet),
    (b"\x93NUMPY", FileKind::Npy),
    (b"PK\x03\x04", FileKind::Zip),
    (b"\xff\xfe", FileKind::Utf16),
    (b"\xfe\xff", FileKind::Utf16),
    (b"\x28\xb5\x2f\xfd", FileKind::Other("compressed with zstd")),
    (b"BZh", FileKind::Other("compressed with bzip2")),
    (b"\xfd7zXZ", FileKind::Other("compressed with xz")),
    (b"\x89HDF", FileKind::Other("an HDF5 file")),
    (b"ARROW1", FileKind::Other("an Arrow or Feather file")),
    (b"\x80\x04\x95", FileKind::Other("a Python pickle")),
];

/// Number of bytes that determine the kind.
const HEAD: u64 = 8;
/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

impl FileKind {
    fn of(head: &[u8]) -> Self {
        let known = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
        match known {
            Some((_, kind)) => *kind,
            // Latin letters of UTF-16 without a mark: every second byte is 0.
            None if head.len() >= 4
                && (head[1] == 0) != (head[0] == 0)
                && head[2..4].contains(&0) =>
            {
                Self::Utf16
            }
            None => Self::Text,
        }
    }

    /// The kind of the file at `path`; text if it is unreadable.
    pub fn at(path: &Path) -> Self {
        Input::open(path).map_or(Self::Text, |input| input.kind)
    }

    /// Noun and remedy for an error about a file of this kind.
    pub fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text", "tables of text are read by 'gnarl import csv' and 'tsv'"),
            Self::Gzip => ("compressed with gzip", "unpack it with gunzip"),
            Self::Parquet => ("a Parquet file", "'gnarl import parquet' reads it"),
            Self::Npy => ("a numpy array", "'gnarl import npy' reads it"),
            Self::Zip => (
                "a zip archive or an Excel workbook",
                "unpack it, or save the sheet as CSV (UTF-8)",
            ),
            Self::Utf16 => ("text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW"),
            Self::Other(name) => (name, "convert it to CSV, Parquet or npy"),
        }
    }
}

/// An opened file of known kind.
pub(super) struct Input {
    name: String,
    pub kind: FileKind,
    bytes: Box<dyn Read>,
}

impl Input {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If there is none, with the place and its contents; if it is a folder.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| unopened(path, e))?;
        if file.metadata().at(path)?.is_dir() {
            return Err(Error::invalid(format!("{name}: is a folder, a file is needed"))
                .hint(format!("it holds: {}", listing(path))));
        }
        Self::of(name, file)
    }

    fn of(name: String, mut bytes: impl Read + 'static) -> Result<Self> {
        let mut head = Vec::new();
        bytes.by_ref().take(HEAD).read_to_end(&mut head).at(&name)?;
        let kind = FileKind::of(&head);
        let head = if head.starts_with(BOM) { head.split_off(BOM.len()) } else { head };
        Ok(Self { name, kind, bytes: Box::new(Cursor::new(head).chain(bytes)) })
    }

    /// The text of the file, unpacked, without byte order mark.
    ///
    /// # Errors
    /// If it is no text, with its kind and the remedy.
    pub fn text(self) -> Result<Box<dyn Read>> {
        let mut input = self;
        if input.kind == FileKind::Gzip {
            input = Self::of(input.name, MultiGzDecoder::new(input.bytes))?;
        }
        if input.kind == FileKind::Text {
            return Ok(input.bytes);
        }
        let (what, cure) = input.kind.described();
        Err(Error::invalid(format!("{}: is {what}, not a table of text", input.name)).hint(cure))
    }
}

/// A whole file of text, unpacked, without byte order mark.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    Input::open(path)?.text()?.read_to_string(&mut text).at(path)?;
    Ok(text)
}

/// The lines of a text file with one name each, its last line break aside.
///
/// # Errors
/// For an empty line, a name that is there twice and a line of several columns, by number.
pub(super) fn names(path: &Path) -> Result<Vec<String>> {
    let text = read_text(path)?;
    let mut names: Vec<String> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (at, line) in text.lines().enumerate() {
        let name = line.trim();
        let bad =
            |what: String| Error::invalid(format!("{}: line {}: {what}", path.display(), at + 1));
        if name.is_empty() {
            return Err(bad("no name".into()).hint("line i names number i, counted from 0"));
        }
        if name.contains('\t') {
            return Err(bad("several columns".into()).hint(
                "one name in each line; of a dictionary take that column: cut -f2 FILE > NEW",
            ));
        }
        if let Some(before) = known.insert(name.to_string(), at + 1) {
            return Err(bad(format!("the name '{name}' is in line {before} too"))
                .hint("names lead back to ids, so each is there once"));
        }
        names.push(name.into());
    }
    Ok(names)
}

/// The error of a file that cannot be opened.
fn unopened(path: &Path, error: std::io::Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return Error::io(path, error);
    }
    let full = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let folder = full.parent().unwrap_or(Path::new("/"));
    let found = match path.to_string_lossy().contains(['*', '?']) {
        true => "name one file for each option; patterns are not expanded".to_string(),
        false if !folder.is_dir() => format!("there is no folder {}", folder.display()),
        false => format!("{} holds: {}", folder.display(), listing(folder)),
    };
    Error::io(path, error).hint(format!("looked for {}; {found}", full.display()))
}

/// Some names in a folder, without hidden files such as locks.
fn listing(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else { return "nothing that can be read".into() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    if names.is_empty() { "nothing".into() } else { shortened(&names, 8) }
}

/// A human-readable list of names, of which at most about `most` are spelled out.
pub(super) fn shortened<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let all = |names: &[T]| names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() <= most {
        return all(names);
    }
    format!("{}, … ({} in all)", all(&names[..most]), names.len())
}
