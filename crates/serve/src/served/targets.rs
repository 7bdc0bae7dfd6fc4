//! The target edges of a part.

use std::sync::OnceLock;

use gnarl_common::{Error, Result};
use gnarl_graph::triples::{FilteredSet, Side, Triples};
use gnarl_graph::{Features, Labels};
use gnarl_partition::{PartTargets, PartitionedDataset, SplitTargets};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use crate::command::SPLITS;
use crate::targets::{FoundTargets, distinct};

/// Target edges, mapped.
pub(super) struct Targets {
    part: usize,
    files: PartTargets,
    /// Features by split.
    features: [Option<MappedFeatures>; 3],
    /// The part's training edges, indexed when they are first asked for.
    known: OnceLock<FilteredSet>,
}

impl Targets {
    /// Opens the target edges of `part`, if the partition has any.
    pub fn open(parts: &PartitionedDataset, part: usize) -> Result<Option<Self>> {
        let Some(files) = parts.targets(part)? else { return Ok(None) };
        let [train, valid, test] = files.splits.each_ref().map(features);
        let features = [train?, valid?, test?];
        Ok(Some(Self { part, files, features, known: OnceLock::new() }))
    }

    /// Most labels of an edge.
    pub fn outputs(&self) -> usize {
        let labels = self.files.splits.iter().filter_map(|split| split.labels.as_ref());
        labels.map(Labels::outputs).max().unwrap_or(0)
    }

    fn split(&self, split: usize) -> Result<&SplitTargets> {
        self.files.splits.get(split).ok_or_else(|| {
            Error::usage(format!("part {} has no split {split} of target edges", self.part))
                .hint(format!("expected 0 to 2: {}", SPLITS.join(", ")))
        })
    }

    /// Number of edges of a split.
    pub fn len(&self, split: usize) -> Result<u64> {
        self.split(split).map(|files| files.len() as u64)
    }

    /// The edges at `places` of a split, as far as the part has them.
    pub fn find(&self, split: usize, places: &[u32]) -> Result<FoundTargets> {
        let found = self.split(split)?.find(places);
        let (positions, rows): (Vec<u32>, Vec<u32>) = found.into_iter().unzip();
        let edges = self.files.splits[split].edges(&rows);
        self.with_columns(split, positions, edges, &rows)
    }

    /// The edges of a split from the `from`-th on, at most `most`; none after the last.
    pub fn stretch(&self, split: usize, from: u64, most: u64) -> Result<Option<FoundTargets>> {
        let files = self.split(split)?;
        let len = files.len() as u64;
        let rows = from.min(len)..from.saturating_add(most).min(len);
        if rows.is_empty() && from > 0 {
            return Ok(None);
        }
        let (start, end) = (rows.start as usize, rows.end as usize);
        let (places, edges) = (files.places[start..end].to_vec(), files.stretch(start..end));
        let rows: Vec<u32> = rows.map(|row| row as u32).collect();
        self.with_columns(split, places, edges, &rows).map(Some)
    }

    fn with_columns(
        &self,
        split: usize,
        positions: Vec<u32>,
        edges: Triples,
        rows: &[u32],
    ) -> Result<FoundTargets> {
        let labels = self.files.splits[split].labels.as_ref();
        let features = self.features[split].as_ref().map(|features| {
            let width = features.width();
            let mut values = vec![0.0; rows.len() * width];
            let out = values.chunks_mut(width.max(1));
            rows.iter().zip(out).try_for_each(|(&row, out)| features.copy_row(row.into(), out))?;
            Ok(values)
        });
        let labels = labels.map(|labels| pick(labels, rows));
        let times = self.files.splits[split].times.as_ref();
        let times = times.map(|times| rows.iter().map(|&row| times[row as usize]).collect());
        Ok(FoundTargets { positions, edges, labels, features: features.transpose()?, times })
    }

    /// Values of a row of features; 0 without features.
    pub fn feature_width(&self) -> usize {
        self.features[0].as_ref().map_or(0, |features| features.width())
    }

    /// The part's edges that match one of `keys`, see [`PartTargets::matching`]: training edges by an index, or those of
    /// all splits in one pass over the files.
    pub fn known(&self, side: Side, keys: &[[u32; 2]], train: bool) -> Triples {
        if !train {
            return self.files.matching(0..SPLITS.len(), side, &distinct(keys).collect());
        }
        let index = self.known.get_or_init(|| {
            let train = &self.files.splits[0];
            FilteredSet::new(&[&train.stretch(0..train.len())])
        });
        let mut found = Triples::default();
        for [given, relation] in distinct(keys) {
            for &end in index.ends(side, given, relation) {
                match side {
                    Side::Head => found.push(end, relation, given),
                    Side::Tail => found.push(given, relation, end),
                }
            }
        }
        found
    }
}

fn features(split: &SplitTargets) -> Result<Option<MappedFeatures>> {
    let column = split.features.clone().map(Features::Dense);
    column.map(|column| MappedFeatures::new(column, Normalize::None)).transpose()
}

/// The labels at `rows`.
fn pick(labels: &Labels, rows: &[u32]) -> Labels {
    match labels {
        Labels::Single { classes, count } => {
            let classes: Vec<i32> = rows.iter().map(|&row| classes[row as usize]).collect();
            Labels::Single { classes: classes.into(), count: *count }
        }
        Labels::Multi { values, tasks } => {
            let row = |&row: &u32| &values[row as usize * tasks..(row as usize + 1) * tasks];
            let values: Vec<u8> = rows.iter().flat_map(row).copied().collect();
            Labels::Multi { values: values.into(), tasks: *tasks }
        }
        Labels::Values { values } => {
            let values: Vec<f32> = rows.iter().map(|&row| values[row as usize]).collect();
            Labels::Values { values: values.into() }
        }
    }
}
