"""Batches of other edges than those that were drawn once: with replacement, with reverses, all between the nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.loader import NeighborLoader as PygLoader
from torch_geometric.sampler.base import HeteroSamplerOutput, SamplerOutput, SubgraphType
from torch_geometric.utils import subgraph

import gnarl
from gnarl.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, stores

KINDS = ["directional", "bidirectional", "induced"]


def loaders(dataset, kind, **options):
    """Loaders of drawn edges and of those of the kind, with the same nodes."""
    common = {"num_neighbors": [4, 3], "batch_size": 20, "seed": 7, **options}
    return NeighborLoader(dataset, **common), NeighborLoader(dataset, subgraph_type=kind, **common)


@pytest.mark.parametrize("disjoint", [False, True])
def test_reverses_are_those_of_pyg(dataset, arrays, disjoint):
    for drawn, both in zip(*loaders(dataset, "bidirectional", disjoint=disjoint), strict=True):
        row, col = drawn.edge_index
        expected = SamplerOutput(drawn.n_id, row, col, drawn.e_id, drawn.get("batch")).to_bidirectional()
        assert torch.equal(both.n_id, drawn.n_id)
        assert torch.equal(both.edge_index, torch.stack([expected.row, expected.col]))
        assert "num_sampled_edges" not in both and "num_sampled_nodes" not in both
        # An edge or its reverse, whose columns it has: of both the edge, where PyG takes any.
        ends = both.n_id[both.edge_index]
        stored = torch.from_numpy(arrays["edges"])[:, both.e_id]
        same, reverse = (stored == ends).all(0), (stored.flip(0) == ends).all(0)
        assert bool((same | reverse).all())
        drawn_pairs = set(map(tuple, drawn.edge_index.T.tolist()))
        for pair, kept in zip(both.edge_index.T.tolist(), same.tolist(), strict=True):
            assert kept == (tuple(pair) in drawn_pairs) or pair[0] == pair[1]
        torch.testing.assert_close(both.edge_attr, torch.from_numpy(arrays["edge_features"])[both.e_id])
        torch.testing.assert_close(both.edge_weight, torch.from_numpy(arrays["edge_weights"])[both.e_id])


def test_reverses_of_types_are_those_of_pyg(tmp_path):
    draw = np.random.default_rng(5)

    def edges(sources, destinations, count):
        return np.stack([draw.integers(0, sources, count), draw.integers(0, destinations, count)])

    graph = gnarl.from_arrays(
        tmp_path / "graph",
        {
            ("author", "writes", "paper"): edges(40, 60, 300),
            ("paper", "rev_writes", "author"): edges(60, 40, 300),
            ("paper", "cites", "paper"): edges(60, 60, 300),
            ("paper", "in", "venue"): edges(60, 9, 200),
            ("venue", "has", "paper"): edges(9, 60, 200),
            ("author", "attends", "venue"): edges(40, 9, 100),
        },
        num_nodes={"author": 40, "paper": 60, "venue": 9},
    )
    options = {"input_nodes": ("paper", torch.arange(30)), "num_neighbors": [4, 4]}
    with pytest.warns(UserWarning, match="edges of author:attends:venue get no reverses"):
        pair = loaders(graph, "bidirectional", **options)
    for drawn, both in zip(*pair, strict=True):
        ends = {of: drawn[of].edge_index for of in graph.edge_types}
        output = HeteroSamplerOutput(
            {of: drawn[of].n_id for of in graph.node_types},
            {of: own[0] for of, own in ends.items()},
            {of: own[1] for of, own in ends.items()},
            {of: drawn[of].e_id for of in graph.edge_types},
        )
        with pytest.warns(UserWarning, match="does not seem to have a reverse"):
            expected = output.to_bidirectional()
        for of in graph.edge_types:
            found = both[of]
            assert torch.equal(found.edge_index, torch.stack([expected.row[of], expected.col[of]])), of
            assert ("e_id" in found) == (expected.edge[of] is not None), of


def test_edges_of_one_type_between_two_have_no_reverses(tmp_path):
    draw = np.random.default_rng(6)
    edges = np.stack([draw.integers(0, 50, 300), draw.integers(0, 9, 300)])
    graph = gnarl.from_arrays(
        tmp_path / "graph", {("user", "rates", "movie"): edges}, num_nodes={"user": 50, "movie": 9}
    )
    options = {"input_nodes": ("movie", None), "batch_size": 4}
    with pytest.warns(UserWarning, match="edges of user:rates:movie get no reverses") as told:
        pair = loaders(graph, "bidirectional", **options)
    assert told[0].filename == __file__
    for drawn, both in zip(*pair, strict=True):
        of = ("user", "rates", "movie")
        assert torch.equal(both[of].edge_index, drawn[of].edge_index) and torch.equal(both[of].e_id, drawn[of].e_id)


def test_nodes_induce_all_edges_between_them(dataset, arrays):
    whole = torch.from_numpy(arrays["edges"])
    for drawn, induced in zip(*loaders(dataset, "induced"), strict=True):
        assert torch.equal(induced.n_id, drawn.n_id)
        assert induced.num_edges > drawn.num_edges and "num_sampled_edges" not in induced
        assert torch.equal(induced.n_id[induced.edge_index], whole[:, induced.e_id])
        ids = torch.arange(whole.shape[1])
        _, expected = subgraph(induced.n_id, whole, ids, num_nodes=dataset.num_nodes())
        assert torch.equal(induced.e_id.sort().values, expected)
        assert induced.edge_index[1].diff().min() >= 0, "by destination"
        torch.testing.assert_close(induced.edge_attr, torch.from_numpy(arrays["edge_features"])[induced.e_id])
    # The older name of PyG.
    [old] = [next(iter(NeighborLoader(dataset, [4, 3], batch_size=20, seed=7, directed=False)))]
    [new] = [next(iter(NeighborLoader(dataset, [4, 3], batch_size=20, seed=7, subgraph_type=SubgraphType.induced)))]
    assert torch.equal(old.edge_index, new.edge_index)


def test_seeds_that_are_given_twice_have_edges_of_their_own(dataset):
    batch = next(iter(NeighborLoader(dataset, [3], [5, 9, 5], batch_size=3, subgraph_type="induced")))
    assert batch.n_id[:3].tolist() == [5, 9, 5]
    into = [set(batch.e_id[batch.edge_index[1] == place].tolist()) for place in range(3)]
    assert into[0] == into[2] and into[0] != into[1]


def test_neighbors_with_replacement(dataset, arrays):
    degrees = np.bincount(arrays["edges"][1], minlength=300)
    repeated = 0
    for batch in NeighborLoader(dataset, [9], batch_size=50, replace=True, seed=3):
        drawn = torch.bincount(batch.edge_index[1], minlength=batch.num_nodes)[: batch.batch_size]
        expected = np.where(degrees[batch.n_id[: batch.batch_size]] > 0, 9, 0)
        np.testing.assert_array_equal(drawn, expected)
        assert torch.equal(batch.n_id[batch.edge_index], torch.from_numpy(arrays["edges"])[:, batch.e_id])
        repeated += len(batch.e_id) - len(batch.e_id.unique())
    assert repeated > 300
    for wrong in ({"weight_attr": "edge_weight"}, {"sampler": "labor"}):
        with pytest.raises(gnarl.UsageError, match="are not replaced"):
            NeighborLoader(dataset, [9], replace=True, **wrong)


def test_pygs_own_loader_over_the_sampler(dataset):
    feature_store, graph_store = stores(dataset)
    for kind in KINDS:
        for replace in (False, True):
            sampler = NeighborSampler(dataset, [4, 3], replace=replace, subgraph_type=kind, seed=2)
            theirs = PygLoader(
                (feature_store, graph_store), [4, 3], torch.arange(300), neighbor_sampler=sampler, batch_size=50
            )
            for batch in theirs:
                assert ("num_sampled_edges" in batch) == (kind == "directional")
                assert batch.edge_index.max() < batch.num_nodes
                assert batch.num_edges > 0


def test_edges_to_predict_are_left_out_of_every_subgraph(dataset, arrays):
    edges = torch.from_numpy(arrays["edges"])[:, :200]
    known = set(map(tuple, arrays["edges"].T.tolist()))
    for kind in KINDS:
        loader = LinkNeighborLoader(
            dataset, [6, 6], edges, batch_size=40, subgraph_type=kind, exclude="self", replace=kind == "directional"
        )
        for batch in loader:
            asked = set(map(tuple, batch.n_id[batch.edge_label_index].T.tolist()))
            there = set(map(tuple, batch.n_id[batch.edge_index].T.tolist()))
            assert not asked & there, kind
            # Nor is an edge there by its reverse, unless the dataset has that.
            assert not set(batch.input_id.tolist()) & set(batch.e_id.tolist()), kind
            flipped = {(to, of) for of, to in asked} & there
            assert flipped <= known, kind


def test_what_does_not_go_together_is_refused(dataset, arrays, tmp_path):
    timed = gnarl.from_arrays(tmp_path / "timed", arrays["edges"], num_nodes=300, times=np.arange(300))
    for options, message in [
        ({"subgraph_type": "induced", "disjoint": True}, "induced subgraphs are not disjoint"),
        ({"subgraph_type": "inducd"}, "did you mean 'induced'"),
    ]:
        with pytest.raises(gnarl.UsageError, match=message) as error:
            NeighborLoader(dataset, [3], **options)
        assert message in f"{error.value} {error.value.hint}"
    for options in ({"replace": True}, {"subgraph_type": "induced"}):
        with pytest.raises(gnarl.UsageError, match="drawn once each"):
            NeighborLoader(timed, [3], time_attr="time", **options)


def test_parts_have_reverses_only(dataset, tmp_path):
    gnarl.partition(dataset, tmp_path / "parts", 2, quiet=True)
    parts = gnarl.open(tmp_path / "parts")
    drawn = NeighborLoader(dataset, [4, 3], batch_size=30, seed=2, subgraph_type="bidirectional")
    over_parts = NeighborLoader(parts, [4, 3], batch_size=30, seed=2, subgraph_type="bidirectional")
    for whole, batch in zip(drawn, over_parts, strict=True):
        assert torch.equal(whole.edge_index, batch.edge_index) and torch.equal(whole.n_id, batch.n_id)
        assert torch.equal(whole.edge_weight, batch.edge_weight)
    for options in ({"replace": True}, {"subgraph_type": "induced"}):
        with pytest.raises(gnarl.UsageError, match="parts give neither"):
            NeighborLoader(parts, [3], **options)
