//! Reader of target edges.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use gnarl_common::Buf;
use gnarl_common::error::{Error, Result};
use gnarl_graph::triples::{Side, Triples};
use gnarl_graph::{Column, ColumnSpec, Labels};

use super::TargetsManifest;
use super::files::Files;
use super::search::search;

/// The target edges of one part, mapped.
#[derive(Debug, Clone)]
pub struct PartTargets {
    /// `train`, `valid` and `test`.
    pub splits: [SplitTargets; 3],
}

/// The target edges of one part and split, mapped; a row per edge.
#[derive(Debug, Clone)]
pub struct SplitTargets {
    /// Number of each edge in its split, in the order of the dataset; ascending.
    pub places: Buf<u32>,
    /// Sources, by dataset ids within their node type.
    pub heads: Buf<u32>,
    /// Relation of each; all 0 where there are none.
    pub relations: Buf<u32>,
    /// Destinations, by dataset ids within their node type.
    pub tails: Buf<u32>,
    /// Labels, if edges have any.
    pub labels: Option<Labels>,
    /// Features, in the type they have in the dataset, if edges have any.
    pub features: Option<Column>,
    /// Times, if edges have any.
    pub times: Option<Buf<i64>>,
}

impl PartTargets {
    /// Opens the target edges of `part` in `dir`.
    pub(crate) fn open(dir: &Path, manifest: &TargetsManifest, part: usize) -> Result<Self> {
        let open = |split| SplitTargets::open(dir, manifest, (part, split));
        Ok(Self { splits: [open(0)?, open(1)?, open(2)?] })
    }

    /// Edges of the splits with the numbers `splits` that match one of `keys`, `[given endpoint, relation]`: edges of
    /// that relation whose endpoint opposite to `side` is the given one. One pass over the files; edges in the order
    /// of splits and places.
    ///
    /// # Panics
    /// If there are no such splits.
    pub fn matching(&self, splits: Range<usize>, side: Side, keys: &HashSet<[u32; 2]>) -> Triples {
        let mut found = Triples::default();
        for split in &self.splits[splits] {
            let Triples { heads, relations, tails } = split.matching(side, keys);
            found.heads.extend(heads);
            found.relations.extend(relations);
            found.tails.extend(tails);
        }
        found
    }

    /// Recomputes the checksums of all files. Returns how many there are.
    ///
    /// # Errors
    /// At the first that differs, naming it.
    pub(crate) fn verify(dir: &Path, manifest: &TargetsManifest, part: usize) -> Result<usize> {
        let specs: Vec<&ColumnSpec> =
            manifest.parts.get(part).into_iter().flatten().flatten().collect();
        specs.iter().try_for_each(|spec| Column::open(dir, spec)?.verify())?;
        Ok(specs.len())
    }
}

impl SplitTargets {
    fn open(dir: &Path, manifest: &TargetsManifest, (part, split): (usize, usize)) -> Result<Self> {
        let damaged = || Error::invalid(format!("the manifest has no target edges of part {part}"));
        let specs = &manifest.parts.get(part).ok_or_else(damaged)?[split];
        let rows = *manifest.counts[split].get(part).ok_or_else(damaged)?;
        let files = Files { dir, split, specs, rows };
        let places: Buf<u32> = files.values("place")?;
        files.check_places(&places, manifest.split_len(split))?;
        Ok(Self {
            places,
            heads: files.values("head")?,
            relations: files.values("relation")?,
            tails: files.values("tail")?,
            labels: manifest.labels.map(|kind| files.labels(kind)).transpose()?,
            features: files.features(manifest.feature_width)?,
            times: if manifest.times { Some(files.values("time")?) } else { None },
        })
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Local rows of the `places` that the part has: pairs of the position in `places`, ascending, and the row.
    pub fn find(&self, places: &[u32]) -> Vec<(u32, u32)> {
        let row = |place: u32| search(&self.places, place).map(|row| row as u32);
        (0..).zip(places).filter_map(|(at, &place)| Some((at, row(place)?))).collect()
    }

    /// The edges at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is out of range.
    pub fn edges(&self, rows: &[u32]) -> Triples {
        let pick = |column: &[u32]| rows.iter().map(|&row| column[row as usize]).collect();
        Triples {
            heads: pick(&self.heads),
            relations: pick(&self.relations),
            tails: pick(&self.tails),
        }
    }

    /// The edges of a range of rows.
    ///
    /// # Panics
    /// If it is out of range.
    pub fn stretch(&self, rows: Range<usize>) -> Triples {
        Triples {
            heads: self.heads[rows.clone()].to_vec(),
            relations: self.relations[rows.clone()].to_vec(),
            tails: self.tails[rows].to_vec(),
        }
    }

    fn matching(&self, side: Side, keys: &HashSet<[u32; 2]>) -> Triples {
        let given = match side {
            Side::Head => &self.tails,
            Side::Tail => &self.heads,
        };
        let mut found = Triples::default();
        for (row, (&given, &relation)) in given.iter().zip(self.relations.iter()).enumerate() {
            if keys.contains(&[given, relation]) {
                found.push(self.heads[row], relation, self.tails[row]);
            }
        }
        found
    }
}
