"""Inference layer by layer is that over the whole graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GAT, GCN, GIN, EdgeCNN, GCNConv, GraphSAGE, HeteroConv, HGTConv, LGConv, SAGEConv, SGConv

import gnarl
from gnarl.pyg import infer


@pytest.mark.parametrize(
    "model",
    [
        lambda: GraphSAGE(6, 16, 3, 4),
        lambda: GraphSAGE(6, 16, 2, 4, jk="last", norm="batch"),
        lambda: GAT(6, 16, 2, 4, heads=2, dropout=0.5),
        lambda: GIN(6, 8, 2),
        lambda: GraphSAGE(6, 8, 2, aggr="max"),
        lambda: GCN(6, 16, 3, 4),
        lambda: GCN(6, 16, 2, 4, norm="layer", norm_kwargs={"mode": "node"}, jk="last", improved=True),
        lambda: GCN(6, 8, 2, add_self_loops=False),
        lambda: EdgeCNN(6, 8, 2),
        lambda: GraphSAGE(6, 8, 2).double(),
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
    dtype = next(model.parameters()).dtype
    with torch.no_grad():
        whole = model(data.x.to(dtype), data.edge_index).float()
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


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        (lambda: GAT(6, 8, 2, 3, edge_dim=3), "edge_attr"),
        (lambda: GAT(6, 8, 2, 3, edge_dim=3, v2=True), "edge_attr"),
        (lambda: GCN(6, 8, 2, 3), "edge_weight"),
    ],
)
def test_columns_of_edges_reach_the_layers(dataset, tmp_path, model, reads):
    torch.manual_seed(0)
    model = model().eval()
    data = dataset.to_pyg()
    with torch.no_grad():
        whole = model(data.x, data.edge_index, **{reads: data[reads]})
    rows = infer(model, dataset, tmp_path / "rows.npy", edge_weight=reads == "edge_weight", batch_size=50)
    torch.testing.assert_close(torch.from_numpy(np.array(rows)), whole, rtol=1e-5, atol=1e-5)


def test_frozen_parts_stay_frozen(dataset, tmp_path):
    model = GraphSAGE(6, 8, 2, norm="batch")
    model.train()
    model.norms[0].eval()
    before = {name: part.training for name, part in model.named_modules()}
    infer(model, dataset, tmp_path / "rows.npy")
    assert {name: part.training for name, part in model.named_modules()} == before and True in before.values()


def test_only_rows_are_replaced(typed, tmp_path):
    convs = HeteroConv({of: SAGEConv((-1, -1), 4) for of in typed.edge_types if "venue" not in of})
    layers = [lambda x, batch: convs(x, batch.edge_index_dict)]
    place = tmp_path / "project"
    place.mkdir()
    (place / "thesis.tex").write_text("mine")
    with pytest.raises(gnarl.UsageError, match="'thesis.tex', which is no file of rows"):
        infer(convs, typed, place, layers=layers, force=True)
    assert (place / "thesis.tex").read_text() == "mine"


def test_names_of_types_are_no_paths(tmp_path):
    edges = {("a/b", "to", "a/b"): np.array([[0, 1], [1, 0]])}
    data = gnarl.from_arrays(tmp_path / "graph", edges, features={"a/b": np.eye(2, dtype=np.float32)})
    conv = SAGEConv(2, 3)
    layers = [lambda x, batch: conv(x, batch.edge_index)]
    # One node type and one edge type are a homogeneous graph, whatever their names.
    assert infer(conv, data, tmp_path / "rows.npy", layers=layers).shape == (2, 3)


def test_loops_count_once(tmp_path):
    edges = np.array([[0, 0, 1, 2, 2, 2], [0, 1, 1, 0, 2, 2]])
    data = gnarl.from_arrays(tmp_path / "graph", edges, features=np.eye(3, dtype=np.float32))
    model = GCN(3, 4, 2)
    rows = infer(model, data, tmp_path / "rows.npy", batch_size=2)
    with torch.no_grad():
        whole = model.eval()(torch.eye(3), torch.from_numpy(edges))
    torch.testing.assert_close(torch.from_numpy(np.array(rows)), whole, rtol=1e-5, atol=1e-5)


def hetero_sage(typed, widths):
    return torch.nn.ModuleList(
        HeteroConv({of: SAGEConv((-1, -1), width) for of in typed.edge_types}, aggr="sum") for width in widths
    )


@pytest.mark.parametrize("kind", ["sage", "hgt"])
def test_heterogeneous_outputs_are_those_over_the_whole_graph(typed, tmp_path, kind):
    torch.manual_seed(0)
    venues = torch.randn(5, 4)
    data = typed.to_pyg()
    data["venue"].x = venues
    if kind == "sage":
        first, second = convs = hetero_sage(typed, (8, 3))
    else:
        widths = {"paper": 5, "author": 3, "venue": 4}
        first = HGTConv(widths, 8, typed.metadata(), heads=2)
        second = HGTConv(8, 3, typed.metadata())
        convs = torch.nn.ModuleList([first, second])
    layers = [
        lambda x, batch: {of: rows.relu() for of, rows in first(x, batch.edge_index_dict).items() if rows is not None},
        lambda x, batch: second(x, batch.edge_index_dict),
    ]
    with torch.no_grad():
        convs.eval()
        hidden = {of: rows.relu() for of, rows in first(data.x_dict, data.edge_index_dict).items()}
        whole = second(hidden, data.edge_index_dict)
    place = tmp_path / "rows"
    found = infer(convs, typed, place, layers=layers, inputs={"venue": venues}, batch_size=7)
    assert found.keys() == {"paper", "author", "venue"}
    for of, rows in found.items():
        torch.testing.assert_close(torch.from_numpy(np.array(rows)), whole[of], rtol=1e-5, atol=1e-5)
    # Of one type, which a function of numbers of nodes gives its inputs.
    some = infer(
        convs, typed, place, layers=layers, inputs={"venue": lambda n: venues[n]}, node_types=["paper"], force=True
    )
    assert list(some) == ["paper"] and [file.name for file in place.iterdir()] == ["paper.npy"]
    np.testing.assert_allclose(some["paper"], found["paper"], rtol=1e-5, atol=1e-5)
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows"]


def test_types_without_rows_are_left_out(typed, tmp_path):
    # Venues have no features, and none are given: no edges from them.
    convs = HeteroConv({of: SAGEConv((-1, -1), 4) for of in typed.edge_types if "venue" not in of})
    place = tmp_path / "rows"
    found = infer(convs, typed, place, layers=[lambda x, batch: convs(x, batch.edge_index_dict)])
    assert sorted(found) == ["author", "paper"]
    with pytest.raises(gnarl.UsageError, match="no rows of venue"):
        layers = [lambda x, batch: convs(x, batch.edge_index_dict)]
        infer(convs, typed, place, layers=layers, node_types=["venue"], force=True)
    assert sorted(file.name for file in place.iterdir()) == ["author.npy", "paper.npy"]


class Mine(GraphSAGE):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).log_softmax(dim=1)


def test_what_cannot_be_computed_is_refused(dataset, typed, tmp_path):
    place = tmp_path / "rows.npy"
    for model, data, options, message in [
        (GCNConv(6, 8), dataset, {"layers": [lambda x, batch: x[:0]]}, "GCNConv counts"),
        (GraphSAGE(6, 8, 2), dataset, {"inputs": torch.zeros(7, 6)}, "a row for each of 300 nodes"),
        (GraphSAGE(6, 8, 2), typed, {"layers": [], "inputs": torch.zeros(90, 6)}, "a mapping by node type"),
        (GraphSAGE(6, 8, 2, norm="layer"), dataset, {}, "LayerNorm normalizes by the rows of all nodes"),
        (GraphSAGE(6, 8, 2, norm="PairNorm"), dataset, {}, "PairNorm normalizes"),
        (
            GraphSAGE(6, 8, 2, norm="batch", norm_kwargs={"track_running_stats": False}),
            dataset,
            {},
            "BatchNorm1d normalizes",
        ),
        (Mine(6, 8, 2), dataset, {}, "layers of Mine are not known"),
        (SGConv(6, 8, K=2), dataset, {"layers": [lambda x, batch: x[:0]]}, "SGConv goes several hops"),
        (LGConv(), dataset, {"layers": [lambda x, batch: x[:0]]}, "LGConv counts"),
        (GraphSAGE(6, 8, 2), dataset, {"edge_weight": True}, "takes no weights"),
        (GraphSAGE(6, 8, 2), dataset, {"node_types": []}, "names none"),
        (SAGEConv(6, 8), dataset, {"layers": [lambda x, batch: None]}, "a layer gave"),
        (len, dataset, {}, "module is a builtin"),
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
