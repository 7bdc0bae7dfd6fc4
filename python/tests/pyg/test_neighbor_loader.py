"""NeighborLoader as models of PyTorch Geometric expect it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GATConv, GraphSAGE, RGCNConv, SAGEConv, to_hetero
from torch_geometric.sampler.base import NumNeighbors
from torch_geometric.utils import k_hop_subgraph, trim_to_layer

import gnarl
from gnarl.pyg import NeighborLoader


def test_batches_are_data_with_the_fields_of_pyg(dataset, arrays):
    loader = NeighborLoader(dataset, [4, 3], "train", batch_size=20)
    assert len(loader) == 8 and repr(loader) == "NeighborLoader()"
    train = torch.from_numpy(arrays["splits"]["train"])
    for number, batch in enumerate(loader):
        assert isinstance(batch, Data)
        batch.validate(raise_on_error=True)
        size = 20 if number < 7 else 10
        assert batch.batch_size == size
        seeds = slice(20 * number, 20 * number + size)
        torch.testing.assert_close(batch.n_id[:size], train[seeds])
        torch.testing.assert_close(batch.input_id, torch.arange(150)[seeds])
        torch.testing.assert_close(batch.x, torch.from_numpy(arrays["features"])[batch.n_id])
        torch.testing.assert_close(batch.y, torch.from_numpy(arrays["labels"])[batch.n_id])
        edges = torch.from_numpy(arrays["edges"])
        torch.testing.assert_close(batch.n_id[batch.edge_index], edges[:, batch.e_id])
        torch.testing.assert_close(batch.edge_attr, torch.from_numpy(arrays["edge_features"])[batch.e_id])
        torch.testing.assert_close(batch.edge_weight, torch.from_numpy(arrays["edge_weights"])[batch.e_id])
        assert batch.num_nodes == len(batch.n_id) == sum(batch.num_sampled_nodes)
        assert batch.num_edges == sum(batch.num_sampled_edges)
        for name in ("n_id", "e_id", "edge_index", "input_id", "y"):
            assert batch[name].dtype == torch.int64, name
        assert batch.x.dtype == torch.float32 and batch.edge_index.is_contiguous()


@pytest.mark.parametrize(
    ("nodes", "expected", "ids"),
    [
        (None, np.arange(300), np.arange(300)),
        ("train", np.arange(0, 300, 2), np.arange(150)),
        (torch.tensor([5, 3, 5]), [5, 3, 5], [0, 1, 2]),
        ([7, 8], [7, 8], [0, 1]),
        (torch.arange(300) % 100 == 7, [7, 107, 207], [7, 107, 207]),
        (np.arange(3, dtype=np.int32), [0, 1, 2], [0, 1, 2]),
        ((None, torch.tensor([4, 2])), [4, 2], [0, 1]),
        (("_N", None), np.arange(300), np.arange(300)),
    ],
)
def test_input_nodes_in_every_form(dataset, nodes, expected, ids):
    batch = next(iter(NeighborLoader(dataset, [3], nodes, batch_size=300)))
    np.testing.assert_array_equal(batch.n_id[: batch.batch_size], expected)
    np.testing.assert_array_equal(batch.input_id, ids)


def test_all_neighbors_are_the_subgraph_around_the_seeds(dataset, arrays):
    edges = torch.from_numpy(arrays["edges"])
    for batch in NeighborLoader(dataset, [-1, -1], [11, 4], batch_size=2):
        nodes, _, _, _ = k_hop_subgraph([11, 4], 2, edges, num_nodes=300)
        assert set(batch.n_id.tolist()) == set(nodes.tolist())
        # Edges of the subgraph whose ends are as far from the seeds as hops go.
        inner, _, _, _ = k_hop_subgraph([11, 4], 1, edges, num_nodes=300)
        expected = torch.isin(edges[1], inner).nonzero().view(-1)
        assert sorted(batch.e_id.tolist()) == expected.tolist()


class Sage(torch.nn.Module):
    def __init__(self, inputs, trim=False):
        super().__init__()
        self.layers = torch.nn.ModuleList([SAGEConv(inputs, 16), SAGEConv(16, 8)])
        self.trim = trim

    def forward(self, x, edge_index, sampled=None):
        for number, layer in enumerate(self.layers):
            if sampled is not None:
                x, edge_index, _ = trim_to_layer(number, *sampled, x, edge_index)
            x = layer(x, edge_index)
            if number == 0:
                x = x.relu()
        return x


@pytest.mark.parametrize("trim", [False, True])
def test_outputs_over_all_neighbors_are_those_over_the_graph(dataset, arrays, trim):
    torch.manual_seed(0)
    model = Sage(6)
    edges = torch.from_numpy(arrays["edges"])
    whole = model(torch.from_numpy(arrays["features"]), edges)
    for batch in NeighborLoader(dataset, [-1, -1], batch_size=64, shuffle=True):
        sampled = (batch.num_sampled_nodes, batch.num_sampled_edges) if trim else None
        out = model(batch.x, batch.edge_index, sampled)[: batch.batch_size]
        torch.testing.assert_close(out, whole[batch.n_id[: batch.batch_size]], rtol=1e-5, atol=1e-5)


def test_models_of_pyg_take_batches(dataset):
    batch = next(iter(NeighborLoader(dataset, [4, 3], batch_size=32)))
    sampled = {
        "num_sampled_nodes_per_hop": batch.num_sampled_nodes,
        "num_sampled_edges_per_hop": batch.num_sampled_edges,
    }
    model = GraphSAGE(6, 8, 2, 4)
    trimmed, whole = model(batch.x, batch.edge_index, **sampled), model(batch.x, batch.edge_index)
    assert len(trimmed) == sum(batch.num_sampled_nodes[:2]) < len(whole)
    torch.testing.assert_close(trimmed[:32], whole[:32])
    out = GATConv(6, 4, edge_dim=3)(batch.x, batch.edge_index, batch.edge_attr)
    assert out.shape == (batch.num_nodes, 4)


def test_epochs_differ_and_seeds_repeat_them(dataset):
    def epochs(**options):
        loader = NeighborLoader(dataset, [3, 3], "train", batch_size=30, shuffle=True, **options)
        return [[(batch.n_id.tolist(), batch.e_id.tolist()) for batch in loader] for _ in range(2)]

    first = epochs(seed=1)
    assert first[0] != first[1] and epochs(seed=1) == first and epochs(seed=1, threads=1) == first
    assert epochs(seed=2) != first
    torch.manual_seed(1)
    assert epochs() == first
    assert epochs(generator=torch.Generator().manual_seed(2)) == epochs(seed=2)
    loader = NeighborLoader(dataset, [3, 3], "train", batch_size=30, shuffle=True, seed=1)
    loader.set_epoch(1)
    assert [(batch.n_id.tolist(), batch.e_id.tolist()) for batch in loader] == first[1]


def test_a_model_learns_what_it_learns_in_memory(dataset, arrays):
    """Losses over all neighbors, step by step: from disk, and by PyG's own classes in memory."""

    def losses(batches):
        torch.manual_seed(0)
        model = Sage(6)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for x, edge_index, y, size in batches:
            loss = torch.nn.functional.cross_entropy(model(x, edge_index)[:size], y[:size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    loader = NeighborLoader(dataset, [-1, -1], "train", batch_size=25)
    found = list(losses((b.x, b.edge_index, b.y, b.batch_size) for _ in range(3) for b in loader))
    data = dataset.to_pyg()

    def in_memory():
        for _ in range(3):
            for seeds in torch.from_numpy(dataset.split("train")).split(25):
                nodes, edges, places, _ = k_hop_subgraph(seeds, 2, data.edge_index, relabel_nodes=True)
                others = torch.ones(len(nodes), dtype=torch.bool)
                others[places] = False
                order = torch.cat([places, others.nonzero().view(-1)])
                inverse = torch.empty_like(order)
                inverse[order] = torch.arange(len(order))
                yield data.x[nodes[order]], inverse[edges], data.y[nodes[order]], len(seeds)

    torch.testing.assert_close(torch.tensor(found), torch.tensor(list(losses(in_memory()))), rtol=1e-4, atol=1e-5)
    assert found[-1] < found[0]


def test_typed_batches(typed, typed_arrays):
    loader = NeighborLoader(typed, [3, 2], ("paper", "train"), batch_size=16, shuffle=True)
    seen = []
    for batch in loader:
        assert isinstance(batch, HeteroData)
        batch.validate(raise_on_error=True)
        assert set(batch.node_types) == {"author", "paper", "venue"}
        assert set(batch.edge_types) == set(typed_arrays["edges"])
        paper = batch["paper"]
        assert paper.batch_size == len(paper.input_id)
        seen += paper.n_id[: paper.batch_size].tolist()
        for of in ("paper", "author"):
            rows = torch.from_numpy(typed_arrays["features"][of].astype(np.float32))
            torch.testing.assert_close(batch[of].x, rows[batch[of].n_id])
        assert "x" not in batch["venue"] and batch["venue"].num_nodes == len(batch["venue"].n_id)
        for triple, edges in typed_arrays["edges"].items():
            source, _, destination = triple
            store = batch[triple]
            ends = torch.stack([batch[source].n_id[store.edge_index[0]], batch[destination].n_id[store.edge_index[1]]])
            torch.testing.assert_close(ends, torch.from_numpy(edges)[:, store.e_id])
        assert list(batch.num_sampled_nodes_dict) == batch.node_types
        assert all(len(counts) == 3 for counts in batch.num_sampled_nodes_dict.values())
        assert all(len(counts) == 2 for counts in batch.num_sampled_edges_dict.values())
    assert sorted(seen) == list(range(40))


def test_typed_models_take_batches(typed):
    model = to_hetero(GraphSAGE((-1, -1), 8, 2, 3), typed.metadata())
    loader = NeighborLoader(typed, [3, 2], ("paper", None), batch_size=16)
    batch = next(iter(loader))
    batch["venue"].x = torch.zeros(batch["venue"].num_nodes, 2)
    out = model(batch.x_dict, batch.edge_index_dict)
    assert out["paper"].shape == (batch["paper"].num_nodes, 3)
    plain = batch.to_homogeneous(add_node_type=False)
    assert RGCNConv(2, 3, 5)(torch.zeros(plain.num_nodes, 2), plain.edge_index, plain.edge_type).shape[1] == 3


def test_fan_outs_by_edge_type(typed):
    counts = {triple: [0, 0] for triple in typed.edge_types}
    counts["author", "writes", "paper"] = [2, 0]
    batch = next(iter(NeighborLoader(typed, counts, ("paper", [1, 2, 3]), batch_size=3)))
    assert batch["author", "writes", "paper"].num_edges > 0
    assert batch["paper", "cites", "paper"].num_edges == 0
    del counts["venue", "has", "paper"]
    with pytest.raises(gnarl.UsageError, match="none for edge type venue:has:paper"):
        NeighborLoader(typed, counts, "paper")


def test_fan_outs_of_pyg(dataset, typed):
    assert next(iter(NeighborLoader(dataset, NumNeighbors([2, 2]), batch_size=4))).num_sampled_edges
    counts = NumNeighbors({("author", "writes", "paper"): [2, 0]}, default=[0, 1])
    batch = next(iter(NeighborLoader(typed, counts, ("paper", [1, 2, 3]), batch_size=3)))
    assert batch["author", "writes", "paper"].num_sampled_edges[0] > 0
    assert batch["paper", "cites", "paper"].num_sampled_edges[0] == 0


def test_loaders_are_pickled(dataset):
    loader = NeighborLoader(dataset, [3, 2], "train", batch_size=20, shuffle=True, seed=3)
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader))
    for batch, other in zip(loader, again, strict=True):
        assert torch.equal(batch.n_id, other.n_id) and torch.equal(batch.e_id, other.e_id)


def test_weights_decide_where_asked(dataset, arrays):
    loader = NeighborLoader(dataset, [1], weight_attr="edge_weight", batch_size=300)
    weights = np.concatenate([batch.edge_weight.numpy() for _ in range(20) for batch in loader])
    uniform = NeighborLoader(dataset, [1], batch_size=300)
    others = np.concatenate([batch.edge_weight.numpy() for _ in range(20) for batch in uniform])
    assert weights.mean() > others.mean() + 0.03


def test_a_call_gives_the_batch_of_some_places(dataset):
    loader = NeighborLoader(dataset, [-1], "train", batch_size=4)
    batch = loader(torch.tensor([3, 0]))
    assert batch.n_id[:2].tolist() == [6, 0] and batch.input_id.tolist() == [3, 0]
    with pytest.raises(IndexError):
        loader([150])


def test_transforms_are_applied(dataset):
    loader = NeighborLoader(dataset, [2], transform=lambda batch: batch.num_nodes, batch_size=100)
    assert all(isinstance(count, int) for count in loader)


def test_tensors_may_be_written_and_kept(dataset, arrays):
    batches = list(NeighborLoader(dataset, [3], batch_size=50))
    before = [batch.x.clone() for batch in batches]
    batches[0].x.mul_(2)
    for batch, rows in zip(batches[1:], before[1:], strict=True):
        assert torch.equal(batch.x, rows)
    again = next(iter(NeighborLoader(dataset, [3], batch_size=50)))
    assert torch.equal(again.x, torch.from_numpy(arrays["features"])[again.n_id])


def test_arguments_that_do_nothing_here_are_told(dataset):
    with pytest.warns(UserWarning, match="num_workers, persistent_workers are ignored"):
        NeighborLoader(dataset, [2], num_workers=2, persistent_workers=True)
    NeighborLoader(dataset, [2], num_workers=0, worker_init_fn=None)
    for options, message in [
        ({"subgraph_type": "inducd"}, "unknown subgraph_type 'inducd'"),
        ({"time_attr": "time"}, "have no times"),
        ({"time_attr": "born"}, "unknown time_attr 'born'"),
        ({"input_time": [1]}, "without time_attr"),
        ({"temporal_strategy": "first"}, "unknown temporal_strategy 'first'"),
        ({"weight_attr": "cost"}, "unknown weight_attr 'cost'"),
        ({"sampler": "fancy"}, "fancy"),
        ({"batch_size": -1}, "invalid batch_size -1"),
        ({"threads": 0}, "invalid threads 0"),
        ({"world_size": 2**40}, "invalid world_size"),
        ({"num_neighbors": []}, "at least one fan-out"),
        ({"num_neighbors": [-2]}, "-2"),
        ({"input_nodes": "training"}, "unknown split 'training'"),
        ({"input_nodes": torch.ones(7, dtype=torch.bool)}, "a mask of 7"),
        ({"input_nodes": [300]}, "300 nodes"),
        ({"input_nodes": [0.5]}, "expected integers"),
    ]:
        with pytest.raises(gnarl.UsageError, match=message):
            NeighborLoader(dataset, **{"num_neighbors": [2], **options})
    with pytest.raises(TypeError, match="unexpected argument 'batchsize'"):
        NeighborLoader(dataset, [2], batchsize=3)
    with pytest.raises(TypeError, match="unexpected argument 'collate_fn'"):
        NeighborLoader(dataset, [2], collate_fn=list)


def test_disjoint_seeds_have_graphs_of_their_own(dataset):
    loader = NeighborLoader(dataset, [3, 2], [5, 9, 5], disjoint=True, batch_size=3)
    [batch] = loader
    assert batch.batch.dtype == torch.int64 and batch.batch[:3].tolist() == [0, 1, 2]
    assert torch.equal(batch.batch[batch.edge_index[0]], batch.batch[batch.edge_index[1]])
    # Each is that of a batch of its own.
    loader.set_epoch(0)
    own = loader([1])
    of = batch.batch[batch.edge_index[1]] == 1
    assert batch.e_id[of].tolist() == own.e_id.tolist()


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    draw = np.random.default_rng(9)
    return gnarl.from_arrays(
        tmp_path_factory.mktemp("data") / "timed",
        draw.integers(0, 100, (2, 3000)),
        num_nodes=100,
        times=draw.integers(0, 50, 100),
        edge_times=draw.integers(0, 100, 3000),
    )


@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_neighbors_are_no_later_than_their_seed(timed, strategy):
    as_of = torch.arange(100)
    loader = NeighborLoader(
        timed, [4, 3], input_time=as_of, time_attr="time", temporal_strategy=strategy, batch_size=25
    )
    edges = 0
    for batch in loader:
        assert torch.equal(batch.seed_time, as_of[batch.input_id])
        of = batch.seed_time[batch.batch]
        assert (batch.edge_time <= of[batch.edge_index[1]]).all()
        assert (batch.time[batch.edge_index[0]] <= of[batch.edge_index[0]]).all()
        edges += batch.num_edges
    assert edges > 500
    # By default as of the nodes' own times.
    batch = next(iter(NeighborLoader(timed, [4], time_attr="time", batch_size=100)))
    assert torch.equal(batch.seed_time, batch.time[:100])


def test_the_last_neighbors_are_the_latest(timed):
    loader = NeighborLoader(timed, [3], [7], input_time=[60], time_attr="time", temporal_strategy="last", batch_size=1)
    [batch] = loader
    [whole] = NeighborLoader(timed, [-1], [7], batch_size=1)
    there = torch.maximum(whole.edge_time, whole.time[whole.edge_index[0]])
    latest = there[there <= 60].sort().values[-3:]
    found = torch.maximum(batch.edge_time, batch.time[batch.edge_index[0]])
    assert torch.equal(found.sort().values, latest)
