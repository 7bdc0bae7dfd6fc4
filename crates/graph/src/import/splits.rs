//! Splits of nodes and edges: their names, and members without a label.

use gnarl_common::{Error, Kind, Result};

use super::extra::{NO_SPLIT, SPLITS};
use super::notes::LeftOut;
use crate::column::Column;
use crate::inspect::grouped;
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};
use crate::writer::DatasetWriter;

/// Other names of the splits in [`SPLITS`], in lower case.
const ALIASES: [(&str, &str); 5] = [
    ("training", "train"),
    ("val", "valid"),
    ("validation", "valid"),
    ("dev", "valid"),
    ("testing", "test"),
];

/// The split that a name from a user or a file means: `train`, `valid` or `test` for their usual
/// names in any case, else the name itself.
pub(super) fn split_name(given: &str) -> &str {
    let name = given.trim();
    let known = SPLITS.iter().map(|split| (*split, *split)).chain(ALIASES);
    known.into_iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias)).map_or(name, |(_, s)| s)
}

/// The number of an edge split from its name in a run file or a file.
///
/// # Errors
/// Of `kind`, if there is none of that name.
pub(super) fn split_number(name: &str, kind: Kind) -> Result<u8> {
    let number = SPLITS.iter().position(|known| *known == split_name(name));
    number.map(|number| number as u8).ok_or_else(|| {
        Error::new(kind, format!("edges have no split '{name}'"))
            .hint("splits of edges are train, valid (also val, validation, dev) and test")
    })
}

/// Stores a split of nodes under the canonical name of `given`, without the nodes that have no
/// class. The column `label` of `ntype`, if any, must be complete.
///
/// # Errors
/// If an id is out of range or listed twice, or the split was stored before.
pub(super) fn add_split(
    writer: &mut DatasetWriter,
    ntype: &str,
    given: &str,
    mut ids: Vec<u64>,
) -> Result<()> {
    let name = split_name(given);
    let listed = ids.len() as u64;
    if !SPLITS.contains(&name) {
        tracing::warn!(
            "split '{name}' is stored but no run uses it ({} nodes); runs read train, valid, test",
            grouped(listed)
        );
    }
    let columns = &writer.node_type(ntype)?.columns;
    let label = columns.iter().find(|c| c.name == "label" && c.shape.len() == 1).cloned();
    if let Some(spec) = label {
        let classes = Column::open(writer.tmp_dir(), &spec)?.values::<i32>()?;
        // Ids out of range are reported by the writer.
        ids.retain(|&id| classes.get(id as usize).is_none_or(|&class| class >= 0));
    }
    let kept = ids.len() as u64;
    writer.add_split(ntype, name, ids)?;
    report(writer, ntype, name, listed - kept, listed, "nodes");
    Ok(())
}

/// The `members`, nodes or edges, of a type, whose name is omitted for homogeneous graphs.
pub(super) fn members_of(of_type: &str, members: &str) -> String {
    match of_type == DEFAULT_NODE_TYPE || of_type == Triple::plain().to_string() {
        true => members.to_string(),
        false => format!("{members} of {of_type}"),
    }
}

/// Logs the number of unlabeled members of a split, and notes it for the report.
pub(super) fn report(
    writer: &mut DatasetWriter,
    of_type: &str,
    split: &str,
    unlabeled: u64,
    of: u64,
    members: &str,
) {
    if unlabeled == 0 {
        return;
    }
    let (few, all) = (grouped(unlabeled), grouped(of));
    let members = members_of(of_type, members);
    tracing::warn!("{few} of {all} {split} {members} have no label and are left out");
    let (of_type, split) = (of_type.to_string(), split.to_string());
    writer.notes.left_out.push(LeftOut { of_type, split, unlabeled, of });
}

/// Split membership of a type's edges, counted as they are read.
#[derive(Default)]
pub(super) struct EdgeSplits {
    listed: [u64; 3],
    unlabeled: [u64; 3],
}

impl EdgeSplits {
    /// The number of the split that an edge is stored in: none if it has no label.
    pub fn keep(&mut self, split: u8, labeled: bool) -> u8 {
        let number = usize::from(split);
        if number >= SPLITS.len() {
            return NO_SPLIT;
        }
        self.listed[number] += 1;
        self.unlabeled[number] += u64::from(!labeled);
        if labeled { split } else { NO_SPLIT }
    }

    /// Logs the number of edges left out, and notes it for the report.
    pub fn report(&self, writer: &mut DatasetWriter, of_type: &str) {
        for (number, split) in SPLITS.iter().enumerate() {
            let (unlabeled, listed) = (self.unlabeled[number], self.listed[number]);
            report(writer, of_type, split, unlabeled, listed, "edges");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_of_splits_in_any_case_are_known() {
        let valid = ["valid", "val", "Val", "VALIDATION", "dev", " Valid "];
        assert!(valid.iter().all(|name| split_name(name) == "valid"));
        assert!(["train", "Train", "TRAINING"].iter().all(|name| split_name(name) == "train"));
        assert!(["test", "TEST", "Testing"].iter().all(|name| split_name(name) == "test"));
        assert_eq!(split_name("Holdout"), "Holdout");
        assert_eq!(split_name("eval"), "eval", "validation to some, test to others");
        assert_eq!(split_number("Dev", Kind::Usage).unwrap(), 1);
    }
}
