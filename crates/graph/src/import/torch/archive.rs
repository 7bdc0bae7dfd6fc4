//! The zip archive around a pickle: records without compression.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result, ResultExt};

/// First bytes of torch's magic number, with which files began before 1.6.
const LEGACY: [u8; 14] =
    [0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// Position of a record's bytes.
#[derive(Debug)]
struct Record {
    start: u64,
    size: u64,
    crc32: u32,
}

/// The records of a file by their names below the archive's folder.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    records: BTreeMap<String, Record>,
}

impl Archive {
    /// Opens the archive and finds its records.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).at(path)?;
        refuse_others(path, &mut file)?;
        let bad = |e: &dyn std::fmt::Display| {
            Error::invalid(format!("{}: not a readable file of torch: {e}", path.display()))
                .hint("write it with torch.save, and copy it whole")
        };
        let length = file.metadata().at(path)?.len();
        let mut archive = zip::ZipArchive::new(file).map_err(|e| bad(&e))?;
        let mut records = BTreeMap::new();
        for i in 0..archive.len() {
            let entry = archive.by_index_raw(i).map_err(|e| bad(&e))?;
            let name = entry.name().map_err(|e| bad(&e))?.into_owned();
            let stored = entry.compression() == zip::CompressionMethod::Stored;
            if !stored || entry.encrypted() || entry.size() != entry.compressed_size() {
                return Err(bad(&format!("{name} is compressed, torch's records are not")));
            }
            let (start, size) = (entry.data_start().unwrap_or(length), entry.size());
            if start.checked_add(size).is_none_or(|end| end > length) {
                return Err(bad(&format!("{name} reaches beyond the end")));
            }
            let below = name.split_once('/').map_or(name.as_str(), |(_, below)| below);
            records.insert(below.to_string(), Record { start, size, crc32: entry.crc32() });
        }
        let found = Self { path: path.into(), records };
        if found.records.contains_key("byteorder") && found.read("byteorder")? != b"little" {
            return Err(bad(&"it was written on a big-endian machine"));
        }
        Ok(found)
    }

    fn record(&self, name: &str) -> Result<&Record> {
        self.records.get(name).ok_or_else(|| {
            Error::invalid(format!("{}: the record {name} is missing", self.path.display()))
                .hint("write the file with torch.save, and copy it whole")
        })
    }

    /// Bytes of a record.
    pub fn size(&self, name: &str) -> Result<u64> {
        self.record(name).map(|record| record.size)
    }

    /// Reads a record, which is no longer than the file, and compares its checksum.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let (record, path) = (self.record(name)?, &self.path);
        let mut file = File::open(path).at(path)?;
        file.seek(SeekFrom::Start(record.start)).at(path)?;
        let mut bytes = vec![0; record.size as usize];
        file.read_exact(&mut bytes).at(path)?;
        if crc32fast::hash(&bytes) != record.crc32 {
            return Err(Error::invalid(format!(
                "{}: the record {name} is damaged: its checksum is another",
                path.display()
            ))
            .hint("copy the file again"));
        }
        Ok(bytes)
    }
}

/// Rejects pickles without an archive.
fn refuse_others(path: &Path, file: &mut File) -> Result<()> {
    let mut start = Vec::new();
    file.by_ref().take(LEGACY.len() as u64).read_to_end(&mut start).at(path)?;
    let name = path.display();
    if start == LEGACY {
        return Err(Error::invalid(format!("{name}: in the format of torch before 1.6")).hint(
            "if you trust where it comes from, convert it in Python, which runs what it holds: \
             torch.save(torch.load(f), f), with weights_only=False in load if it has numpy arrays",
        ));
    }
    if start.first() == Some(&LEGACY[0]) {
        return Err(Error::invalid(format!("{name}: a pickle, not a file of torch"))
            .hint("write it with torch.save"));
    }
    file.seek(SeekFrom::Start(0)).at(path).map(drop)
}
