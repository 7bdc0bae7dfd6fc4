//! The types of a knowledge graph.

use crate::manifest::Triple;

/// Node type of the entities.
pub(super) const ENTITY: &str = "entity";

/// Edge type of the triples.
pub(super) fn entity_edges() -> Triple {
    Triple { src: ENTITY.into(), rel: "to".into(), dst: ENTITY.into() }
}
