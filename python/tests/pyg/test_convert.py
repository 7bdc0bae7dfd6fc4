"""Datasets from and to Data and HeteroData."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data, HeteroData

import gnarl


def same(found, expected, keys):
    for key in keys:
        torch.testing.assert_close(found[key], expected[key], msg=key)


def test_data_there_and_back(tmp_path):
    torch.manual_seed(0)
    data = Data(
        x=torch.randn(40, 5),
        y=torch.randint(0, 3, (40,)),
        edge_index=torch.randint(0, 40, (2, 200)),
        edge_attr=torch.randn(200, 2),
        edge_weight=torch.rand(200),
        train_mask=torch.arange(40) < 20,
        val_mask=torch.arange(40) >= 30,
    )
    graph = gnarl.from_pyg(data, tmp_path / "g")
    back = graph.to_pyg()
    back.validate(raise_on_error=True)
    same(back, data, ["x", "y", "edge_index", "edge_attr", "edge_weight", "train_mask", "val_mask"])
    again = gnarl.from_pyg(back, tmp_path / "again").to_pyg()
    same(again, back, set(back.keys()) - {"num_nodes"})
    assert "test_mask" not in back and graph.num_classes() == 3


def test_hetero_data_there_and_back(tmp_path):
    data = HeteroData()
    data["user"].x = torch.randn(10, 4)
    data["item"].num_nodes = 6
    data["user"].y = torch.rand(10)
    data["user", "buys", "item"].edge_index = torch.stack([torch.randint(0, 10, (30,)), torch.randint(0, 6, (30,))])
    data["user", "buys", "item"].time = torch.arange(30)
    data["item", "bought_by", "user"].edge_index = data["user", "buys", "item"].edge_index.flip(0)
    graph = gnarl.from_pyg(data, tmp_path / "g")
    back = graph.to_pyg()
    assert back.node_types == data.node_types and back.edge_types == data.edge_types
    same(back["user"], data["user"], ["x", "y"])
    for triple in data.edge_types:
        torch.testing.assert_close(back[triple].edge_index, data[triple].edge_index)
    assert back["item"].num_nodes == 6
    torch.testing.assert_close(back["user", "buys", "item"].time, torch.arange(30))


def test_numbers_of_several_tasks_are_refused(tmp_path):
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.rand(2, 3), num_nodes=2)
    with pytest.raises(gnarl.UsageError, match="other values than 0 and 1"):
        gnarl.from_pyg(data, tmp_path / "g")
    data = Data(
        edge_index=torch.tensor([[0, 1], [1, 0]]), train_mask=torch.tensor([1, 0], dtype=torch.uint8), num_nodes=2
    )
    assert gnarl.from_pyg(data, tmp_path / "g").split("train").tolist() == [0]
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.ones(2, 3, dtype=torch.bfloat16))
    assert gnarl.from_pyg(data, tmp_path / "h").features().tolist() == [[1, 1, 1], [1, 1, 1]]


def test_what_is_left_out_is_told(tmp_path):
    data = HeteroData()
    data["a"].num_nodes = 3
    data["a"].color = torch.zeros(3)
    data["a", "to", "a"].edge_index = torch.tensor([[0], [1]])
    with pytest.warns(UserWarning, match="'color' of a is not written"):
        gnarl.from_pyg(data, tmp_path / "g")
    with pytest.raises(TypeError, match="found dict"):
        gnarl.from_pyg({}, tmp_path / "h")
