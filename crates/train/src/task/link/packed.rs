//! Batches of link prediction as columns: `edges.head`, `edges.relation` and `edges.tail`, and for each corrupted side
//! `negatives.<side>`, `negatives.<side>.group`, `.count` and `.masked`.

use gnarl_common::{Error, Result};
use gnarl_nn::decoders::{Candidates, Groups, LinkBatch, Side};

use crate::data::packed::Columns;

/// The names of the sides.
fn name(side: Side) -> &'static str {
    match side {
        Side::Head => "negatives.head",
        Side::Tail => "negatives.tail",
    }
}

/// Adds a batch to `out`.
pub(super) fn pack(batch: LinkBatch, out: &mut Columns) {
    let LinkBatch { heads, relations, tails, negatives } = batch;
    out.add("edges.head", heads);
    out.add("edges.relation", relations);
    out.add("edges.tail", tails);
    for (side, Candidates { rows, groups, masked }) in negatives {
        let name = name(side);
        out.add(format!("{name}.count"), vec![groups.count() as u64]);
        out.add(format!("{name}.group"), groups.of().to_vec());
        out.add(format!("{name}.masked"), masked.into_flattened());
        out.add(name, rows);
    }
}

/// Takes a batch from `columns`.
///
/// # Errors
/// If columns are missing or disagree.
pub(super) fn unpack(columns: &mut Columns) -> Result<LinkBatch> {
    let wrong = || Error::invalid("edges of the batch: their columns disagree");
    let heads: Vec<u32> = columns.take("edges.head")?;
    let relations: Vec<u32> = columns.take("edges.relation")?;
    let tails: Vec<u32> = columns.take("edges.tail")?;
    if relations.len() != heads.len() || tails.len() != heads.len() {
        return Err(wrong());
    }
    let mut negatives = Vec::new();
    for side in Side::BOTH {
        let name = name(side);
        let Some(rows) = columns.take_some::<u32>(name)? else { continue };
        let count = columns.take_one(&format!("{name}.count"))? as usize;
        let of: Vec<u32> = columns.take(&format!("{name}.group"))?;
        let masked: Vec<u32> = columns.take(&format!("{name}.masked"))?;
        let groups = rows.len() / count.max(1);
        let (masked, rest) = masked.as_chunks::<2>();
        let fits = of.len() == heads.len()
            && rows.len() == groups * count
            && of.iter().all(|&group| (group as usize) < groups || count == 0)
            && rest.is_empty()
            && masked
                .iter()
                .all(|&[edge, column]| (edge as usize) < heads.len() && (column as usize) < count);
        if !fits {
            return Err(wrong());
        }
        let groups = Groups::new(of, count);
        negatives.push((side, Candidates { rows, groups, masked: masked.to_vec() }));
    }
    Ok(LinkBatch { heads, relations, tails, negatives })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> LinkBatch {
        let candidates = |rows, of, masked| Candidates { rows, groups: Groups::new(of, 2), masked };
        LinkBatch {
            heads: vec![0, 1],
            relations: vec![0, 0],
            tails: vec![2, 3],
            negatives: vec![
                (Side::Head, candidates(vec![4, 5, 6, 7], vec![0, 1], vec![[1, 0]])),
                (Side::Tail, candidates(vec![1, 2], vec![0, 0], Vec::new())),
            ],
        }
    }

    #[test]
    fn a_batch_comes_back_as_it_was() {
        let mut columns = Columns::default();
        pack(batch(), &mut columns);
        assert_eq!(format!("{:?}", unpack(&mut columns).unwrap()), format!("{:?}", batch()));
    }

    #[test]
    fn columns_that_disagree_are_told() {
        let wrong: [(&str, Vec<u32>); 5] = [
            ("edges.tail", vec![2]),
            ("negatives.head", vec![4, 5, 6]),
            ("negatives.head.group", vec![0, 2]),
            ("negatives.head.masked", vec![1]),
            ("negatives.tail.masked", vec![0, 2]),
        ];
        for (name, values) in wrong {
            let mut columns = Columns::default();
            pack(batch(), &mut columns);
            columns.take_array(name).unwrap();
            columns.add(name, values);
            let error = unpack(&mut columns).unwrap_err();
            assert!(error.to_string().contains("disagree"), "{name}: {error}");
        }
    }
}
