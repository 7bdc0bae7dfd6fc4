//! String ids in batches of a table.

use gnarl_common::{Error, Result};

use super::reader::{Batch, TableReader};
use crate::import::ids::StringIds;

/// The two endpoints of a batch of edges within one node type of string ids, numbered row by row.
pub(in crate::import) fn string_pairs(
    reader: &dyn TableReader,
    batch: &Batch,
    columns: (usize, usize),
    ids: &mut StringIds,
    memory: u64,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let (mut src, mut dst) = (Vec::new(), Vec::new());
    for row in 0..batch.rows() {
        for (column, nodes) in [(columns.0, &mut src), (columns.1, &mut dst)] {
            let id = text_id(reader, batch, column, row)?;
            nodes.push(ids.insert(id, memory)?.0 as i64);
        }
    }
    Ok((src, dst))
}

/// The string id in a row of a batch.
///
/// # Errors
/// If it is empty, naming the place.
pub(in crate::import) fn text_id<'a>(
    reader: &dyn TableReader,
    batch: &'a Batch,
    column: usize,
    row: usize,
) -> Result<&'a [u8]> {
    match batch.columns[column].text(row) {
        b"" => {
            Err(Error::invalid(format!("{}: an id is missing", reader.place(batch.places[row])))
                .hint("every node and both ends of every edge have an id; drop rows without"))
        }
        id => Ok(id),
    }
}
