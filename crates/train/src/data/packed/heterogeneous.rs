//! Heterogeneous blocks as columns: those of [`blocks`](super::blocks) and, for each layer `i`, `blocks.i.edge_types` and
//! `blocks.i.group_degrees`; `segments.type` and `segments.end` say which rows are nodes of which type.

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::{FusedBatch, FusedBlock, Schema, Segment};

use super::blocks;
use super::columns::{Array, Columns};

/// Adds the blocks of a batch over so many edge types to `out`.
pub(crate) fn pack(batch: FusedBatch, edge_types: usize, out: &mut Columns) {
    let all: Vec<_> = batch.blocks.iter().map(|layer| layer.block.clone()).collect();
    blocks::pack(&all, out);
    for (layer, block) in batch.blocks.into_iter().enumerate() {
        out.add_array(format!("blocks.{layer}.edge_types"), narrow(&block.edge_types, edge_types));
        out.add(format!("blocks.{layer}.group_degrees"), block.group_degrees);
    }
    let column = |of: fn(&Segment) -> usize| batch.segments.iter().map(|s| of(s) as u32).collect();
    out.add::<u32>("segments.type", column(|segment| segment.node_type));
    out.add::<u32>("segments.end", column(|segment| segment.nodes.end));
}

/// Numbers of so many edge types, in a byte each where that is enough: all batches of a run have columns of one type.
fn narrow(numbers: &[u16], edge_types: usize) -> Array {
    match edge_types <= 256 {
        true => Array::U8(numbers.iter().map(|&number| number as u8).collect()),
        false => Array::U32(numbers.iter().map(|&number| number.into()).collect()),
    }
}

/// Takes the blocks of a batch of a graph with the types of `schema` from `columns`. Its targets stay empty, and so do the
/// positions of edges among those of their type, which no layer reads.
///
/// # Errors
/// If a column is missing, or they make no blocks.
pub(crate) fn unpack(columns: &mut Columns, schema: &Schema) -> Result<FusedBatch> {
    let segments = segments(columns, schema.node_types().len())?;
    let blocks = blocks::unpack(columns)?;
    let rows: usize = segments.iter().map(|segment| segment.nodes.len()).sum();
    if blocks.first().is_some_and(|block| block.num_src() != rows) {
        return Err(disagree());
    }
    let types = schema.edge_types().len();
    let mut layers = Vec::with_capacity(blocks.len());
    for (layer, block) in blocks.into_iter().enumerate() {
        let wrong = || {
            Error::invalid(format!(
                "types of edges in block {layer} of the batch: columns disagree"
            ))
        };
        let edge_types: Vec<u16> =
            match columns.take_array(&format!("blocks.{layer}.edge_types")).ok_or_else(wrong)? {
                Array::U8(numbers) => numbers.iter().map(|&number| number.into()).collect(),
                Array::U32(numbers) => {
                    let narrow = numbers.iter().map(|&number| u16::try_from(number).ok());
                    narrow.collect::<Option<_>>().ok_or_else(wrong)?
                }
                _ => return Err(wrong()),
            };
        let known = edge_types.iter().all(|&number| usize::from(number) < types);
        if !known || edge_types.len() != block.num_edges() {
            return Err(wrong());
        }
        let group_degrees = columns.take(&format!("blocks.{layer}.group_degrees"))?;
        layers.push(FusedBlock { block, edge_types, edges: Vec::new(), group_degrees });
    }
    Ok(FusedBatch { blocks: layers, segments, targets: Vec::new() })
}

fn segments(columns: &mut Columns, types: usize) -> Result<Vec<Segment>> {
    let of: Vec<u32> = columns.take("segments.type")?;
    let ends: Vec<u32> = columns.take("segments.end")?;
    if of.len() != ends.len() {
        return Err(disagree());
    }
    let mut before = vec![0; types];
    let mut segments = Vec::with_capacity(of.len());
    for (node_type, end) in of.into_iter().zip(ends) {
        let node_type = node_type as usize;
        let end = end as usize;
        let start = before.get_mut(node_type).filter(|start| **start < end).ok_or_else(disagree)?;
        segments.push(Segment { node_type, nodes: *start..end });
        *start = end;
    }
    Ok(segments)
}

fn disagree() -> Error {
    Error::invalid("types of nodes of the batch: their columns disagree")
}

/// Number of rows of each of so many node types.
pub(crate) fn rows_of_types(segments: &[Segment], types: usize) -> Vec<usize> {
    let mut rows = vec![0; types];
    segments.iter().for_each(|segment| rows[segment.node_type] = segment.nodes.end);
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnarl_graph::Triple;
    use gnarl_graph::blocks::{Block, NodeInfo};

    use super::*;

    fn schema() -> Schema {
        let mut schema = Schema::default();
        schema.add_node_type("a");
        schema.add_node_type("b");
        for (rel, src, dst) in [("x", "b", "a"), ("y", "a", "a")] {
            let triple = Triple { src: src.into(), rel: rel.into(), dst: dst.into() };
            schema.add_edge_type(triple, usize::from(src == "b"), 0);
        }
        schema
    }

    /// A seed of type a with edges of both types, then nodes of type b and a.
    fn batch(types: [u16; 3]) -> FusedBatch {
        let nodes = Arc::new(NodeInfo { ids: vec![40, 7, 9, 3], degrees: vec![3, 0, 0, 1] });
        let block = Block::new(4, vec![0, 3], vec![1, 2, 3], Some(vec![0.5, 1.0, 2.0]), nodes);
        let segment = |node_type, nodes| Segment { node_type, nodes };
        FusedBatch {
            blocks: vec![FusedBlock {
                block: Arc::new(block),
                edge_types: types.into(),
                edges: vec![0, 1, 0],
                group_degrees: vec![5, 9],
            }],
            segments: vec![segment(0, 0..1), segment(0, 1..2), segment(1, 0..2)],
            targets: Vec::new(),
        }
    }

    #[test]
    fn blocks_with_types_come_back_as_they_were() {
        let mut columns = Columns::default();
        pack(batch([0, 0, 1]), 2, &mut columns);
        let found = unpack(&mut columns, &schema()).unwrap();
        assert_eq!(columns, Columns::default());
        let own = &batch([0, 0, 1]).blocks[0];
        let found_block = &found.blocks[0];
        assert_eq!(found.segments, batch([0, 0, 1]).segments);
        assert_eq!(found_block.edge_types, own.edge_types);
        assert_eq!(found_block.group_degrees, own.group_degrees);
        assert_eq!(found_block.block.indices(), own.block.indices());
        assert_eq!(rows_of_types(&found.segments, 2), [2, 2]);
    }

    /// Files have one schema.
    #[test]
    fn batches_of_a_run_have_columns_of_one_type() {
        for (edge_types, wide) in [(256, false), (257, true)] {
            for numbers in [&[][..], &[0], &[255]] {
                let array = narrow(numbers, edge_types);
                assert_eq!(matches!(array, Array::U32(_)), wide, "{edge_types}: {numbers:?}");
            }
        }
    }

    #[test]
    fn columns_of_other_types_are_an_error() {
        for types in [[0, 0, 2], [0, 0, u16::MAX]] {
            let mut columns = Columns::default();
            pack(batch(types), 70_000, &mut columns);
            let error = unpack(&mut columns, &schema()).unwrap_err().to_string();
            assert!(error.contains("types of edges in block 0"), "{error}");
        }
        for (name, wrong) in [
            ("segments.type", vec![0, 0, 2]),
            ("segments.type", vec![0, 0]),
            ("segments.end", vec![1, 1, 2]),
            ("segments.end", vec![1, 2, 1]),
            ("blocks.0.edge_types", vec![0, 0, 65_536]),
            ("blocks.0.edge_types", vec![0, 0]),
        ] {
            let mut columns = Columns::default();
            pack(batch([0, 0, 1]), 2, &mut columns);
            columns.take_array(name).unwrap();
            columns.add::<u32>(name, wrong);
            let error = unpack(&mut columns, &schema()).unwrap_err().to_string();
            assert!(error.contains("types of") && error.contains("disagree"), "{name}: {error}");
        }
    }
}
