//! Columns of user ids and of relations.

use gnarl_graph::{UserIdKind, UserIds};
use gnarl_infer::export::{Cells, Column, Kind};
use gnarl_train::EdgeModel;

/// The type of the ids.
pub(super) fn kind(ids: &UserIds) -> Kind {
    match ids.kind() {
        UserIdKind::Integer => Kind::Integer,
        UserIdKind::Text => Kind::Text,
    }
}

/// Ids of some nodes, or names of something.
pub(super) enum Ids<'a> {
    Integers(Vec<i64>),
    Texts(Vec<&'a str>),
}

impl<'a> Ids<'a> {
    /// Those of `nodes`.
    pub fn of(ids: &'a UserIds, nodes: impl Iterator<Item = u32>) -> Self {
        let nodes = nodes.map(u64::from);
        match ids.kind() {
            UserIdKind::Integer => Self::Integers(nodes.map(|node| ids.integer(node)).collect()),
            UserIdKind::Text => Self::Texts(nodes.map(|node| ids.text(node)).collect()),
        }
    }

    pub fn cells(&self) -> Cells<'_> {
        match self {
            Self::Integers(values) => Cells::Integers(values),
            Self::Texts(values) => Cells::Texts(values),
        }
    }
}

/// The column of relations, where there are several or they have names.
pub(super) struct Relations<'a> {
    names: &'a [String],
    shown: bool,
}

impl<'a> Relations<'a> {
    pub fn of(model: &'a EdgeModel<'_>) -> Self {
        let names = model.relation_names();
        Self { names, shown: model.num_relations() > 1 || !names.is_empty() }
    }

    pub fn column(&self) -> Option<Column> {
        let kind = if self.names.is_empty() { Kind::Integer } else { Kind::Text };
        self.shown.then(|| Column::new("relation", kind))
    }

    /// Names or numbers of some relations; none without a column.
    pub fn ids(&self, relations: &[u32]) -> Option<Ids<'a>> {
        let relations = relations.iter();
        self.shown.then(|| match self.names.is_empty() {
            true => Ids::Integers(relations.map(|&relation| relation.into()).collect()),
            false => Ids::Texts(relations.map(|&of| self.names[of as usize].as_str()).collect()),
        })
    }
}
