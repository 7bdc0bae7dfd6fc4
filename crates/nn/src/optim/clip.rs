//! Gradient clipping by global norm (Pascanu et al., ICML 2013).

use rayon::prelude::*;

use super::optimizer::CHUNK;

/// Euclidean norm of all gradients together. Chunks are summed in `f64` and added in order: the
/// result is the same whatever the number of threads.
pub fn global_norm(grads: &[f32]) -> f32 {
    let sums: Vec<f64> = grads
        .par_chunks(CHUNK)
        .map(|chunk| chunk.iter().map(|&g| f64::from(g) * f64::from(g)).sum())
        .collect();
    sums.iter().sum::<f64>().sqrt() as f32
}

/// Scales `grads` down to norm `max_norm` if they exceed it; returns the norm before.
pub fn clip_by_global_norm(grads: &mut [f32], max_norm: f32) -> f32 {
    let norm = global_norm(grads);
    if norm > max_norm {
        let scale = max_norm / norm;
        grads.par_chunks_mut(CHUNK).for_each(|chunk| chunk.iter_mut().for_each(|g| *g *= scale));
    }
    norm
}
