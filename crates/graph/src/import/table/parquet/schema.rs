//! Root columns of a Parquet file, and the leaves with their values.

use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::{SchemaDescriptor, Type};

use super::hints::{Hint, hints};
use super::kind::Kind;

/// A root column.
#[derive(Debug)]
pub(super) struct Column {
    pub name: String,
    /// The type of its values, or of the items of its lists.
    pub kind: Kind,
    pub list: Option<List>,
    /// Position of the leaf that has the values; the first of several. Groups may have none.
    pub leaf: Option<usize>,
}

/// Definition levels of a list column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List {
    /// Level of a non-null list, possibly empty.
    pub present: i16,
    /// Level of an item, possibly null.
    pub item: i16,
}

/// The root columns of a file.
pub(super) fn columns(metadata: &FileMetaData) -> Vec<Column> {
    let schema = metadata.schema_descr();
    let roots = schema.root_schema().get_fields();
    let mut leaves = vec![None; roots.len()];
    for leaf in 0..schema.num_columns() {
        leaves[schema.get_column_root_idx(leaf)].get_or_insert(leaf);
    }
    let hints = hints(metadata);
    let mut columns = Vec::with_capacity(roots.len());
    for (place, (root, &leaf)) in roots.iter().zip(&leaves).enumerate() {
        // Columns that were renamed or moved after the hints were written have none.
        let hint = hints.get(place).filter(|(name, _)| name == root.name());
        columns.push(column(schema, root, leaf, hint.and_then(|(_, hint)| *hint)));
    }
    columns
}

fn column(
    schema: &SchemaDescriptor,
    root: &Type,
    leaf: Option<usize>,
    hint: Option<Hint>,
) -> Column {
    let (list, nested) = shape(root);
    let kind = match (nested, leaf) {
        (None, Some(leaf)) => Kind::of(&schema.column(leaf), hint),
        (name, _) => Kind::Other(name.unwrap_or("Struct").into()),
    };
    Column { name: root.name().to_string(), kind, list, leaf }
}

/// The levels of a list, if the column is one, and the name of the type of its values, if they have
/// parts of their own.
fn shape(root: &Type) -> (Option<List>, Option<&'static str>) {
    let nested = |of: &Type| (!of.is_primitive()).then(|| group_name(of));
    if repetition(root) == Repetition::REPEATED {
        return (Some(List { present: 0, item: 1 }), nested(root));
    }
    let entries = match nested(root) {
        None | Some("Struct") => return (None, nested(root)),
        Some(_) => root.get_fields(),
    };
    let [entry] = entries else { return (None, nested(root)) };
    // Values of a map may be left out, which makes it a list of keys.
    let map = group_name(root) == "Map" && entry.is_group() && entry.get_fields().len() != 1;
    if map || repetition(entry) != Repetition::REPEATED {
        return (None, nested(root));
    }
    let present = i16::from(repetition(root) == Repetition::OPTIONAL);
    let list = Some(List { present, item: present + 1 });
    if entry.is_primitive() {
        return (list, None);
    }
    match entry.get_fields() {
        [item] if !is_item(entry, item, root) => match repetition(item) {
            Repetition::REPEATED => (list, Some("List")),
            _ => (list, nested(item)),
        },
        _ => (list, Some("Struct")),
    }
}

/// Returns whether the repeated group of a list is an item itself, a struct of one field, by the
/// compatibility rules of the Parquet format for older files.
fn is_item(entry: &Type, field: &Type, list: &Type) -> bool {
    let named = entry.name() == "array" || entry.name() == format!("{}_tuple", list.name());
    named && group_name(entry) != "List" && repetition(field) != Repetition::REPEATED
}

fn repetition(of: &Type) -> Repetition {
    let info = of.get_basic_info();
    if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED }
}

fn group_name(group: &Type) -> &'static str {
    let info = group.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::List), _) | (_, ConvertedType::LIST) => "List",
        (Some(LogicalType::Map), _) => "Map",
        (_, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => "Map",
        _ => "Struct",
    }
}
