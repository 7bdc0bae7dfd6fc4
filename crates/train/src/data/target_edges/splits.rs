//! Whole splits of target edges, from all parts.

use gnarl_common::{Buf, Context, Error, Result};
use gnarl_graph::Labels;
use gnarl_graph::triples::Triples;
use gnarl_serve::PartAccess;

/// The edges of a split, in the order of the dataset.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Endpoints by their numbers within their node types.
    pub edges: Triples,
    pub labels: Option<Labels>,
    /// `edges × width` values.
    pub features: Option<Vec<f32>>,
    pub times: Option<Vec<i64>>,
}

/// Gathers the edges of split number `split` from all parts.
///
/// # Errors
/// If a part does not reply, or edges are missing.
pub(crate) fn gather(parts: &[PartAccess], split: usize) -> Result<Gathered> {
    let (mut places, mut found) = (Vec::new(), Gathered::default());
    for part in parts {
        let read = part.split_targets(split, &mut |more| {
            places.extend_from_slice(&more.positions);
            found.edges.heads.extend(more.edges.heads);
            found.edges.relations.extend(more.edges.relations);
            found.edges.tails.extend(more.edges.tails);
            found.labels = match (found.labels.take(), more.labels) {
                (Some(all), Some(more)) => Some(joined(all, more)?),
                (all, more) => all.or(more),
            };
            if let Some(more) = more.times {
                found.times.get_or_insert_default().extend(more);
            }
            if let Some(more) = more.features {
                found.features.get_or_insert_default().extend(more);
            }
            Ok(())
        });
        read.while_doing(|| "reading target edges")?;
    }
    found.in_order_of(&places)
}

impl Gathered {
    /// The edges in the order of their `places`, which are the numbers from 0 on.
    fn in_order_of(self, places: &[u32]) -> Result<Self> {
        let mut order = vec![u32::MAX; places.len()];
        for (row, &place) in (0..).zip(places) {
            match order.get_mut(place as usize) {
                Some(slot) if *slot == u32::MAX => *slot = row,
                _ => {
                    return Err(Error::invalid(format!(
                        "edge {place} is in two parts, or in none"
                    ))
                    .hint("serve the parts of one partition, made by gnarl partition --task"));
                }
            }
        }
        let features = self.features.map(|all| picked(&all, &order));
        let labels = self.labels.map(|labels| match labels {
            Labels::Single { classes, count } => {
                Labels::Single { classes: picked(&classes, &order).into(), count }
            }
            Labels::Multi { values, tasks } => {
                Labels::Multi { values: picked(&values, &order).into(), tasks }
            }
            Labels::Values { values } => Labels::Values { values: picked(&values, &order).into() },
        });
        let times = self.times.map(|all| picked(&all, &order));
        Ok(Self { edges: self.edges.at(&order), labels, features, times })
    }
}

/// Rows of a table with as many rows as `order`.
fn picked<T: Copy>(table: &[T], order: &[u32]) -> Vec<T> {
    let width = table.len() / order.len().max(1);
    let rows = order.iter().flat_map(|&row| &table[row as usize * width..][..width]);
    rows.copied().collect()
}

fn joined(all: Labels, more: Labels) -> Result<Labels> {
    fn both<T: gnarl_common::Element>(all: &Buf<T>, more: &Buf<T>) -> Buf<T> {
        [&all[..], &more[..]].concat().into()
    }
    match (all, more) {
        (Labels::Single { classes, count }, Labels::Single { classes: more, .. }) => {
            Ok(Labels::Single { classes: both(&classes, &more), count })
        }
        (Labels::Multi { values, tasks }, Labels::Multi { values: more, .. }) => {
            Ok(Labels::Multi { values: both(&values, &more), tasks })
        }
        (Labels::Values { values }, Labels::Values { values: more }) => {
            Ok(Labels::Values { values: both(&values, &more) })
        }
        _ => Err(Error::invalid("parts differ in the kind of their labels of edges")),
    }
}
