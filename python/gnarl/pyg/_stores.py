"""Stores of PyTorch Geometric over a dataset on disk, for its own loaders."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import FeatureStore as BaseFeatureStore
from torch_geometric.data import GraphStore as BaseGraphStore
from torch_geometric.data import TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout

from gnarl._dataset import Dataset
from gnarl._errors import UsageError

_READ_ONLY = "gnarl.from_arrays, from_tables and from_pyg write datasets"


def stores(dataset: Dataset | str | os.PathLike[str]) -> tuple[FeatureStore, GraphStore]:
    """The pair that loaders of PyTorch Geometric take as ``data``."""
    opened = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    return FeatureStore(opened), GraphStore(opened)


class FeatureStore(BaseFeatureStore):  # type: ignore[misc]
    """The columns of nodes: ``x``, ``y`` and ``time``, read from disk by rows.

    In a homogeneous graph attributes have no group, in a heterogeneous one the name of their node type. It is read-only, and
    pickled by the dataset's path.
    """

    def __init__(self, dataset: Dataset) -> None:
        super().__init__()
        self.__dict__["dataset"] = dataset

    def __reduce__(self) -> tuple[type[FeatureStore], tuple[Dataset]]:
        return (FeatureStore, (self.__dict__["dataset"],))

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """The columns that there are; new objects each time, as loaders write into them."""
        dataset: Dataset = self.__dict__["dataset"]
        found = []
        for of in dataset.node_types:
            group = of if dataset.is_heterogeneous else None
            there = {
                "x": dataset.num_features(of) > 0,
                "y": dataset.has_labels(of),
                "time": dataset.has_times(of),
            }
            found += [TensorAttr(group, name) for name, is_there in there.items() if is_there]
        return found

    def _get_tensor(self, attr: TensorAttr) -> Tensor | None:
        dataset: Dataset = self.__dict__["dataset"]
        of = dataset.node_type(attr.group_name)
        nodes = _nodes(attr.index, dataset.num_nodes(of))
        values: Any = None
        if attr.attr_name == "x":
            values = dataset.features(nodes, node_type=of)
        elif attr.attr_name == "y":
            values = dataset.labels(nodes, node_type=of)
        elif attr.attr_name == "time":
            values = dataset.times(of, nodes)
        return None if values is None else torch.from_numpy(values)

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        dataset: Dataset = self.__dict__["dataset"]
        of = dataset.node_type(attr.group_name)
        one = self._get_tensor(TensorAttr(attr.group_name, attr.attr_name, torch.arange(min(1, dataset.num_nodes(of)))))
        return None if one is None else (dataset.num_nodes(of), *one.shape[1:])

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise UsageError(f"{attr.attr_name} cannot be put: a dataset is read-only", _READ_ONLY)

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise UsageError(f"{attr.attr_name} cannot be removed: a dataset is read-only", _READ_ONLY)

    def __repr__(self) -> str:
        return f"FeatureStore({self.__dict__['dataset']!r})"


class GraphStore(BaseGraphStore):  # type: ignore[misc]
    """The edges, as ``edge_index`` in memory of those who ask. :class:`~gnarl.pyg.NeighborSampler` does not."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__()
        self.__dict__["dataset"] = dataset

    def __reduce__(self) -> tuple[type[GraphStore], tuple[Dataset]]:
        return (GraphStore, (self.__dict__["dataset"],))

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """The edge types; new objects each time."""
        dataset: Dataset = self.__dict__["dataset"]
        return [
            EdgeAttr(of, EdgeLayout.COO, False, (dataset.num_nodes(of[0]), dataset.num_nodes(of[2])))
            for of in dataset.edge_types
        ]

    def _get_edge_index(self, attr: EdgeAttr) -> tuple[Tensor, Tensor] | None:
        if attr.layout != EdgeLayout.COO:
            return None
        edges = self.__dict__["dataset"].edges(attr.edge_type)
        return torch.from_numpy(edges[0]), torch.from_numpy(edges[1])

    def _put_edge_index(self, edge_index: Any, attr: EdgeAttr) -> bool:
        raise UsageError(f"edges {attr.edge_type} cannot be put: a dataset is read-only", _READ_ONLY)

    def _remove_edge_index(self, attr: EdgeAttr) -> bool:
        raise UsageError(f"edges {attr.edge_type} cannot be removed: a dataset is read-only", _READ_ONLY)

    def __repr__(self) -> str:
        return f"GraphStore({self.__dict__['dataset']!r})"


def _nodes(index: Any, count: int) -> Any:
    """The nodes that an attribute's index asks for."""
    if index is None:
        return np.arange(count)
    if isinstance(index, slice):
        return np.arange(count)[index]
    nodes = index.detach().cpu().numpy() if isinstance(index, Tensor) else np.asarray(index)
    nodes = np.flatnonzero(nodes) if nodes.dtype == bool else nodes
    return np.ascontiguousarray(nodes.reshape(-1), dtype=np.int64)
