"""PyTorch Geometric's own loaders over gnarl's stores and sampler, beside gnarl's loaders: one contract for both."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.data import HeteroData, TensorAttr
from torch_geometric.nn import GraphSAGE, to_hetero
from torch_geometric.sampler import NegativeSampling

import gnarl
from gnarl.pyg import AddEdgeColumns, LinkNeighborLoader, NeighborLoader, NeighborSampler, stores

WRITES = ("author", "writes", "paper")


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    draw = np.random.default_rng(6)
    return gnarl.from_arrays(
        tmp_path_factory.mktemp("data") / "timed",
        draw.integers(0, 200, (2, 1500)),
        features=draw.normal(size=(200, 3)).astype(np.float32),
        labels=draw.integers(0, 3, 200),
        times=draw.integers(0, 50, 200),
        edge_times=draw.integers(0, 100, 1500),
    )


def by_type(batch):
    """The fields that a batch has, by type; PyTorch Geometric writes None where there is nothing."""
    types = [*batch.node_types, *batch.edge_types] if isinstance(batch, HeteroData) else [None]
    stores = {of: batch if of is None else batch[of] for of in types}
    fields = {
        of: {key: value for key, value in store.to_dict().items() if value is not None} for of, store in stores.items()
    }
    for of in fields.values():
        # Loaders over stores leave it out where a type has no columns; n_id tells it.
        of.pop("num_nodes", None)
    return fields


def equal(one, other):
    """Two batches have the same fields, types and values."""
    one, other = by_type(one), by_type(other)
    assert one.keys() == other.keys()
    for of, left in one.items():
        right = other[of]
        assert left.keys() == right.keys(), of
        for key in left:
            if isinstance(left[key], torch.Tensor):
                assert left[key].dtype == right[key].dtype, key
                assert torch.equal(left[key], right[key]), key
            else:
                assert left[key] == right[key], key


def without(batch, *fields):
    for store in batch.stores:
        for field in fields:
            store.pop(field, None)
    return batch


def pairs(dataset, own, fan_outs, inputs, **options):
    """Batches of PyTorch Geometric's loader with gnarl's sampler."""
    sampler = NeighborSampler(dataset, fan_outs, **own)
    add = AddEdgeColumns(dataset)
    return pyg.NeighborLoader(stores(dataset), fan_outs, inputs, neighbor_sampler=sampler, transform=add, **options)


def test_batches_of_both_loaders_are_equal(dataset):
    nodes = torch.tensor([5, 2, 9, 100, 7, 5])
    theirs = pairs(dataset, {}, [-1, -1], nodes, batch_size=4)
    ours = NeighborLoader(dataset, [-1, -1], nodes, batch_size=4)
    count = 0
    for left, right in zip(theirs, ours, strict=True):
        # Input ids of plain nodes are their places in both.
        equal(left, right)
        count += 1
    assert count == 2


def test_typed_batches_of_both_loaders_are_equal(typed):
    inputs = ("paper", torch.arange(30))
    theirs = pairs(typed, {}, {of: [-1, -1] for of in typed.edge_types}, inputs, batch_size=8)
    ours = NeighborLoader(typed, [-1, -1], inputs, batch_size=8)
    for left, right in zip(theirs, ours, strict=True):
        equal(left, right)


@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_batches_in_time_of_both_loaders_are_equal(timed, strategy):
    nodes = torch.arange(40)
    times = torch.full((40,), 60)
    in_time = {"time_attr": "time", "temporal_strategy": strategy}
    theirs = pairs(timed, in_time, [-1, -1], nodes, input_time=times, time_attr="time", batch_size=10)
    ours = NeighborLoader(timed, [-1, -1], nodes, times, batch_size=10, **in_time)
    for left, right in zip(theirs, ours, strict=True):
        equal(left, right)
        assert (left.edge_time <= 60).all()


@pytest.mark.parametrize("disjoint", [False, True])
def test_links_of_both_loaders_are_equal(dataset, arrays, disjoint):
    edges = torch.from_numpy(arrays["edges"])[:, :50]
    labels = torch.arange(50)
    sampler = NeighborSampler(dataset, [-1, -1], disjoint=disjoint)
    theirs = pyg.LinkNeighborLoader(
        stores(dataset),
        [-1, -1],
        (None, edges),
        labels,
        neighbor_sampler=sampler,
        disjoint=disjoint,
        batch_size=8,
        transform=AddEdgeColumns(dataset),
    )
    ours = LinkNeighborLoader(dataset, [-1, -1], edges, labels, disjoint=disjoint, batch_size=8)
    for left, right in zip(theirs, ours, strict=True):
        equal(left, right)


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_negatives_have_the_places_that_pyg_gives_them(dataset, typed, disjoint, mode):
    """Negatives are drawn by other numbers: fields, types and shapes are compared, and what must hold of them."""
    for data, edges, fan_outs in [
        (dataset, (None, torch.from_numpy(dataset.edges())), [3, 2]),
        (typed, WRITES, {of: [3, 2] for of in typed.edge_types}),
    ]:
        negatives = NegativeSampling(mode, 2)
        sampler = NeighborSampler(data, fan_outs, disjoint=disjoint)
        options = {"disjoint": disjoint, "neg_sampling": negatives, "batch_size": 7}
        theirs = pyg.LinkNeighborLoader(
            stores(data), fan_outs, edges, neighbor_sampler=sampler, transform=AddEdgeColumns(data), **options
        )
        ours = LinkNeighborLoader(data, fan_outs, None if data is dataset else edges, **options)
        left, right = next(iter(theirs)), next(iter(ours))
        fields = by_type(right)
        assert by_type(left).keys() == fields.keys()
        for of, one in by_type(left).items():
            other = fields[of]
            assert one.keys() == other.keys(), of
            for key, value in one.items():
                if isinstance(value, torch.Tensor) and key.startswith(("edge_label", "src_", "dst_", "input_")):
                    assert value.dtype == other[key].dtype, key
                    assert value.shape == other[key].shape, key
                    # Places of seeds that have nodes of their own follow from their number.
                    assert not disjoint or torch.equal(value, other[key]), key
        if disjoint and data is dataset:
            seeds = left.num_sampled_nodes[0]
            assert seeds == right.num_sampled_nodes[0]
            assert torch.equal(left.batch[:seeds], right.batch[:seeds])


def test_any_number_of_workers_gives_the_same_batches(dataset):
    nodes = torch.arange(60)
    found = []
    for workers, how in [(0, None), (1, "fork"), (2, "fork"), (2, "spawn")]:
        sampler = NeighborSampler(dataset, [3, 2], seed=4)
        batches = pyg.NeighborLoader(
            stores(dataset),
            [3, 2],
            nodes,
            neighbor_sampler=sampler,
            batch_size=16,
            num_workers=workers,
            multiprocessing_context=how,
        )
        found.append([without(batch, "input_id") for batch in batches])
    for other in found[1:]:
        for left, right in zip(found[0], other, strict=True):
            equal(left, right)


def test_epochs_and_seeds_decide_the_neighbors(dataset):
    sampler = NeighborSampler(dataset, [2], seed=1)
    loader = pyg.NeighborLoader(stores(dataset), [2], torch.arange(50), neighbor_sampler=sampler, batch_size=50)
    first = next(iter(loader)).e_id
    assert torch.equal(next(iter(loader)).e_id, first)
    sampler.set_epoch(1)
    assert not torch.equal(next(iter(loader)).e_id, first)
    assert torch.equal(
        pickle.loads(pickle.dumps(loader.node_sampler))._sample(torch.arange(50)).edge, next(iter(loader)).e_id
    )


def test_models_learn_from_loaders_of_pyg(typed):
    fan_outs = {of: [4, 2] for of in typed.edge_types}
    sampler = NeighborSampler(typed, fan_outs)
    inputs = ("paper", torch.from_numpy(typed.split("train", "paper")))
    loader = pyg.NeighborLoader(stores(typed), fan_outs, inputs, neighbor_sampler=sampler, batch_size=16, shuffle=True)
    venues = torch.nn.Embedding(typed.num_nodes("venue"), 4)
    model = to_hetero(GraphSAGE((-1, -1), 8, num_layers=2, out_channels=3), typed.metadata())
    for batch in loader:
        batch["venue"].x = venues(batch["venue"].n_id)
        out = model(batch.x_dict, batch.edge_index_dict)["paper"][: batch["paper"].batch_size]
        assert out.shape == (batch["paper"].batch_size, 3) and out.isfinite().all()


def test_stores_have_the_columns_of_the_dataset(dataset, typed):
    features, edges = pickle.loads(pickle.dumps(stores(dataset)))
    assert [attr.attr_name for attr in features.get_all_tensor_attrs()] == ["x", "y"]
    assert features.get_all_tensor_attrs()[0] is not features.get_all_tensor_attrs()[0]
    assert torch.equal(features[None, "x", None], torch.from_numpy(dataset.features()))
    assert torch.equal(features[None, "x", torch.tensor([4, 1])], torch.from_numpy(dataset.features([4, 1])))
    assert features.get_tensor_size(TensorAttr(None, "x")) == (300, 6)
    (of,) = edges.get_all_edge_attrs()
    assert torch.equal(torch.stack(edges.get_edge_index(of)), torch.from_numpy(dataset.edges()))
    assert of.size == (300, 300)
    features, edges = stores(typed)
    groups = [(attr.group_name, attr.attr_name) for attr in features.get_all_tensor_attrs()]
    assert sorted(groups) == [("author", "x"), ("paper", "x"), ("paper", "y")]
    assert [attr.edge_type for attr in edges.get_all_edge_attrs()] == typed.edge_types
    with pytest.raises(gnarl.UsageError, match="read-only"):
        features.put_tensor(torch.zeros(90, 1), group_name="paper", attr_name="z", index=None)
    with pytest.raises(gnarl.UsageError, match="read-only"):
        edges.put_edge_index(torch.zeros(2, 1), edge_type=WRITES, layout="coo", size=(60, 90))


def test_seeds_that_do_not_exist_are_named(dataset):
    with pytest.raises(gnarl.UsageError, match="input node 1 is 300"):
        NeighborSampler(dataset, [2])._sample(torch.tensor([0, 300]))
    with pytest.raises(gnarl.UsageError, match="are not replaced"):
        NeighborSampler(dataset, [2], replace=True, sampler="labor")
