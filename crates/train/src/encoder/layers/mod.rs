//! Layer-wise inference: models over graphs as [`gnarl_infer::Layers`], by full neighborhoods.

mod blocks;
mod features;
mod heterogeneous;
mod homogeneous;
mod list_lengths;
mod part_owners;
mod partitioned;
mod propagation;
mod stages;
mod swept;

pub(super) use heterogeneous::HeteroLayers;
pub(super) use homogeneous::infer;
pub(super) use part_owners::SharesByType;
