"""LinkNeighborLoader as models of PyTorch Geometric expect it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.sampler import NegativeSampling

import gnarl
from gnarl.pyg import LinkNeighborLoader


def test_edges_and_their_labels(dataset, arrays):
    edges = torch.from_numpy(arrays["edges"])
    labels = torch.arange(2000) % 5
    loader = LinkNeighborLoader(dataset, [3, 2], edge_label=labels, batch_size=300, shuffle=True)
    seen = []
    for batch in loader:
        batch.validate(raise_on_error=True)
        assert torch.equal(batch.n_id[batch.edge_label_index], edges[:, batch.input_id])
        assert torch.equal(batch.edge_label, labels[batch.input_id])
        torch.testing.assert_close(batch.n_id[batch.edge_index], edges[:, batch.e_id])
        seeds = batch.n_id[: batch.num_sampled_nodes[0]]
        assert torch.equal(seeds, edges[:, batch.input_id].unique())
        seen += batch.input_id.tolist()
    assert sorted(seen) == list(range(2000)) and len(loader) == 7
    batch = next(iter(LinkNeighborLoader(dataset, [3], batch_size=4)))
    assert "edge_label" not in batch and batch.edge_label_index.shape == (2, 4)


@pytest.mark.parametrize(
    "negatives",
    [
        {"neg_sampling_ratio": 1.5},
        {"neg_sampling": {"mode": "binary", "amount": 1.5}},
        {"neg_sampling": NegativeSampling("binary", 1.5)},
    ],
)
def test_binary_negatives(dataset, arrays, negatives):
    loader = LinkNeighborLoader(dataset, [3], batch_size=11, seed=1, **negatives)
    batch = next(iter(loader))
    assert batch.edge_label_index.shape == (2, 11 + 17)
    assert torch.equal(batch.edge_label, torch.tensor([1.0] * 11 + [0.0] * 17))
    edges = torch.from_numpy(arrays["edges"])
    assert torch.equal(batch.n_id[batch.edge_label_index[:, :11]], edges[:, batch.input_id])
    assert batch.edge_label_index.max() < batch.num_sampled_nodes[0]
    loader.set_epoch(0)
    assert torch.equal(next(iter(loader)).edge_label_index, batch.edge_label_index)
    loader.set_epoch(1)
    assert not torch.equal(next(iter(loader)).n_id, batch.n_id)


def test_labels_make_room_for_negatives(dataset):
    labels = np.arange(2000) % 2
    batch = next(iter(LinkNeighborLoader(dataset, [3], None, labels, neg_sampling="binary", batch_size=6)))
    assert batch.edge_label.tolist() == [1, 2, 1, 2, 1, 2] + [0] * 6


@pytest.mark.parametrize("amount", [1, 3])
def test_triplets(dataset, arrays, amount):
    sampling = {"mode": "triplet", "amount": amount}
    batch = next(iter(LinkNeighborLoader(dataset, [3], neg_sampling=sampling, batch_size=9)))
    edges = torch.from_numpy(arrays["edges"])[:, batch.input_id]
    assert torch.equal(batch.n_id[batch.src_index], edges[0])
    assert torch.equal(batch.n_id[batch.dst_pos_index], edges[1])
    assert batch.dst_neg_index.shape == ((9,) if amount == 1 else (9, amount))
    assert "edge_label_index" not in batch


def test_negatives_of_an_edge_do_not_depend_on_the_batch(dataset):
    for sampler in ("uniform", "labor"):
        loader = LinkNeighborLoader(dataset, [2], neg_sampling="triplet", sampler=sampler)
        both, alone = loader([0, 1]), loader([1])
        assert both.n_id[both.dst_neg_index[1]] == alone.n_id[alone.dst_neg_index[0]]
    assert loader([]).dst_neg_index.shape == (0,)


def test_negatives_are_spread_over_all_nodes(dataset):
    loader = LinkNeighborLoader(dataset, [0], neg_sampling="triplet", batch_size=2000)
    counts = np.zeros(300)
    for _ in range(30):
        batch = next(iter(loader))
        np.add.at(counts, batch.n_id[batch.dst_neg_index].numpy(), 1)
    expected = counts.sum() / 300
    assert ((counts - expected) ** 2 / expected).sum() < 300 + 6 * np.sqrt(600)


def test_edges_between_types(typed, typed_arrays):
    triple = ("author", "writes", "paper")
    edges = torch.from_numpy(typed_arrays["edges"][triple])
    loader = LinkNeighborLoader(typed, [3, 2], triple, neg_sampling="binary", batch_size=50, shuffle=True)
    for batch in loader:
        batch.validate(raise_on_error=True)
        store = batch[triple]
        ends = store.edge_label_index[:, : len(store.input_id)]
        found = torch.stack([batch["author"].n_id[ends[0]], batch["paper"].n_id[ends[1]]])
        assert torch.equal(found, edges[:, store.input_id])
    some = edges[:, [3, 5]]
    [batch] = LinkNeighborLoader(typed, [3], (triple, some), neg_sampling="triplet", batch_size=2)
    assert torch.equal(batch["author"].n_id[batch["author"].src_index], some[0])
    assert torch.equal(batch["paper"].n_id[batch["paper"].dst_pos_index], some[1])
    # Between nodes of one type these share their seeds.
    cites = ("paper", "cites", "paper")
    batch = next(iter(LinkNeighborLoader(typed, [2], cites, batch_size=8)))
    found = batch["paper"].n_id[batch[cites].edge_label_index]
    assert torch.equal(found, torch.from_numpy(typed_arrays["edges"][cites])[:, :8])


def test_a_link_predictor_learns(dataset):
    """Scores of edges against random pairs, by PyG's own encoder."""
    from torch_geometric.nn import GraphSAGE

    torch.manual_seed(0)
    model = GraphSAGE(6, 32, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = LinkNeighborLoader(dataset, [-1, -1], neg_sampling="binary", batch_size=500, shuffle=True)
    losses = []
    for _ in range(15):
        for batch in loader:
            rows = model(batch.x, batch.edge_index)
            scores = (rows[batch.edge_label_index[0]] * rows[batch.edge_label_index[1]]).sum(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, batch.edge_label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.05


def test_negatives_are_drawn_by_weight(dataset):
    weights = torch.zeros(300)
    weights[[3, 250]] = torch.tensor([1.0, 3.0])
    sampling = NegativeSampling("triplet", 1, dst_weight=weights)
    batch = next(iter(LinkNeighborLoader(dataset, [0], neg_sampling=sampling, batch_size=2000)))
    drawn = batch.n_id[batch.dst_neg_index]
    assert drawn.unique().tolist() == [3, 250]
    # Three quarters of 2,000, by four deviations.
    assert abs((drawn == 250).sum().item() - 1500) < 80


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_disjoint_links_have_graphs_of_their_own(dataset, arrays, mode):
    edges = torch.from_numpy(arrays["edges"])
    sampling = {"mode": mode, "amount": 2}
    loader = LinkNeighborLoader(dataset, [3, 2], neg_sampling=sampling, disjoint=True, batch_size=9, seed=3)
    batch = next(iter(loader))
    assert torch.equal(batch.batch[batch.edge_index[0]], batch.batch[batch.edge_index[1]])
    assert torch.equal(batch.n_id[batch.edge_index], edges[:, batch.e_id])
    number = torch.arange(9)
    if mode == "binary":
        assert torch.equal(batch.n_id[batch.edge_label_index[:, :9]], edges[:, batch.input_id])
        assert torch.equal(batch.batch[batch.edge_label_index], number.repeat(3).expand(2, -1))
        assert batch.edge_label_index.unique().numel() == 2 * 27
    else:
        assert torch.equal(batch.n_id[torch.stack([batch.src_index, batch.dst_pos_index])], edges[:, batch.input_id])
        assert torch.equal(batch.batch[batch.dst_neg_index], number[:, None].expand(-1, 2))
    # Those of an edge do not depend on the others of its batch.
    loader.set_epoch(0)
    own = loader([4])
    places = batch.batch == 4
    assert torch.equal(batch.n_id[places].sort().values, own.n_id.sort().values)


@pytest.mark.parametrize("disjoint", [False, True])
def test_edges_to_predict_are_left_out(dataset, arrays, disjoint):
    edges = torch.from_numpy(arrays["edges"])
    there = set(map(tuple, edges.T.tolist()))
    back = [place for place, (src, dst) in enumerate(edges.T.tolist()) if src < dst and (dst, src) in there]
    # All neighbors, so that every edge of a batch would be there.
    options = {"neg_sampling": "binary", "disjoint": disjoint, "batch_size": 50}
    for exclude, left in [(None, set()), ("self", {"own"}), ("reverse", {"own", "back"})]:
        loader = LinkNeighborLoader(dataset, [-1, 2], exclude=exclude, **options)
        batch = loader(back)
        own = set(map(tuple, edges[:, batch.input_id].T.tolist()))
        found = set(map(tuple, batch.n_id[batch.edge_index].T.tolist()))
        assert bool(own & found) == ("own" not in left)
        reverses = {(dst, src) for src, dst in own}
        assert bool(reverses & found) == ("back" not in left)
        assert sum(batch.num_sampled_edges) == batch.num_edges == len(batch.e_id)
        assert torch.equal(batch.n_id[batch.edge_index], edges[:, batch.e_id])


def test_reverses_of_another_type_are_left_out(typed, tmp_path):
    writes, written = ("author", "writes", "paper"), ("paper", "written_by", "author")
    own = np.unique(np.random.default_rng(1).integers(0, [[20], [30]], (2, 200)), axis=1)
    data = gnarl.from_arrays(tmp_path / "graph", {writes: own, written: own[::-1].copy()})
    for exclude in (None, written):
        batch = next(iter(LinkNeighborLoader(data, [-1, -1], writes, exclude=exclude, batch_size=40)))
        positive = set(map(tuple, own[:, batch[writes].input_id].T.tolist()))
        for of, (src, _, dst) in ((batch[writes], writes), (batch[written], written)):
            sources, destinations = batch[src].n_id[of.edge_index[0]], batch[dst].n_id[of.edge_index[1]]
            pairs = (sources, destinations) if src == "author" else (destinations, sources)
            found = set(zip(*(ids.tolist() for ids in pairs), strict=True))
            assert bool(found & positive) == (exclude is None)
            assert found - positive
    with pytest.raises(gnarl.UsageError, match="no edge type paper:rev_writes:author"):
        LinkNeighborLoader(typed, [2], writes, exclude="reverse")
    with pytest.raises(gnarl.UsageError, match="does not lead back"):
        LinkNeighborLoader(typed, [2], writes, exclude=("paper", "cites", "paper"))


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    draw = np.random.default_rng(9)
    return gnarl.from_arrays(
        tmp_path_factory.mktemp("data") / "timed",
        draw.integers(0, 100, (2, 3000)),
        num_nodes=100,
        times=draw.integers(0, 100, 100),
        edge_times=draw.integers(0, 100, 3000),
    )


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_links_are_seen_as_of_their_time(timed, mode):
    born = torch.from_numpy(timed.times())
    edges = torch.from_numpy(timed.edges())
    # No sooner than both endpoints.
    times = torch.maximum(born[edges].max(dim=0).values, torch.from_numpy(timed.edge_times()))
    loader = LinkNeighborLoader(
        timed, [4, 3], edges, edge_label_time=times, time_attr="time", neg_sampling=mode, batch_size=64, shuffle=True
    )
    found = 0
    for batch in loader:
        of = times[batch.input_id][batch.batch]
        assert (batch.edge_time <= of[batch.edge_index[1]]).all()
        # Nodes of negatives are there, too.
        assert (batch.time <= of).all()
        given = batch.edge_label_time[:64] if mode == "binary" else batch.seed_time
        assert torch.equal(given[: len(batch.input_id)], times[batch.input_id])
        if mode == "binary":
            assert torch.equal(batch.edge_label_time, times[batch.input_id].repeat(2))
        found += batch.num_edges
    assert found > 3000


def test_negatives_in_time_are_spread_over_those_that_are_there(tmp_path):
    # One in fifty nodes is there, so that most draws among all would fail.
    edges = np.stack([np.arange(200), np.arange(200) + 1])
    data = gnarl.from_arrays(tmp_path / "graph", edges, num_nodes=10_000, times=np.arange(10_000))
    options = {"time_attr": "time", "batch_size": 200}
    times = torch.full((200,), 199)
    loader = LinkNeighborLoader(data, [0], edges, edge_label_time=times, neg_sampling="triplet", **options)
    [batch] = loader
    drawn = batch.n_id[batch.dst_neg_index]
    assert drawn.max() < 200 and len(drawn.unique()) > 100
    weights = torch.zeros(10_000)
    weights[[7, 9_999]] = 1.0
    sampling = NegativeSampling("triplet", 1, dst_weight=weights)
    [batch] = LinkNeighborLoader(data, [0], edges, edge_label_time=times, neg_sampling=sampling, **options)
    assert batch.n_id[batch.dst_neg_index].unique().tolist() == [7]
    early = LinkNeighborLoader(data, [0], edges, edge_label_time=times - 300, neg_sampling="triplet", **options)
    with pytest.raises(gnarl.UsageError, match="no node of type '_N' is there at time -101"):
        next(iter(early))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_label": [1, 2]}, "2 labels for 2000 edges"),
        ({"edge_label_index": torch.zeros(3, 4, dtype=torch.long)}, "2 × edges"),
        ({"edge_label_index": torch.tensor([[0], [300]])}, "300 nodes"),
        ({"neg_sampling": "ternary"}, "unknown negative sampling 'ternary'"),
        ({"neg_sampling": {"mode": "triplet", "amount": 1.5}}, "whole number"),
        ({"neg_sampling": {"mode": "binary", "amount": -1}}, "number of negatives"),
        ({"neg_sampling": "binary", "neg_sampling_ratio": 2}, "exclude each other"),
        ({"neg_sampling": NegativeSampling("binary", 1, torch.ones(299))}, "299 weights of negatives for 300 nodes"),
        ({"neg_sampling": NegativeSampling("triplet", 1, torch.ones(300), torch.ones(300))}, "src_weight"),
        ({"edge_label": torch.ones(2000), "neg_sampling": "triplet"}, "of no use"),
        ({"time_attr": "time"}, "edge_label_time and time_attr"),
        ({"edge_label_time": torch.zeros(2000)}, "edge_label_time and time_attr"),
        ({"neg_sampling": {"amount": 2}}, "unknown negative sampling None"),
        ({"neg_sampling_ratio": 1e30}, "number of negatives"),
    ],
)
def test_wrong_arguments_are_named(dataset, options, message):
    with pytest.raises(gnarl.UsageError, match=message):
        LinkNeighborLoader(dataset, [2], **options)


def test_edges_of_a_heterogeneous_graph_need_a_type(typed):
    with pytest.raises(gnarl.UsageError, match="need a type"):
        LinkNeighborLoader(typed, [2])
