//! Blocks as columns: `nodes.id`, `nodes.degree`, and for each layer `i` `blocks.i.sources`, `.indptr`, `.indices`,
//! `.weights`.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::{Block, EdgeRows, NodeInfo};

use super::columns::Columns;

/// Adds blocks, which share their nodes, to `out`.
pub(crate) fn pack(blocks: &[Arc<Block>], out: &mut Columns) {
    let Some(widest) = blocks.iter().max_by_key(|block| block.num_src()) else { return };
    out.add("nodes.id", widest.ids().to_vec());
    out.add("nodes.degree", widest.degrees().to_vec());
    out.add("blocks", vec![blocks.len() as u64]);
    for (layer, block) in blocks.iter().enumerate() {
        let name = |what: &str| format!("blocks.{layer}.{what}");
        out.add(name("sources"), vec![block.num_src() as u64]);
        out.add(name("indptr"), block.indptr().to_vec());
        out.add(name("indices"), block.indices().to_vec());
        out.add_some(name("weights"), block.weights().map(<[f32]>::to_vec));
        if let Some(rows) = block.edge_features() {
            out.add(name("features.width"), vec![rows.width as u64]);
            out.add(name("features"), rows.values.clone());
        }
    }
}

/// Takes blocks from `columns`.
///
/// # Errors
/// If a column is missing, or they make no blocks.
pub(crate) fn unpack(columns: &mut Columns) -> Result<Vec<Arc<Block>>> {
    let ids = columns.take("nodes.id")?;
    let nodes = Arc::new(NodeInfo { ids, degrees: columns.take("nodes.degree")? });
    let layers = columns.take_one("blocks")?;
    (0..layers).map(|layer| Ok(Arc::new(block(columns, layer, &nodes)?))).collect()
}

fn block(columns: &mut Columns, layer: u64, nodes: &Arc<NodeInfo>) -> Result<Block> {
    let name = |what: &str| format!("blocks.{layer}.{what}");
    let sources = columns.take_one(&name("sources"))? as usize;
    let indptr: Vec<u32> = columns.take(&name("indptr"))?;
    let indices: Vec<u32> = columns.take(&name("indices"))?;
    let weights: Option<Vec<f32>> = columns.take_some(&name("weights"))?;
    let edges = indices.len();
    let fits = sources <= nodes.ids.len().min(nodes.degrees.len())
        && indptr.first() == Some(&0)
        && indptr.last() == Some(&(edges as u32))
        && indptr.len() <= sources + 1
        && indptr.windows(2).all(|pair| pair[0] <= pair[1])
        && indices.iter().all(|&source| (source as usize) < sources)
        && weights.as_ref().is_none_or(|weights| weights.len() == edges);
    let wrong = || Error::invalid(format!("block {layer} of the batch: its columns disagree"));
    if !fits {
        return Err(wrong());
    }
    let features = match columns.take_some::<f32>(&name("features"))? {
        Some(values) => {
            let width = columns.take_one(&name("features.width"))? as usize;
            if Some(values.len()) != width.checked_mul(edges) {
                return Err(wrong());
            }
            Some(EdgeRows { width, values })
        }
        None => None,
    };
    let block = Block::new(sources, indptr, indices, weights, nodes.clone());
    Ok(block.with_edge_features(features))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Arc<Block>> {
        let nodes = Arc::new(NodeInfo { ids: vec![40, 7, 9], degrees: vec![2, 1, 0] });
        let wide =
            Block::new(3, vec![0, 2, 3], vec![1, 2, 0], Some(vec![0.5, 1.0, 2.0]), nodes.clone());
        let rows = EdgeRows { width: 2, values: vec![1.0, 2.0] };
        let narrow = Block::new(2, vec![0, 1], vec![1], None, nodes).with_edge_features(Some(rows));
        vec![Arc::new(wide), Arc::new(narrow)]
    }

    #[test]
    fn blocks_come_back_as_they_were() {
        let mut columns = Columns::default();
        pack(&blocks(), &mut columns);
        let found = unpack(&mut columns).unwrap();
        assert_eq!(columns, Columns::default());
        for (found, own) in found.iter().zip(blocks()) {
            assert_eq!((found.indptr(), found.indices()), (own.indptr(), own.indices()));
            assert_eq!(
                (found.weights(), found.edge_features()),
                (own.weights(), own.edge_features())
            );
            assert_eq!((found.ids(), found.degrees()), (own.ids(), own.degrees()));
        }
    }

    #[test]
    fn columns_that_make_no_block_are_an_error() {
        for (name, wrong) in [
            ("blocks.0.indices", vec![1_u32, 2, 3]),
            ("blocks.0.indptr", vec![0, 2, 2]),
            ("blocks.0.indptr", vec![0, 4, 3]),
            ("nodes.degree", vec![1]),
        ] {
            let mut columns = Columns::default();
            pack(&blocks(), &mut columns);
            columns.take_array(name).unwrap();
            columns.add(name, wrong);
            let error = unpack(&mut columns).unwrap_err().to_string();
            assert!(error.contains("block 0") && error.contains("disagree"), "{name}: {error}");
        }
        let error = unpack(&mut Columns::default()).unwrap_err().to_string();
        assert!(error.contains("no column 'nodes.id'"), "{error}");
    }
}
