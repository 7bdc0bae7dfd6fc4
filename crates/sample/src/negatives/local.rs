//! `local`: nodes of the part that owns the given endpoint, so that none has to be fetched from
//! another part (DistDGLv2, section 5.6).

use std::sync::Arc;

use gnarl_common::IdMap;
use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// Nodes drawn uniformly from a part, with repetition, `count` for all edges of the batch whose
/// given endpoint is there.
pub struct Local {
    /// The part of each node.
    owner: Arc<IdMap>,
    /// Nodes of each part.
    members: Vec<Vec<u32>>,
    count: usize,
}

impl Local {
    /// Draws `count` nodes of a part; `owner` has the part of each.
    pub fn new(owner: Arc<IdMap>, count: usize) -> Self {
        let mut members = vec![Vec::new(); owner.parts()];
        (0..owner.len()).for_each(|node| members[owner.part(node)].push(node as u32));
        Self { owner, members, count }
    }
}

impl NegativeSampler for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        let known = &batch.triples.ends(side.other())[batch.share.clone()];
        let mut group_of = vec![None; self.members.len()];
        let mut drawn = Drawn { count: self.count, ..Drawn::default() };
        let mut groups = 0;
        for &node in known {
            let part = self.owner.part(node as usize);
            let group = *group_of[part].get_or_insert_with(|| {
                let key = key.with(part as u64);
                let members = &self.members[part];
                let draw = |i| members[key.below(i, members.len() as u64) as usize];
                drawn.ids.extend((0..self.count as u64).map(draw));
                groups += 1;
                groups - 1
            });
            drawn.groups.push(group);
        }
        drawn
    }
}
