//! The options of an import from OGB.

use std::path::PathBuf;

use crate::import::WeightType;

/// Path and options of [`ogb`](super::ogb).
#[derive(Debug, Clone)]
pub struct OgbOptions {
    /// The folder of the graph, such as `ogbn_arxiv`, that holds `raw/` and `split/`.
    pub root: PathBuf,
    /// The folder below `split/`, such as `time`; `none` for no splits. By default the only one.
    pub split: Option<String>,
    /// Store the reverse of every edge too (self loops once), as `ogbn-products` and
    /// `ogbn-proteins` need it.
    pub add_inverse: bool,
    /// Number of classes; by default from the largest label.
    pub num_classes: Option<u64>,
    /// The type of the edge column `weight`.
    pub weight_type: WeightType,
    /// Memory limit in bytes.
    pub memory: u64,
}

impl OgbOptions {
    /// The graph in `root`, with default options and 1 GiB of memory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            split: None,
            add_inverse: false,
            num_classes: None,
            weight_type: WeightType::default(),
            memory: 1 << 30,
        }
    }
}
