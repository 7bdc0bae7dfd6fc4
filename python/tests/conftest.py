"""Graphs that tests share."""

from __future__ import annotations

import numpy as np
import pytest

import gnarl

NODES, FEATURES, CLASSES = 300, 6, 4


def random_edges(count, sources, destinations, seed):
    """Distinct edges in random order."""
    draw = np.random.default_rng(seed)
    numbers = draw.choice(sources * destinations, size=count, replace=False)
    return np.stack([numbers // destinations, numbers % destinations])


@pytest.fixture(scope="session")
def arrays():
    draw = np.random.default_rng(1)
    labels = draw.integers(0, CLASSES, NODES)
    return {
        "edges": random_edges(2000, NODES, NODES, 2),
        "features": draw.normal(size=(NODES, FEATURES)).astype(np.float32),
        "labels": labels,
        "splits": {"train": np.arange(0, NODES, 2), "val": np.arange(NODES) % 4 == 1},
        "edge_features": draw.normal(size=(2000, 3)).astype(np.float32),
        "edge_weights": draw.uniform(0.1, 1, 2000).astype(np.float32),
    }


@pytest.fixture(scope="session")
def dataset(arrays, tmp_path_factory):
    return gnarl.from_arrays(tmp_path_factory.mktemp("data") / "graph", **arrays)


@pytest.fixture(scope="session")
def typed_arrays():
    draw = np.random.default_rng(3)
    return {
        "num_nodes": {"venue": 5},
        "edges": {
            ("author", "writes", "paper"): random_edges(400, 60, 90, 4),
            ("paper", "written_by", "author"): random_edges(400, 90, 60, 5),
            ("paper", "cites", "paper"): random_edges(500, 90, 90, 6),
            ("venue", "has", "paper"): random_edges(100, 5, 90, 7),
            ("paper", "appears_in", "venue"): random_edges(100, 90, 5, 8),
        },
        "features": {
            "paper": draw.normal(size=(90, 5)).astype(np.float32),
            "author": draw.normal(size=(60, 3)).astype(np.float16),
        },
        "labels": {"paper": draw.integers(0, 3, 90)},
        "splits": {"paper": {"train": np.arange(40)}},
    }


@pytest.fixture(scope="session")
def typed(typed_arrays, tmp_path_factory):
    return gnarl.from_arrays(tmp_path_factory.mktemp("data") / "typed", **typed_arrays)
