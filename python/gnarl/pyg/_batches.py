"""Batches of the extension module as ``Data`` and ``HeteroData``."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

from gnarl._dataset import Dataset


def to_data(dataset: Dataset, batch: Any) -> Data | HeteroData:
    """The nodes and edges of a batch. Tensors share the memory of its arrays."""
    _, _, nodes, edges, _, _ = batch
    if not dataset.is_heterogeneous:
        data = Data()
        _fill_nodes(data, nodes[0])
        _fill_edges(data, edges[0])
        return data
    data = HeteroData()
    for of, columns in zip(dataset.node_types, nodes, strict=True):
        _fill_nodes(data[of], columns)
    for triple, columns in zip(dataset.edge_types, edges, strict=True):
        _fill_edges(data[triple], columns)
    return data


def _fill_nodes(store: Any, columns: Any) -> None:
    ids, features, labels, times, trees, of_hop = columns
    fill_node_columns(store, features, labels, times)
    if trees is not None:
        store.batch = torch.from_numpy(trees)
    store.n_id = torch.from_numpy(ids)
    store.num_nodes = len(ids)
    # No hop tells the nodes and edges of other subgraphs than of the drawn edges apart.
    if of_hop:
        store.num_sampled_nodes = of_hop


def _fill_edges(store: Any, columns: Any) -> None:
    ends, ids, features, weights, times, of_hop = columns
    store.edge_index = torch.from_numpy(ends)
    if ids is not None:
        store.e_id = torch.from_numpy(ids)
    fill_edge_columns(store, features, weights, times)
    if of_hop:
        store.num_sampled_edges = of_hop


def fill_node_columns(store: Any, features: Any, labels: Any, times: Any) -> None:
    """Adds the columns of nodes that there are, by the names of PyTorch Geometric."""
    for name, values in (("x", features), ("y", labels), ("time", times)):
        if values is not None:
            store[name] = torch.from_numpy(values)


def fill_edge_columns(store: Any, features: Any, weights: Any, times: Any) -> None:
    """Adds the columns of edges that there are likewise."""
    # In a homogeneous graph the name is taken where nodes have times.
    time = "edge_time" if "time" in store else "time"
    for name, values in (("edge_attr", features), ("edge_weight", weights), (time, times)):
        if values is not None:
            store[name] = torch.from_numpy(values)
