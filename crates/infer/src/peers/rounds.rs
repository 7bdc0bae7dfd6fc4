//! Exchanges in rounds of bounded messages.

use gnarl_common::Result;

use super::ranks::Peers;

/// Number of rounds until every rank has exchanged its `count` items, `each` at a time.
///
/// # Errors
/// If a rank fails.
pub(super) fn rounds(peers: &Peers<'_>, stage: &str, count: usize, each: usize) -> Result<usize> {
    let own = count.div_ceil(each) as u64;
    let all = peers.comm.all_gather(stage, &own.to_le_bytes())?;
    let of = |bytes: &Vec<u8>| bytes.as_chunks().0.first().map_or(0, |&b| u64::from_le_bytes(b));
    Ok(all.iter().map(of).max().unwrap_or(0) as usize)
}

/// Nodes by the rank that owns them, as messages, and the rank of each in turn.
pub(super) fn by_owner(
    peers: &Peers<'_>,
    node_type: usize,
    nodes: &[u32],
) -> (Vec<Vec<u8>>, Vec<usize>) {
    let mut messages = vec![Vec::new(); peers.comm.size()];
    let owners: Vec<usize> =
        nodes.iter().map(|&node| peers.owners.rank_of(node_type, node)).collect();
    for (node, &owner) in nodes.iter().zip(&owners) {
        messages[owner].extend_from_slice(&node.to_le_bytes());
    }
    (messages, owners)
}

/// The nodes of a message.
pub(super) fn nodes_of(message: &[u8]) -> impl Iterator<Item = u32> {
    message.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes))
}
