"""Mini-batches of datasets on disk for models of PyTorch Geometric, and inference over them."""

from __future__ import annotations

from gnarl.pyg._convert import to_pyg
from gnarl.pyg._infer import infer
from gnarl.pyg._link_neighbor_loader import LinkNeighborLoader
from gnarl.pyg._neighbor_loader import NeighborLoader

__all__ = ["LinkNeighborLoader", "NeighborLoader", "infer", "to_pyg"]
