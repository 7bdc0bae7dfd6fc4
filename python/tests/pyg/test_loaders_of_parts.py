"""Loaders of PyTorch Geometric's form over the parts of a dataset."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.nn import GraphSAGE

import gnarl
from gnarl.pyg import AddEdgeColumns, LinkNeighborLoader, NeighborLoader, NeighborSampler, infer, stores


@pytest.fixture(scope="module")
def parts(dataset, tmp_path_factory):
    place = tmp_path_factory.mktemp("parts") / "parts"
    gnarl.partition(dataset, place, 3, quiet=True)
    return gnarl.open(place)


def fields(batch):
    """The tensors of a batch, without those that parts do not tell."""
    return {key: value for key, value in batch.to_dict().items() if key not in ("e_id", "edge_attr")}


def equal(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        same = torch.equal(value, other[key]) if isinstance(value, torch.Tensor) else value == other[key]
        assert same, key


def test_batches_are_those_of_the_whole_graph(dataset, parts):
    options = {"input_nodes": "train", "batch_size": 16, "shuffle": True, "seed": 3}
    for left, right in zip(
        NeighborLoader(parts, [4, 3], **options), NeighborLoader(dataset, [4, 3], **options), strict=True
    ):
        assert "e_id" not in left and "edge_weight" in left
        equal(fields(left), fields(right))


def test_batches_around_edges_and_those_of_pyg_loaders(dataset, parts):
    edges = torch.from_numpy(dataset.edges())[:, :90]
    options = {"edge_label_index": edges, "neg_sampling": "binary", "batch_size": 16, "seed": 3}
    for left, right in zip(
        LinkNeighborLoader(parts, [4, 3], **options), LinkNeighborLoader(dataset, [4, 3], **options), strict=True
    ):
        equal(fields(left), fields(right))
    with pytest.raises(gnarl.UsageError, match="need the whole graph"):
        LinkNeighborLoader(parts, [4, 3])
    nodes = torch.arange(40)
    batches = [
        list(
            pyg.NeighborLoader(
                stores(of), [3, 2], nodes, neighbor_sampler=NeighborSampler(of, [3, 2], seed=1), batch_size=16
            )
        )
        for of in (parts, dataset)
    ]
    for left, right in zip(*batches, strict=True):
        equal(fields(left), fields(right))
    with pytest.raises(gnarl.UsageError, match="have no e_id"):
        AddEdgeColumns(parts)(batches[0][0])


def test_inference_over_parts_is_that_over_the_graph(dataset, parts, tmp_path):
    model = GraphSAGE(6, 8, 2, 3)
    whole = infer(model, dataset, tmp_path / "whole.npy")
    np.testing.assert_allclose(infer(model, parts, tmp_path / "parts.npy"), whole, rtol=1e-5, atol=1e-5)
