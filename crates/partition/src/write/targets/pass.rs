//! One pass over the target edges: those of some parts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use gnarl_common::Element;
use gnarl_common::error::{Error, Kind, Result, ResultExt};
use gnarl_graph::{Column, ColumnSpec};

use super::labels::LabelColumn;
use super::{LabelOf, SPLITS, TARGETS, TakeTarget, TargetEdge, TargetLabels};
use crate::dataset::part_dir;
use crate::write::columns::NamedColumn;
use crate::write::layout::Layout;
use crate::write::rows::{CreateColumn, Rows, rows};

/// The columns of target edges, whatever the parts.
pub(super) struct Pass<'a, 'l> {
    /// Directory of the partition.
    pub dir: &'a Path,
    pub layout: &'a Layout,
    pub labels: Option<(TargetLabels, LabelOf<'l>)>,
    pub features: Option<Column>,
    /// True if times are written.
    pub times: bool,
    /// First graph-wide id of the heads' node type.
    pub first: u64,
    /// Number of heads, relations and tails: each is below.
    pub limits: [u64; 3],
}

/// The columns of some parts, and the numbers of edges of each split in all parts.
pub(super) type Written = (Vec<[Vec<ColumnSpec>; 3]>, [u64; 3]);

impl<'l> Pass<'_, 'l> {
    /// Files per part.
    pub fn files(&self) -> usize {
        SPLITS.len() * self.columns()
    }

    fn columns(&self) -> usize {
        let more = [self.labels.is_some(), self.features.is_some(), self.times];
        4 + more.into_iter().filter(|&there| there).count()
    }

    /// Writes the target edges of `parts`, of all that `each` streams.
    ///
    /// # Errors
    /// For an edge that is out of range; [`Kind::Limit`] for more than 2^32 edges of a split.
    pub fn run(
        &self,
        parts: Range<usize>,
        each: &mut dyn FnMut(&mut TakeTarget<'_>) -> Result<()>,
    ) -> Result<Written> {
        let outlets = parts.clone().map(|part| self.outlets(part));
        let mut outlets = outlets.collect::<Result<Vec<_>>>()?;
        let mut counts = [0u64; 3];
        each(&mut |edge: TargetEdge| {
            self.check(&edge)?;
            let place = counts[edge.split];
            counts[edge.split] += 1;
            let place = u32::try_from(place).map_err(|_| too_many(edge.split))?;
            let owner = self.layout.of[(self.first + u64::from(edge.head)) as usize] as usize;
            if parts.contains(&owner) {
                outlets[owner - parts.start][edge.split].take(place, &edge)?;
            }
            Ok(())
        })?;
        let specs = outlets
            .into_iter()
            .map(|[train, valid, test]| Ok([train.finish()?, valid.finish()?, test.finish()?]));
        Ok((specs.collect::<Result<_>>()?, counts))
    }

    fn check(&self, edge: &TargetEdge) -> Result<()> {
        let values = [edge.head, edge.relation, edge.tail];
        for ((name, value), limit) in
            ["head", "relation", "tail"].iter().zip(values).zip(self.limits)
        {
            if u64::from(value) >= limit {
                let row = edge.row;
                return Err(Error::invalid(format!(
                    "invalid {name} '{value}' of edge {row}: expected a number below {limit}"
                )));
            }
        }
        if edge.split >= SPLITS.len() {
            return Err(Error::invalid(format!("invalid split '{}': expected 0 to 2", edge.split)));
        }
        match &self.features {
            Some(column) if edge.row >= column.rows() as u64 => {
                let (row, rows) = (edge.row, column.rows());
                Err(Error::invalid(format!("edge {row} has no features: there are {rows} rows")))
            }
            _ => Ok(()),
        }
    }

    fn outlets(&self, part: usize) -> Result<[Outlet<'l>; 3]> {
        let dir = self.dir.join(part_dir(part)).join(TARGETS);
        std::fs::create_dir_all(&dir).at(&dir)?;
        let open = |split: &str| Outlet::create(self, &dir, split);
        Ok([open(SPLITS[0])?, open(SPLITS[1])?, open(SPLITS[2])?])
    }
}

fn too_many(split: usize) -> Error {
    let name = SPLITS[split];
    Error::new(Kind::Limit, format!("the {name} split has more than 2^32 target edges"))
}

/// The target edges of one part and split.
struct Outlet<'a> {
    place: NamedColumn<u32>,
    head: NamedColumn<u32>,
    relation: NamedColumn<u32>,
    tail: NamedColumn<u32>,
    label: Option<LabelColumn<'a>>,
    features: Option<Box<dyn Rows>>,
    time: Option<NamedColumn<i64>>,
}

struct Target<'a> {
    dir: PathBuf,
    split: &'a str,
}

impl CreateColumn for Target<'_> {
    type Column<T: Element> = NamedColumn<T>;

    fn create<T: Element>(&self, name: &str, row: &[u64]) -> Result<NamedColumn<T>> {
        NamedColumn::create(&self.dir, self.split, name, row)
    }
}

impl<'a> Outlet<'a> {
    fn create(pass: &Pass<'_, 'a>, dir: &Path, split: &str) -> Result<Self> {
        let target = Target { dir: dir.to_path_buf(), split };
        let label = pass.labels.map(|labels| LabelColumn::create(dir, split, labels));
        Ok(Self {
            place: target.create("place", &[])?,
            head: target.create("head", &[])?,
            relation: target.create("relation", &[])?,
            tail: target.create("tail", &[])?,
            label: label.transpose()?,
            features: pass.features.as_ref().map(|column| rows(column, &target)).transpose()?,
            time: if pass.times { Some(target.create("time", &[])?) } else { None },
        })
    }

    fn take(&mut self, place: u32, edge: &TargetEdge) -> Result<()> {
        self.place.push(&[place])?;
        self.head.push(&[edge.head])?;
        self.relation.push(&[edge.relation])?;
        self.tail.push(&[edge.tail])?;
        if let Some(label) = &mut self.label {
            label.push(edge.row)?;
        }
        if let Some(time) = &mut self.time {
            time.push(&[edge.time])?;
        }
        self.features.as_mut().map_or(Ok(()), |features| features.row(edge.row))
    }

    fn finish(self) -> Result<Vec<ColumnSpec>> {
        let mut specs = vec![
            self.place.finish()?,
            self.head.finish()?,
            self.relation.finish()?,
            self.tail.finish()?,
        ];
        if let Some(label) = self.label {
            specs.push(label.finish()?);
        }
        if let Some(features) = self.features {
            specs.push(features.finish()?);
        }
        if let Some(time) = self.time {
            specs.push(time.finish()?);
        }
        Ok(specs)
    }
}
