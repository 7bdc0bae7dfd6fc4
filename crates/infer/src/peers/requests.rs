//! Nodes that ranks need of each other.

use gnarl_common::Result;

use super::ranks::Peers;
use super::rounds::{by_owner, nodes_of, rounds};
use crate::bits::{mark, set_in};

/// Bits of nodes.
type Bits = Vec<u64>;

/// Divides the nodes that this rank reads into those that it computes, for itself or for other ranks, and those that it
/// fetches from them. Both by type.
///
/// # Errors
/// If a rank fails.
pub(crate) fn requested(peers: &Peers<'_>, reads: Vec<Bits>) -> Result<(Vec<Bits>, Vec<Bits>)> {
    let (mut own, mut fetched) = (Vec::new(), Vec::new());
    for (node_type, mut bits) in reads.into_iter().enumerate() {
        let mut others = vec![0; bits.len()];
        let foreign: Vec<u32> =
            set_in(&bits).filter(|&node| !peers.owns(node_type, node)).collect();
        for &node in &foreign {
            bits[node as usize / 64] &= !(1 << (node % 64));
            mark(&mut others, node);
        }
        let each = peers.rows();
        for round in 0..rounds(peers, "inference: nodes to request", foreign.len(), each)? {
            let some = foreign.chunks(each).nth(round).unwrap_or_default();
            let (messages, _) = by_owner(peers, node_type, some);
            for message in peers.comm.all_to_all("inference: requested nodes", messages)? {
                nodes_of(&message).for_each(|node| mark(&mut bits, node));
            }
        }
        own.push(bits);
        fetched.push(others);
    }
    Ok((own, fetched))
}
