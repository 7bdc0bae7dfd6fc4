"""Modules with a run's weights give the run's outputs."""

from __future__ import annotations

import copy
import json
import shutil

import numpy as np
import pytest
import torch

import gnarl
from gnarl.pyg import NeighborLoader, infer, module
from gnarl.pyg._module._edges import Edges

#: Rounding of float32 in another order of sums: outputs are of the size of 1.
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of PyTorch cost more than they save on graphs of this size."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def graph_with(tmp_path_factory, name, **changes):
    """A directed graph with loops, repeated edges, and nodes without in-edges or out-edges."""
    draw = np.random.default_rng(5)
    edges = draw.integers(0, 110, (2, 700))
    edges[1] = np.where(edges[1] < 10, 20, edges[1])
    edges = np.concatenate([edges, edges[:, :40], [[30, 31, 32], [30, 31, 32]]], axis=1)
    arrays = {
        "features": draw.normal(size=(120, 6)).astype(np.float32),
        "labels": draw.integers(0, 4, 120),
        "splits": {"train": np.arange(0, 120, 2), "val": np.arange(1, 120, 4)},
        "edge_features": draw.normal(size=(743, 3)).astype(np.float32),
        **changes,
    }
    return gnarl.from_arrays(tmp_path_factory.mktemp("graphs") / name, edges, **arrays)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return graph_with(tmp_path_factory, "plain")


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    weights = np.random.default_rng(6).uniform(0.1, 2, 743).astype(np.float32)
    # Edges without weight are as good as none where a mean is taken.
    weights[:60] = 0
    return graph_with(tmp_path_factory, "weighted", edge_weights=weights)


def train(graph, tmp_path, model, name="run", **sections):
    fanouts = [5] * (model.get("propagations") or model.get("layers", 2))
    config = {
        "dataset": {"path": graph.path},
        "model": {"hidden": 8, **model},
        "sample": {"batch_size": 32, "fanouts": fanouts},
        "train": {"epochs": 2, "lr": 0.05},
        "output": {"dir": tmp_path / name},
    }
    for section, keys in sections.items():
        config[section] = {**config.get(section, {}), **keys}
    return gnarl.train(config, quiet=True)


def outputs(model, graph):
    data = graph.to_pyg()
    with torch.no_grad():
        if graph.is_heterogeneous:
            weights = {of: data[of].edge_weight for of in graph.edge_types if "edge_weight" in data[of]}
            return model(data.x_dict, data.edge_index_dict, weights)
        return model(data.x, data.edge_index, data.edge_weight, data.edge_attr)


def check(run, graph, of=None):
    """The module's outputs are those of the run; returns it."""
    model = module(run)
    found = outputs(model, graph)
    expected = torch.from_numpy(run.logits())
    torch.testing.assert_close(found if of is None else found[of], expected, **CLOSE)
    assert expected.std() > 1e-3, "outputs differ between nodes"
    return model


MODELS = {
    "sage": {"name": "sage"},
    "sage max-pool": {"name": "sage", "aggregator": "max-pool", "layers": 3},
    "sage lstm": {"name": "sage", "aggregator": "lstm", "activation": "tanh"},
    "ngnn": {"name": "ngnn", "layers": 1},
    "ngnn deeper": {"name": "ngnn", "layers": 3, "activation": {"leaky-relu": 0.1}},
    "gcn": {"name": "gcn", "layers": 3, "hidden": 16},
    "gcn decoupled": {"name": "gcn", "decoupled": True, "propagations": 3, "teleport": 0.2},
    "sgc": {"name": "sgc"},
    "gat": {"name": "gat", "heads": 2, "negative_slope": 0.1},
    "gat out_heads": {"name": "gat", "heads": 4, "out_heads": 3, "self_loops": False, "activation": "sigmoid"},
    "gat edge_features": {"name": "gat", "heads": 2, "out_heads": 2, "edge_features": True},
    "gat decoupled": {"name": "gat", "decoupled": True, "propagations": 3, "teleport": 0.1, "out_heads": 2},
    "gat decoupled, no loops": {"name": "gat", "decoupled": True, "self_loops": False, "activation": "none"},
    "gatv2": {"name": "gatv2", "heads": 2},
    "gatv2 out_heads": {"name": "gatv2", "heads": 2, "out_heads": 2, "self_loops": False},
    "gatv2 edge_features": {"name": "gatv2", "heads": 2, "out_heads": 2, "edge_features": True},
    "gin": {"name": "gin"},
    "gin edge_features": {"name": "gin", "edge_features": True},
    "mlp": {"name": "mlp", "layers": 3},
}


#: Models with another way for edges without weights.
PLAIN = ["sage", "sage lstm", "gcn", "gin", "gin edge_features"]


@pytest.mark.parametrize("name", [*MODELS, *(f"{name}, no weights" for name in PLAIN)])
def test_outputs_are_those_of_the_run(plain, weighted, tmp_path, name):
    settings = MODELS[name.removesuffix(", no weights")]
    graph = weighted if name in MODELS else plain
    model = check(train(graph, tmp_path, settings), graph)
    # Layers over all neighbors, with in-degrees of the whole graph.
    rows = infer(model, graph, tmp_path / "rows.npy", layers=model.layers(graph), batch_size=29)
    torch.testing.assert_close(torch.from_numpy(np.array(rows)), outputs(model, graph), **CLOSE)


HETEROGENEOUS = {
    "rgcn": {"name": "rgcn", "layers": 3},
    "rgcn basis": {"name": "rgcn", "decomposition": "basis", "bases": 3},
    "rgcn block": {"name": "rgcn", "decomposition": "block", "bases": 2},
    "rgcn one_hot": {"name": "rgcn", "decomposition": "basis", "bases": 3, "one_hot": True},
    "rgcn decoupled": {"name": "rgcn", "decoupled": True, "propagations": 3, "teleport": 0.2},
    "rgcn decoupled, no teleport": {"name": "rgcn", "decoupled": True, "layers": 1},
    "rgat within": {"name": "rgat", "heads": 2, "softmax": "within"},
    "rgat across": {"name": "rgat", "heads": 2, "out_heads": 3, "softmax": "across", "negative_slope": 0.1},
    "hgt": {"name": "hgt", "heads": 2, "layers": 3},
    "hetero sage": {"name": "hetero", "layers": 3},
    "hetero max-pool": {"name": "hetero", "aggregator": "max-pool", "across": "max"},
    "hetero lstm": {"name": "hetero", "aggregator": "lstm", "across": "mean"},
    "hetero gat": {"name": "hetero", "relation_layer": "gat", "out_heads": 2, "across": "mean"},
    "hetero gin": {"name": "hetero", "relation_layer": "gin", "activation": "elu"},
    "mlp": {"name": "mlp", "activation": "tanh"},
}


@pytest.fixture(scope="module")
def typed_weighted(typed_arrays, tmp_path_factory):
    draw = np.random.default_rng(7)
    weights = {("author", "writes", "paper"): draw.uniform(0.1, 2, 400).astype(np.float32)}
    weights["paper", "cites", "paper"] = draw.uniform(0, 3, 500).astype(np.float32)
    # Authors receive no messages here.
    changed = copy.copy(typed_arrays)
    changed["edges"] = {of: ends for of, ends in typed_arrays["edges"].items() if of[1] != "written_by"}
    return gnarl.from_arrays(tmp_path_factory.mktemp("data") / "typed", **changed, edge_weights=weights)


PLAIN_TYPED = ["rgcn", "rgcn one_hot", "hetero sage", "hetero gin"]


@pytest.mark.parametrize("name", [*HETEROGENEOUS, *(f"{name}, no weights" for name in PLAIN_TYPED)])
def test_outputs_of_heterogeneous_models(typed, typed_weighted, tmp_path, name):
    settings = HETEROGENEOUS[name.removesuffix(", no weights")]
    graph = typed_weighted if name in HETEROGENEOUS else typed
    model = check(train(graph, tmp_path, settings), graph, "paper")
    assert model.config["node_type"] == "paper"
    assert set(outputs(model, graph)) == {"author", "paper", "venue"}
    rows = infer(model, graph, tmp_path / "rows", layers=model.layers(), node_types=["paper"], batch_size=29)
    torch.testing.assert_close(torch.from_numpy(np.array(rows["paper"])), outputs(model, graph)["paper"], **CLOSE)


@pytest.mark.parametrize("settings", [{"name": "rgcn"}, {"name": "rgcn", "decoupled": True}, {"name": "hetero"}])
@pytest.mark.parametrize(
    "sample",
    [
        {"edge_fanouts": {"paper:cites:paper": [0, 3], "author:writes:paper": [3, 0]}},
        {"meta_path": ["author:writes:paper", "paper:written_by:author"]},
    ],
    ids=["edge_fanouts", "meta_path"],
)
def test_layers_read_the_edge_types_that_are_sampled(typed, tmp_path, settings, sample):
    check(train(typed, tmp_path, settings, sample=sample), typed, "paper")


def test_features_are_normalized_as_by_the_run(plain, typed, tmp_path):
    row = {"normalize": "row"}
    check(train(plain, tmp_path, {"name": "sage"}, "one", dataset=row), plain)
    check(train(typed, tmp_path, {"name": "rgcn"}, "two", dataset=row), typed, "paper")


def test_numbers_are_predicted_as_by_the_run(plain, tmp_path, tmp_path_factory):
    values = np.random.default_rng(8).normal(size=120).astype(np.float32)
    graph = graph_with(tmp_path_factory, "values", labels=values)
    run = train(graph, tmp_path, {"name": "gcn"}, task={"kind": "node-regression"})
    assert outputs(check(run, graph), graph).shape == (120, 1)


def test_a_module_is_trained_further_on_batches(plain, tmp_path):
    torch.manual_seed(0)
    model = module(train(plain, tmp_path, {"name": "gat", "heads": 2}))
    assert not model.training and all(parameter.requires_grad for parameter in model.parameters())
    before = outputs(model, plain)
    model.train()
    assert not torch.equal(outputs(model, plain), before), "dropout"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        for batch in NeighborLoader(plain, [10, 10], "train", batch_size=30, shuffle=True, seed=1):
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
            optimizer.step()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    data = plain.to_pyg()
    nodes = data.train_mask
    losses = [torch.nn.functional.cross_entropy(y[nodes], data.y[nodes]) for y in (before, outputs(model, plain))]
    assert losses[1] < 0.95 * losses[0]


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_batches_with_degrees_of_the_graph(plain, tmp_path, name):
    """With all neighbors a batch gives the rows of the whole graph."""
    model = module(train(plain, tmp_path, {"name": name}))
    expected = outputs(model, plain)
    degrees = torch.bincount(torch.from_numpy(plain.edges()[1]), minlength=120)
    for batch in NeighborLoader(plain, [-1, -1], batch_size=50):
        with torch.no_grad():
            found = model(batch.x, batch.edge_index, degrees=degrees[batch.n_id])[: batch.batch_size]
        torch.testing.assert_close(found, expected[batch.n_id[: batch.batch_size]], **CLOSE)


def test_sums_over_a_sample_stand_for_all_neighbors():
    index = torch.tensor([[1, 2, 0], [0, 0, 2]])
    degrees = torch.tensor([6, 4, 1])
    edges = Edges(index, 3, 3, torch.tensor([1.0, 2.0, 5.0]), degrees=degrees)
    assert edges.of_sums.tolist() == [3.0, 6.0, 5.0]
    looped, weight = edges.of_gcn
    assert looped[:, 3:].tolist() == [[0, 1, 2]] * 2
    # Of the first node two edges of six are here; the second stands for its neighbors.
    expected = [6 / 2 / (7 * 5) ** 0.5, 2 * 6 / 2 / (7 * 2) ** 0.5, 5 / (2 * 7) ** 0.5, 1 / 7, 1, 1 / 2]
    torch.testing.assert_close(weight, torch.tensor(expected))


def test_heterogeneous_batches_take_the_embeddings_of_their_nodes(typed, tmp_path):
    model = module(train(typed, tmp_path, {"name": "rgcn"}))
    expected = outputs(model, typed)["paper"]
    for batch in NeighborLoader(typed, [-1, -1], ("paper", None), batch_size=40):
        del batch["venue"].x
        found = model(batch.x_dict, batch.edge_index_dict, n_id_dict=batch.n_id_dict)["paper"]
        seeds = batch["paper"].batch_size
        torch.testing.assert_close(found[:seeds], expected[batch["paper"].n_id[:seeds]], **CLOSE)
    found.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_saved_model_is_the_same_without_run_and_dataset(typed_arrays, plain, tmp_path):
    for name, graph, of in [("sage", plain, None), ("rgcn", None, "paper")]:
        if graph is None:
            graph = gnarl.from_arrays(tmp_path / "typed", **typed_arrays)
        run = train(graph, tmp_path, {"name": name}, name)
        expected = outputs(module(run.path), graph)
        saved = run.save_pretrained(tmp_path / f"saved-{name}")
        data = graph.to_pyg()
        shutil.rmtree(run.path)
        if of is None:
            found = module(saved)(data.x, data.edge_index)
        else:
            shutil.rmtree(graph.path)
            found = module(saved)(data.x_dict, data.edge_index_dict)[of]
            expected = expected[of]
        assert torch.equal(found, expected)


def test_what_has_no_module_is_refused_by_the_name_of_its_key(plain, typed, tmp_path):
    run = train(plain, tmp_path, {"name": "sage"})
    model = module(run)
    data = plain.to_pyg()
    with pytest.raises(gnarl.UsageError, match="x has 5 columns"):
        model(data.x[:, :5], data.edge_index)
    saved = run.save_pretrained(tmp_path / "saved")
    config = json.loads((saved / "config.json").read_text())
    for change, message in [
        ({"task": "link-prediction"}, "task.kind = 'link-prediction' has no module"),
        ({"sample": {"method": "walk"}}, "sample.method = 'walk' has no module"),
        ({"model": {**config["model"], "name": "mine"}}, "model.name = 'mine' has no counterpart"),
        ({"model": {**config["model"], "activation": "gelu"}}, "model.activation = 'gelu'"),
    ]:
        (saved / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(gnarl.UsageError, match=message):
            module(saved)
    for change, message in [({"layers": 1}, "tensors of no layer"), ({"layers": 3}, "no tensor 'layer2")]:
        (saved / "config.json").write_text(json.dumps({**config, "model": {**config["model"], **change}}))
        with pytest.raises(gnarl.DataError, match=message):
            module(saved)
    with pytest.raises(gnarl.UsageError, match="gcn normalizes by degrees"):
        module(train(plain, tmp_path, {"name": "gcn"}, "gcn")).layers()
    edges = module(train(plain, tmp_path, {"name": "gin", "edge_features": True}, "gin"))
    with pytest.raises(gnarl.UsageError, match="expected 3 features of each edge, found none"):
        edges(data.x, data.edge_index)


def test_types_that_a_model_does_not_know_are_refused(typed, tmp_path):
    run = train(typed, tmp_path, {"name": "rgcn"})
    model = module(run)
    data = typed.to_pyg()
    with pytest.raises(gnarl.UsageError, match=r"x_dict\['author'\] has no columns"):
        model({"paper": data["paper"].x}, data.edge_index_dict)
    with pytest.raises(gnarl.UsageError, match="unknown edge type 'paper:likes:paper'"):
        model(data.x_dict, {("paper", "likes", "paper"): torch.zeros(2, 1, dtype=torch.int64)})
    place = tmp_path / "run" / "config.toml"
    place.write_text(place.read_text().replace(typed.path, str(tmp_path / "gone")))
    with pytest.raises(gnarl.UsageError, match="dataset.path = .*gone"):
        module(run)
