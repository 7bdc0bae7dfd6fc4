//! Seeds that are in a batch several times.

use std::collections::HashMap;

use gnarl_sample::FrontierBatch;

/// Gives each of the batch's seeds a node of its own. A seed that is there again gets the edges of its first node; edges
/// from it to others come from the first.
///
/// Samplers let equal seeds share a node; a loss over the first rows of a batch expects as many as seeds.
pub(crate) fn separate(batch: &mut FrontierBatch, seed_type: usize, seeds: &[u32]) {
    let unique = batch.nodes_of_hop[seed_type][0];
    let again = seeds.len() - unique;
    if again == 0 {
        return;
    }
    let Some((_, positions)) = batch.targets.iter().find(|(of, _)| *of == seed_type) else {
        return;
    };
    // Where each distinct seed is first given, and who repeats it.
    let mut first = vec![u32::MAX; unique];
    let mut copies: HashMap<u32, Vec<u32>> = HashMap::new();
    for (place, &position) in positions.iter().enumerate() {
        match first[position as usize] {
            u32::MAX => first[position as usize] = place as u32,
            _ => copies.entry(position).or_default().push(place as u32),
        }
    }
    let moved = |position: u32| match first.get(position as usize) {
        Some(&place) => place,
        None => position + again as u32,
    };
    let nodes = &mut batch.nodes[seed_type];
    nodes.splice(..unique, seeds.iter().copied());
    batch.nodes_of_hop[seed_type][0] = seeds.len();
    let schema = batch.schema.clone();
    for (edge_type, edges) in batch.edges.iter_mut().enumerate() {
        let (src, dst) = schema.ends(edge_type);
        // Those of seeds are of the first hop, which stays in front.
        let drawn = edges.of_hop[0];
        let mut added = Vec::new();
        if dst == seed_type {
            for edge in 0..drawn {
                for &place in copies.get(&edges.destinations[edge]).into_iter().flatten() {
                    added.push((edges.sources[edge], place, edge));
                }
            }
            edges.destinations.iter_mut().for_each(|position| *position = moved(*position));
        }
        edges.sources.splice(drawn..drawn, added.iter().map(|edge| edge.0));
        edges.destinations.splice(drawn..drawn, added.iter().map(|edge| edge.1));
        // Edges of parts have no rows.
        let rows: Vec<u64> =
            added.iter().filter_map(|edge| edges.rows.get(edge.2).copied()).collect();
        let at = drawn.min(edges.rows.len());
        edges.rows.splice(at..at, rows);
        if let Some(weights) = &mut edges.weights {
            let again: Vec<f32> = added.iter().map(|edge| weights[edge.2]).collect();
            weights.splice(drawn..drawn, again);
        }
        edges.of_hop[0] += added.len();
        if src == seed_type {
            edges.sources.iter_mut().for_each(|position| *position = moved(*position));
        }
    }
    batch.targets.iter_mut().filter(|(of, _)| *of == seed_type).for_each(|(_, positions)| {
        *positions = (0..seeds.len() as u32).collect();
    });
}
