#!/usr/bin/env python3
"""A knowledge graph larger than memory: embeddings of entities in files, trained, killed, resumed and ranked.

    benches/cluster/knowledge_graph.py generate FOLDER [ENTITIES TRIPLES]

writes train.npy, valid.npy and test.npy: 50 relations, heads by a power law, and tails that depend on head and relation, so that
there is something to learn: an entity has a type, a relation joins two types, and most tails are near the head's place in the
type.
"""

import sys
from pathlib import Path

import numpy as np

RELATIONS, TYPES, HELD_OUT, PIECE = 50, 20, 10_000, 10_000_000


def triples(rng, count, entities, types):
    """`count` triples of entities, which are numbered at random."""
    relation = rng.integers(0, RELATIONS, count, dtype=np.uint32)
    each = entities // TYPES
    # Ranks in a type by a power law: a few heads have many triples.
    rank = (each * rng.random(count) ** 3).astype(np.int64)
    near = rng.integers(-50, 51, count)
    far = rng.random(count) < 0.2
    tail = np.where(far, (each * rng.random(count)).astype(np.int64), (rank + near) % each)
    head = types[relation, 0] * each + rank
    tail = types[relation, 1] * each + tail
    return np.stack([head, relation.astype(np.int64), tail], axis=1)


def generate(folder, entities, count):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    types = rng.integers(0, TYPES, (RELATIONS, 2))
    number = rng.permutation(entities).astype(np.int64)
    for name, size in [("valid", HELD_OUT), ("test", HELD_OUT), ("train", count)]:
        out = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.int32, (size, 3))
        for first in range(0, size, PIECE):
            piece = triples(rng, min(PIECE, size - first), entities, types)
            piece[:, 0], piece[:, 2] = number[piece[:, 0]], number[piece[:, 2]]
            out[first : first + len(piece)] = piece


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] != "generate":
        sys.exit(__doc__)
    sizes = [int(size) for size in sys.argv[3:5]] or [20_000_000, 200_000_000]
    generate(Path(sys.argv[2]), *sizes)
