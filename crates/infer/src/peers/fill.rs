//! The rows that a rank reads and others own, fetched before a layer.

use gnarl_common::{Error, Kind, Result};

use super::ranks::Peers;
use super::rounds::{by_owner, nodes_of, rounds};
use crate::places::Places;
use crate::rows::After;

/// Fetches the rows of `places` of each type that other ranks own, behind the own ones in `rows`. Returns the bytes
/// received.
///
/// # Errors
/// If a rank fails, or rows cannot be kept.
pub(crate) fn fill(peers: &Peers<'_>, places: &[Places], rows: &mut After<'_>) -> Result<u64> {
    let mut received = 0;
    for (node_type, places) in places.iter().enumerate() {
        let each = peers.rows();
        let mut fetched = places.fetched();
        let count = places.len() - places.num_own();
        rows.end_own(node_type)?;
        for _ in 0..rounds(peers, "inference: rows to fetch", count, each)? {
            let nodes: Vec<u32> = fetched.by_ref().take(each).collect();
            let (messages, owners) = by_owner(peers, node_type, &nodes);
            let asked = peers.comm.all_to_all("inference: rows requested", messages)?;
            let replies = asked.iter().map(|message| reply(rows, node_type, message));
            let replies = replies.collect::<Result<Vec<_>>>()?;
            let found = peers.comm.all_to_all("inference: rows of other ranks", replies)?;
            received += found.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
            let (values, width) = in_order(&found, &owners)?;
            if !nodes.is_empty() {
                rows.append(node_type, &values, width)?;
            }
        }
    }
    Ok(received)
}

/// The rows of the nodes in a message, and nothing else.
fn reply(rows: &After<'_>, node_type: usize, message: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for node in nodes_of(message) {
        out.extend_from_slice(bytemuck::cast_slice(rows.own_row(node_type, node)?));
    }
    Ok(out)
}

/// The rows of nodes in turn, of which `found` has those of each owner, and their width.
pub(super) fn in_order(found: &[Vec<u8>], owners: &[usize]) -> Result<(Vec<f32>, usize)> {
    let bytes: usize = found.iter().map(Vec::len).sum();
    let width = bytes / 4 / owners.len().max(1);
    let mut values = Vec::with_capacity(bytes / 4);
    let mut rest: Vec<&[u8]> = found.iter().map(Vec::as_slice).collect();
    for &owner in owners {
        let (row, after) = rest[owner].split_at_checked(4 * width).ok_or_else(|| wrong(owner))?;
        values.extend(row.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        rest[owner] = after;
    }
    match rest.iter().position(|bytes| !bytes.is_empty()) {
        Some(owner) => Err(wrong(owner)),
        None => Ok((values, width)),
    }
}

fn wrong(rank: usize) -> Error {
    Error::new(Kind::Rank, format!("inference: rank {rank} sent rows of another number or width"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_requests() {
        let bytes = |values: &[f32]| bytemuck::cast_slice(values).to_vec();
        let found = [bytes(&[1.0, 2.0]), bytes(&[3.0, 4.0, 5.0, 6.0])];
        let (values, width) = in_order(&found, &[1, 0, 1]).unwrap();
        assert_eq!((values, width), (vec![3.0, 4.0, 1.0, 2.0, 5.0, 6.0], 2));
        assert!(in_order(&found, &[0, 0, 1]).unwrap_err().to_string().contains("rank"));
    }
}
