//! The initial partition of the coarsest graph, by METIS in memory.

use gnarl_common::error::Result;
use metis::Idx;
use metis::option::Seed;

use super::level::{Level, Load};
use crate::edge_cut::metis::ONE_AT_A_TIME;

/// Bytes of METIS per entry of the lists, its own coarser graphs included.
const BYTES_AN_ENTRY: u64 = 40;

/// The heaviest edges of a level in METIS's format: as many as `budget` bytes allow.
fn heaviest(level: &Level, budget: u64) -> Result<(Vec<Idx>, Vec<Idx>, Vec<Idx>)> {
    let most = (budget / BYTES_AN_ENTRY).max(level.len() as u64);
    let mut least = 1u32;
    if level.lists.entries() > most {
        let mut weights = Vec::new();
        // Every so many entries: a sample is enough for a threshold.
        let stride = (level.lists.entries() / (1 << 20) + 1) as usize;
        let mut seen = 0usize;
        level.lists.for_each(|_, _, near| {
            for &weight in near {
                if seen.is_multiple_of(stride) {
                    weights.push(weight);
                }
                seen += 1;
            }
        })?;
        let kept = (weights.len() as u64 * most / level.lists.entries()) as usize;
        let at = weights.len() - kept.clamp(1, weights.len());
        least = *weights.select_nth_unstable(at).1 + 1;
    }
    let mut offsets = vec![0 as Idx];
    let mut neighbors = Vec::new();
    let mut weights = Vec::new();
    level.lists.for_each(|_, ids, near| {
        for (i, &id) in ids.iter().enumerate() {
            let weight = near.get(i).copied().unwrap_or(1);
            if weight >= least {
                neighbors.push(id as Idx);
                weights.push(weight.min(1 << 20) as Idx);
            }
        }
        offsets.push(neighbors.len() as Idx);
    })?;
    Ok((offsets, neighbors, weights))
}

/// Partitions the level's nodes near `caps`; `None` if METIS finds no partition.
pub(super) fn cut(
    level: &Level,
    parts: usize,
    caps: Load,
    budget: u64,
    seed: u64,
) -> Result<Option<Vec<u16>>> {
    let (offsets, neighbors, edge_weights) = heaviest(level, budget)?;
    let totals = (0..level.len() as u32).fold([0u64; 3], |mut sum, v| {
        sum.iter_mut().zip(level.loads.of(v)).for_each(|(s, l)| *s += l);
        sum
    });
    // METIS divides by the total of each constraint, so those with hardly any weight are left out.
    let used: Vec<usize> =
        (0..3).filter(|&c| totals[c] >= parts as u64 && caps[c] < u64::MAX).collect();
    // Sums must fit METIS's integers.
    let scale: Vec<u64> = used.iter().map(|&c| totals[c] / (1 << 29) + 1).collect();
    let mut weights = Vec::with_capacity(level.len() * used.len());
    for v in 0..level.len() as u32 {
        let load = level.loads.of(v);
        weights.extend(used.iter().zip(&scale).map(|(&c, s)| load[c].div_ceil(*s) as Idx));
    }
    let slack = |&c: &usize| (caps[c] as f64 * parts as f64 / totals[c] as f64).clamp(1.01, 10.0);
    let balance: Vec<metis::Real> = used.iter().map(|c| slack(c) as metis::Real).collect();
    let mut part = vec![0 as Idx; level.len()];
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let graph = metis::Graph::new(used.len() as Idx, parts as Idx, &offsets, &neighbors);
    let Ok(graph) = graph else { return Ok(None) };
    let outcome = graph
        .set_vwgt(&weights)
        .set_adjwgt(&edge_weights)
        .set_ubvec(&balance)
        .set_option(Seed((seed & 0x7fff_ffff) as Idx))
        .part_kway(&mut part);
    Ok(outcome.is_ok().then(|| part.into_iter().map(|p| p as u16).collect()))
}
