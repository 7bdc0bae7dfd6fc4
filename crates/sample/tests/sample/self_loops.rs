//! Blocks with self loops.

use std::sync::Arc;

use gnarl_graph::blocks::{Block, NodeInfo};

#[test]
fn a_self_edge_is_added_where_there_is_none() {
    let nodes = Arc::new(NodeInfo { ids: vec![7, 8, 9, 10], degrees: vec![2, 2, 0, 0] });
    let weights = Some(vec![0.5, 0.25, 2.0, 3.0]);
    let block = Block::new(4, vec![0, 2, 4, 4], vec![3, 1, 1, 0], weights, nodes);
    let looped = block.with_self_loops();
    assert_eq!(looped.sources(0), [0, 3, 1]);
    assert_eq!(looped.sources(1), [1, 0]);
    assert_eq!(looped.sources(2), [2]);
    assert_eq!(looped.weights().unwrap(), [1.0, 0.5, 0.25, 2.0, 3.0, 1.0]);
    assert_eq!((looped.num_src(), looped.ids()), (4, block.ids()));
    assert!(std::ptr::eq(looped, block.with_self_loops()));
}
