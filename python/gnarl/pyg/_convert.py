"""Whole datasets from and to objects of PyTorch Geometric."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import Data, HeteroData

from gnarl._dataset import PLAIN, EdgeType
from gnarl.pyg._batches import fill_edge_columns, fill_node_columns

if TYPE_CHECKING:
    from gnarl._dataset import Dataset

_MASKS = {"train_mask": "train", "val_mask": "valid", "test_mask": "test"}
_OF_NODES = {"x": "features", "y": "labels", "time": "times"}
_OF_EDGES = {
    "edge_index": "edges",
    "edge_attr": "features",
    "edge_weight": "weights",
    "time": "times",
    "edge_time": "times",
}
#: Facts that follow from others, or that batches have and graphs do not need.
_KNOWN = {"num_nodes", "batch", "ptr", "n_id", "e_id", "input_id", "batch_size"}


def to_pyg(dataset: Dataset) -> Data | HeteroData:
    """The whole dataset in memory."""
    if dataset.is_heterogeneous:
        data = HeteroData()
        for of in dataset.node_types:
            _fill_nodes(data[of], dataset, of)
        for triple in dataset.edge_types:
            _fill_edges(data[triple], dataset, triple)
        return data
    data = Data()
    _fill_nodes(data, dataset, dataset.node_type())
    _fill_edges(data, dataset, dataset.edge_type())
    return data


def _fill_edges(store: Any, dataset: Dataset, of: EdgeType) -> None:
    store.edge_index = torch.from_numpy(dataset.edges(of))
    fill_edge_columns(store, dataset.edge_features(of), dataset.edge_weights(of), dataset.edge_times(of))


def _fill_nodes(store: Any, dataset: Dataset, of: str) -> None:
    store.num_nodes = dataset.num_nodes(of)
    fill_node_columns(store, dataset.features(node_type=of), dataset.labels(node_type=of), dataset.times(of))
    known = dataset.splits(of)
    for mask, split in _MASKS.items():
        if split in known:
            store[mask] = torch.from_numpy(dataset.mask(split, of))


def parts_of_pyg(data: Any) -> tuple[dict[str, dict[str, Any]], dict[EdgeType, dict[str, Any]]]:
    """The columns of node types and edge types, by the names that :func:`gnarl.from_arrays` has for them."""
    from gnarl._write import PLAIN_EDGES

    if isinstance(data, Data):
        stores = [(PLAIN, data._store)]
        edge_stores: list[tuple[EdgeType, Any]] = [(PLAIN_EDGES, data._store)]
    elif isinstance(data, HeteroData):
        stores = [(of, data[of]) for of in data.node_types]
        edge_stores = [(of, data[of]) for of in data.edge_types]
    else:
        raise TypeError(f"expected Data or HeteroData of torch_geometric, found {type(data).__name__}")
    one = isinstance(data, Data)
    nodes = {of: _node_columns(store, of, one) for of, store in stores}
    types = {of: _edge_columns(store, of, one) for of, store in edge_stores}
    return nodes, types


def _node_columns(store: Any, of: str, shared: bool) -> dict[str, Any]:
    columns: dict[str, Any] = {"num_nodes": store.num_nodes}
    splits = {}
    for key, value in store.items():
        if key in _MASKS:
            splits[_MASKS[key]] = _mask(value)
        elif key == "time" and not _is_of_nodes(value, store.num_nodes):
            continue
        elif key in _OF_NODES:
            columns[_OF_NODES[key]] = value
        elif key not in _KNOWN and not (shared and key in _OF_EDGES):
            warnings.warn(f"{key!r} of {of} is not written: gnarl has no such column", stacklevel=5)
    if splits:
        columns["splits"] = splits
    return columns


def _edge_columns(store: Any, of: EdgeType, shared: bool) -> dict[str, Any]:
    if "edge_index" not in store:
        hint = "convert adj_t by to_edge_index() first" if "adj_t" in store else "it has no edge_index"
        raise TypeError(f"edges of {of}: {hint}")
    columns: dict[str, Any] = {}
    for key, value in store.items():
        if shared and key == "time" and _is_of_nodes(value, store.num_nodes):
            continue
        if key in _OF_EDGES:
            columns[_OF_EDGES[key]] = value
        elif key not in _KNOWN and not shared:
            warnings.warn(f"{key!r} of {of} is not written: gnarl has no such column", stacklevel=5)
    return columns


def _mask(value: Any) -> Any:
    """A mask, which older datasets have as bytes."""
    return value.bool() if getattr(value, "dtype", None) == torch.uint8 else value


def _is_of_nodes(value: Any, num_nodes: int) -> bool:
    return getattr(value, "ndim", 1) > 0 and len(value) == num_nodes
