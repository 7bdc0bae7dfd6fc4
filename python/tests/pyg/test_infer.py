"""Inference layer by layer is that over the whole graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, SAGEConv

import gnarl
from gnarl.pyg import infer


@pytest.mark.parametrize(
    "model",
    [
        lambda: GraphSAGE(6, 16, 3, 4),
        lambda: GraphSAGE(6, 16, 2, 4, jk="last", norm="batch"),
        lambda: GAT(6, 16, 2, 4, heads=2, dropout=0.5),
        lambda: GIN(6, 8, 2),
    ],
)
def test_outputs_are_those_over_the_whole_graph(dataset, tmp_path, model):
    torch.manual_seed(0)
    model = model()
    model.train()
    rows = infer(model, dataset, tmp_path / "rows.npy", batch_size=37)
    assert model.training and isinstance(rows, np.memmap)
    data = dataset.to_pyg()
    model.eval()
    with torch.no_grad():
        whole = model(data.x, data.edge_index)
    torch.testing.assert_close(torch.from_numpy(np.array(rows)), whole, rtol=1e-5, atol=1e-5)
    assert [place.name for place in tmp_path.iterdir()] == ["rows.npy"]


def test_models_of_ones_own_give_their_layers(dataset, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.ModuleList([SAGEConv(6, 8), SAGEConv(8, 3)])
    layers = [
        lambda x, batch: model[0](x, batch.edge_index)[: batch.batch_size].relu(),
        lambda x, batch: model[1](x, batch.edge_index)[: batch.batch_size],
    ]
    rows = infer(model, dataset, tmp_path / "rows.npy", layers=layers)
    data = dataset.to_pyg()
    with torch.no_grad():
        whole = model[1](model[0](data.x, data.edge_index).relu(), data.edge_index)
    torch.testing.assert_close(torch.from_numpy(np.array(rows)), whole, rtol=1e-5, atol=1e-5)


def test_what_cannot_be_computed_is_refused(dataset, typed, tmp_path):
    place = tmp_path / "rows.npy"
    for model, data, options, message in [
        (GCN(6, 8, 2), dataset, {}, "GCNConv counts"),
        (GraphSAGE(6, 8, 2, jk="cat"), dataset, {}, "jk='cat'"),
        (torch.nn.Linear(6, 2), dataset, {}, "layers of Linear"),
        (torch.nn.Linear(6, 2), dataset, {"layers": [lambda x, batch: x]}, "rows for the 300 nodes"),
        (GraphSAGE(6, 8, 2), typed, {}, "heterogeneous"),
    ]:
        if "rows for" in message:
            options = {**options, "batch_size": 299}
            message = "rows for the 299 nodes"
        with pytest.raises(gnarl.UsageError, match=message):
            infer(model, data, place, **options)
        assert list(tmp_path.iterdir()) == []
    infer(GraphSAGE(6, 8, 1), dataset, place)
    with pytest.raises(gnarl.UsageError, match="is there already"):
        infer(GraphSAGE(6, 8, 1), dataset, place)
    infer(GraphSAGE(6, 8, 1), dataset, place, force=True)
