//! Target edges of a local or remote part.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_graph::triples::{Side, Triples};

use super::PartAccess;
use crate::targets::{FoundTargets, STRETCH};

impl PartAccess {
    /// Begins to read the target edges at `places` of a split (0 to 2: `train`, `valid`, `test`), as far as the part has
    /// them. A request to a server is under way when this returns; the returned function waits for the reply.
    ///
    /// # Errors
    /// The returned function fails if the part has no target edges, there is no such split, or the server does not
    /// reply.
    pub fn begin_targets(
        &self,
        split: usize,
        places: Arc<[u32]>,
    ) -> Box<dyn FnOnce() -> Result<FoundTargets> + Send> {
        match self {
            Self::Local(part) => {
                let part = Arc::clone(part);
                Box::new(move || part.targets(split, &places))
            }
            Self::Remote(part) => Box::new(part.begin_targets(split, &places)),
        }
    }

    /// Streams the target edges of a split that the part has into `each`, in the order of their places, which stand in
    /// [`FoundTargets::positions`], and in pieces of at most 2^14 edges.
    ///
    /// # Errors
    /// As [`PartAccess::begin_targets`], and those of `each`.
    pub fn split_targets(
        &self,
        split: usize,
        each: &mut dyn FnMut(FoundTargets) -> Result<()>,
    ) -> Result<()> {
        let part = match self {
            Self::Local(part) => part,
            Self::Remote(part) => return part.split_targets(split, each),
        };
        let mut from = 0;
        while let Some(found) = part.split_targets(split, from, STRETCH)? {
            if found.edges.is_empty() {
                break;
            }
            each(found)?;
            from += STRETCH;
        }
        Ok(())
    }

    /// Begins to read the part's target edges that match one of `keys`, `[given endpoint, relation]`: edges of that
    /// relation whose endpoint opposite to `side` is the given one. If `train`, training edges are found by an index,
    /// equal ones once; otherwise those of all splits in one pass over the part's files. Keys may repeat, edges of a
    /// key do not.
    ///
    /// # Errors
    /// As [`PartAccess::begin_targets`].
    pub fn begin_known(
        &self,
        side: Side,
        keys: Arc<[[u32; 2]]>,
        train: bool,
    ) -> Box<dyn FnOnce() -> Result<Triples> + Send> {
        match self {
            Self::Local(part) => {
                let part = Arc::clone(part);
                Box::new(move || part.known(side, &keys, train))
            }
            Self::Remote(part) => Box::new(part.begin_known(side, &keys, train)),
        }
    }
}
