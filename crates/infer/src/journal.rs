//! Rows that outlive the process: an interrupted inference goes on from them.
//!
//! Each rank has files of its own in the folder: the rows of the layer that it computes and of the one before, and a record
//! of what is on disk, with checksums of it and of itself. The record is replaced as a whole, behind the rows that it names.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gnarl_common::staging::LockFile;
use gnarl_common::{Error, Result, ResultExt};

use crate::budget::Budget;
use crate::peers::Peers;
use crate::places::Places;
use crate::record::{ANEW, Record};
use crate::rows::{After, Kept};

/// Time between two records of a layer that is being computed.
const EVERY: Duration = Duration::from_secs(5);

/// A folder for rows that outlive the process.
#[derive(Debug, Clone)]
pub struct LayerFolder {
    folder: PathBuf,
    inference: String,
    every: Duration,
}

/// The rows of one rank.
pub(crate) struct Journal {
    folder: PathBuf,
    rank: usize,
    record: Record,
    saved: Instant,
    every: Duration,
    _lock: LockFile,
}

impl Journal {
    /// Opens the rows of this rank for a model of `layers` layers.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if they are of another inference, or another process has them; if their record is
    /// damaged.
    pub fn open(of: &LayerFolder, peers: Option<&Peers<'_>>, layers: usize) -> Result<Self> {
        let LayerFolder { folder, inference, every } = of;
        let rank = peers.map_or(0, Peers::rank);
        std::fs::create_dir_all(folder).at(folder)?;
        let lock = LockFile::acquire(
            &folder.join(format!("rank-{rank}.lock")),
            folder,
            "rows of layers are kept there",
        )?;
        let path = folder.join(record_name(rank));
        let none = || Record { inference: inference.clone(), at: 0, layers: BTreeMap::new() };
        let record = if path.exists() { Record::read(&path)? } else { none() };
        if record.inference != *inference {
            return Err(Error::usage(format!(
                "{}: has rows of another inference: {}; this one is {inference}",
                folder.display(),
                record.inference
            ))
            .hint("name another folder, or delete it"));
        }
        if record.at > layers {
            let place = path.display();
            let at = record.at;
            return Err(Error::invalid(format!(
                "{place}: has rows of {at} layers of a model of {layers}"
            ))
            .hint(ANEW));
        }
        let folder = folder.clone();
        let mut journal =
            Self { folder, rank, record, saved: Instant::now(), every: *every, _lock: lock };
        let begin = journal.first_layer(peers)?;
        if journal.record.at > begin + 1 {
            // The others began anew: what is left here is of an inference that was finished.
            if begin > 0 {
                return Err(Error::invalid(format!("rank {rank} has lost rows of layer {begin}"))
                    .hint(ANEW));
            }
            journal.record = none();
        }
        // A rank that was ahead computes nothing of the layer of the others, but its fetched rows come again: until then
        // the layer is not complete, whatever crashes next.
        journal.record.at = begin;
        Ok(journal)
    }

    /// The first layer that a rank has to compute.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn first_layer(&self, peers: Option<&Peers<'_>>) -> Result<usize> {
        let at = self.record.at;
        match peers {
            None => Ok(at),
            Some(peers) => Ok(-peers.largest([-(at as f64)])?[0] as usize),
        }
    }

    /// The rows of a layer that this rank computes, behind those that were kept.
    ///
    /// # Errors
    /// If files are damaged.
    pub fn own<'a>(
        &self,
        budget: &'a Budget,
        places: &[Places],
        layer: usize,
    ) -> Result<After<'a>> {
        let mut kept = self.record.layers.get(&layer).cloned().unwrap_or_default();
        // Fetched rows of a layer that other ranks have yet to complete come again.
        for (kept, places) in kept.iter_mut().zip(places) {
            kept.cut(places.num_own());
        }
        self.after(budget, places, (layer, &kept))
    }

    /// The rows of a layer that is complete.
    ///
    /// # Errors
    /// As [`Journal::own`].
    pub fn all<'a>(
        &self,
        budget: &'a Budget,
        places: &[Places],
        layer: usize,
    ) -> Result<After<'a>> {
        let kept = self.record.layers.get(&layer).map_or(&[][..], |kept| kept);
        self.after(budget, places, (layer, kept))
    }

    fn after<'a>(
        &self,
        budget: &'a Budget,
        places: &[Places],
        (layer, kept): (usize, &[Kept]),
    ) -> Result<After<'a>> {
        let (folder, rank) = (self.folder.clone(), self.rank);
        let name = move |node_type| folder.join(rows_name(layer, node_type, rank));
        After::new(budget, places.to_vec(), 0).kept(name, kept)
    }

    /// Records the rows of the layer that is being computed, if that is due.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn tick(&mut self, layer: usize, after: &mut After<'_>) -> Result<()> {
        match self.saved.elapsed() < self.every {
            true => Ok(()),
            false => self.save(layer, after),
        }
    }

    /// Records the rows of a layer so far.
    ///
    /// # Errors
    /// As [`Journal::tick`].
    pub fn save(&mut self, layer: usize, after: &mut After<'_>) -> Result<()> {
        self.record.layers.insert(layer, after.sync()?);
        self.write()
    }

    /// Records that a layer is complete, and removes the rows of the one before it.
    ///
    /// # Errors
    /// As [`Journal::tick`].
    pub fn complete(&mut self, layer: usize, after: &mut After<'_>) -> Result<()> {
        self.record.layers.insert(layer, after.sync()?);
        let old = layer.checked_sub(1);
        let old = old.and_then(|old| self.record.layers.remove(&old).map(|types| (old, types)));
        self.record.at = layer + 1;
        self.write()?;
        if let Some((layer, types)) = old {
            for (node_type, _) in types.iter().enumerate().filter(|(_, kept)| !kept.is_empty()) {
                let path = self.folder.join(rows_name(layer, node_type, self.rank));
                std::fs::remove_file(&path).at(&path)?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.record.write(&self.folder.join(record_name(self.rank)))?;
        self.saved = Instant::now();
        Ok(())
    }
}

impl LayerFolder {
    /// A folder, which need not exist, for rows of an `inference`, as described by all that they depend on: rows of another
    /// one are refused.
    pub fn new(folder: impl Into<PathBuf>, inference: impl Into<String>) -> Self {
        Self { folder: folder.into(), inference: inference.into(), every: EVERY }
    }

    /// The same with so much time between two records of a layer: what is computed meanwhile is lost in a crash.
    pub fn recording_every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Removes the rows and records of all ranks from the folder, and the folder if nothing else is in it.
    ///
    /// # Errors
    /// If files cannot be removed.
    pub fn remove(folder: &Path) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        for entry in std::fs::read_dir(folder).at(folder)? {
            let path = entry.at(folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_ours = name.starts_with("layer-") && name.ends_with(".rows")
                || name.starts_with("rank-")
                    && (name.ends_with(".json") || name.ends_with(".lock"));
            if !is_ours {
                continue;
            }
            // Another rank may be removing its lock.
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e).at(&path),
                _ => {}
            }
        }
        // Files of the user stay.
        match std::fs::remove_dir(folder) {
            Err(e) if e.kind() != ErrorKind::DirectoryNotEmpty => Err(e).at(folder),
            _ => Ok(()),
        }
    }
}

fn record_name(rank: usize) -> String {
    format!("rank-{rank}.json")
}

fn rows_name(layer: usize, node_type: usize, rank: usize) -> String {
    format!("layer-{layer}.type-{node_type}.rank-{rank}.rows")
}

#[cfg(test)]
mod tests {
    use gnarl_engine::{Communicator, local};

    use super::*;
    use crate::peers::EvenOwners;

    #[test]
    fn a_rank_that_is_ahead_goes_back_to_the_layer_of_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LayerFolder::new(dir.path(), "of a test");
        for (rank, at) in [(0, 2), (1, 1)] {
            let record = Record { inference: "of a test".into(), at, layers: BTreeMap::new() };
            record.write(&dir.path().join(record_name(rank))).unwrap();
        }
        let owners = EvenOwners::new(&[2], 2, |_, _| 1);
        let found = local::run(2, Duration::from_secs(60), |rank| {
            let peers = Peers::new(rank as &dyn Communicator, &owners);
            let journal = Journal::open(&folder, Some(&peers), 3)?;
            // Until the layer is filled again its rows are not all there, whatever the first record says.
            Ok((journal.record.at, journal.first_layer(Some(&peers))?))
        });
        assert_eq!(found.unwrap(), [(1, 1), (1, 1)]);
    }
}
