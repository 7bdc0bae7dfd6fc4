//! The rows of wanted nodes, handed over on the first rank in ascending order.

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;

use super::fill::in_order;
use super::ranks::Peers;
use super::rounds::by_owner;
use crate::needed::Needed;
use crate::rows::Before;

/// Nodes handed over at a time.
const NODES: usize = 1 << 12;

/// Hands the rows of the nodes `wanted` of each type over, by number; on the first rank, of all ranks, where there
/// are several.
///
/// # Errors
/// If a rank fails; those of `keep`.
pub(crate) fn deliver(
    peers: Option<&Peers<'_>>,
    wanted: &[Needed],
    rows: &Before,
    keep: &mut impl FnMut(usize, &[u32], &Tensor) -> Result<()>,
) -> Result<()> {
    for (node_type, wanted) in wanted.iter().enumerate() {
        let mut rest = wanted.iter();
        loop {
            let nodes: Vec<u32> = rest.by_ref().take(NODES).collect();
            if nodes.is_empty() {
                break;
            }
            let Some(peers) = peers else {
                keep(node_type, &nodes, &rows.gather(node_type, &nodes)?)?;
                continue;
            };
            let (values, width) = collected(peers, node_type, &nodes, rows)?;
            if peers.is_first() {
                keep(node_type, &nodes, &Tensor::from_vec(nodes.len(), width, values))?;
            }
        }
    }
    Ok(())
}

/// The rows of `nodes` on the first rank; no rows on the others.
fn collected(
    peers: &Peers<'_>,
    node_type: usize,
    nodes: &[u32],
    rows: &Before,
) -> Result<(Vec<f32>, usize)> {
    let (_, owners) = by_owner(peers, node_type, nodes);
    let own = nodes.iter().zip(&owners).filter(|(_, owner)| **owner == peers.comm.rank());
    let own: Vec<u32> = own.map(|(&node, _)| node).collect();
    let mut messages = vec![Vec::new(); peers.comm.size()];
    let found = rows.gather(node_type, &own);
    let found = found.map_err(|e| Error::invalid(format!("delivering embeddings: {e}")))?;
    messages[0] = bytemuck::cast_slice(found.data()).to_vec();
    let all = peers.comm.all_to_all("inference: finished rows", messages)?;
    match peers.is_first() {
        true => in_order(&all, &owners),
        false => Ok((Vec::new(), 0)),
    }
}
