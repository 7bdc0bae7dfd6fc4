"""Mini-batches of datasets on disk for models of PyTorch Geometric, inference over them, and gnarl's models as modules."""

from __future__ import annotations

from gnarl.pyg._convert import to_pyg
from gnarl.pyg._infer import infer
from gnarl.pyg._link_neighbor_loader import LinkNeighborLoader
from gnarl.pyg._module import module
from gnarl.pyg._neighbor_loader import NeighborLoader
from gnarl.pyg._sampler import AddEdgeColumns, NeighborSampler
from gnarl.pyg._stores import FeatureStore, GraphStore, stores

__all__ = [
    "AddEdgeColumns",
    "FeatureStore",
    "GraphStore",
    "LinkNeighborLoader",
    "NeighborLoader",
    "NeighborSampler",
    "infer",
    "module",
    "stores",
    "to_pyg",
]
