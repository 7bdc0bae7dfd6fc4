"""Batches as the extension module gives them, without PyTorch: the same for any number of threads, processes and forks."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import threading

import numpy as np
import pytest

from gnarl import Dataset, _gnarl


def loader(dataset, nodes=None, threads=2, **options):
    given = {
        "batch_size": 16,
        "shuffle": True,
        "drop_last": False,
        "seed": 5,
        "rank": 0,
        "world_size": 1,
        "prefetch": 2,
        "features": True,
        "labels": True,
        "fanouts": [4, 3],
        "fanouts_of": [],
        "rule": "uniform",
        "disjoint": False,
        "time": None,
        "replace": False,
        "subgraph": "directional",
        **options,
    }
    nodes = np.arange(dataset.num_nodes()) if nodes is None else np.asarray(nodes)
    return _gnarl.Loader.of_nodes(dataset._graph, "_N", nodes, threads=threads, **given)


def digest(batches):
    """A hash of all arrays of all batches."""
    whole = hashlib.sha256()
    for _, places, nodes, edges, _, _ in batches:
        for array in [places, *(part for of in (*nodes, *edges) for part in of)]:
            if isinstance(array, np.ndarray):
                whole.update(array.tobytes())
            else:
                whole.update(repr(array).encode())
    return whole.hexdigest()


def digest_of(path, epoch=3):
    return digest(loader(Dataset(path)).epoch(epoch))


def test_batches_have_the_columns_of_their_nodes_and_edges(dataset, arrays):
    seen = []
    for seed_type, places, [nodes], [edges], _, _ in loader(dataset, threads=3).epoch(0):
        ids, features, labels, times, _, of_hop = nodes
        ends, rows, edge_features, weights, _, edges_of_hop = edges
        assert (seed_type, times) == (0, None)
        np.testing.assert_array_equal(ids[: len(places)], places)
        np.testing.assert_array_equal(features, arrays["features"][ids])
        np.testing.assert_array_equal(labels, arrays["labels"][ids])
        np.testing.assert_array_equal(ids[ends], arrays["edges"][:, rows])
        np.testing.assert_array_equal(edge_features, arrays["edge_features"][rows])
        np.testing.assert_array_equal(weights, arrays["edge_weights"][rows])
        assert (sum(of_hop), sum(edges_of_hop)) == (len(ids), len(rows))
        assert of_hop[0] == len(places) and len(of_hop) == 3 and len(edges_of_hop) == 2
        assert ids.dtype == ends.dtype == rows.dtype == labels.dtype == np.int64
        assert features.dtype == np.float32 and features.flags.writeable
        seen.extend(places)
    assert sorted(seen) == list(range(300))


def test_the_same_batches_for_any_number_of_threads(dataset):
    alone = digest(loader(dataset, threads=1).epoch(3))
    for threads in (2, 4, 7):
        assert digest(loader(dataset, threads=threads).epoch(3)) == alone
    assert digest(loader(dataset).epoch(4)) != alone
    assert digest(loader(dataset, seed=6).epoch(3)) != alone


def test_ranks_share_an_epoch(dataset):
    ranks = [list(loader(dataset, batch_size=8, rank=rank, world_size=2).epoch(1)) for rank in range(2)]
    assert len(ranks[0]) == len(ranks[1]) == 19
    alone = [list(places) for _, places, *_ in loader(dataset, batch_size=16).epoch(1)]
    for step, (first, second) in enumerate(zip(*ranks, strict=True)):
        assert [*first[1], *second[1]] == alone[step]


def test_the_same_batches_in_processes_that_are_spawned_and_forked(dataset):
    expected = digest_of(dataset.path)
    for method in ("spawn", "forkserver", "fork"):
        # By then threads of this process have prepared batches.
        with multiprocessing.get_context(method).Pool(8) as pool:
            assert pool.map(digest_of, [dataset.path] * 16, chunksize=1) == [expected] * 16, method


def _use_after_fork(made, batches, queue):
    try:
        list(batches)
        queue.put("no error")
    except RuntimeError as error:
        queue.put(str(error))
    queue.put(digest(made.epoch(3)))
    # The epoch of the other process is dropped here, without a wait for threads that are not in this one.
    del batches
    gc.collect()
    queue.put("done")


def test_an_epoch_does_not_go_on_in_a_fork(dataset):
    made = loader(dataset)
    batches = made.epoch(3)
    first = next(batches)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_use_after_fork, args=(made, batches, queue))
    process.start()
    assert "another process" in queue.get(timeout=60)
    assert queue.get(timeout=60) == digest(made.epoch(3))
    assert queue.get(timeout=60) == "done"
    process.join(60)
    assert process.exitcode == 0
    # Here it does.
    assert digest([first, *batches]) == digest(made.epoch(3))


def test_an_epoch_may_be_left_and_arrays_stay(dataset, arrays):
    made = loader(dataset)
    kept = []
    for number, (_, _, [nodes], *_) in enumerate(made.epoch(0)):
        kept.append((nodes[0], nodes[1]))
        if number == 3:
            break
    del made
    gc.collect()
    for ids, features in kept:
        np.testing.assert_array_equal(features, arrays["features"][ids])


def test_threads_of_python_share_a_loader(dataset):
    made = loader(dataset)
    expected = digest(made.epoch(3))
    found = [None] * 4

    def work(number):
        found[number] = digest(made.epoch(3))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [expected] * 4


def test_threads_of_python_share_an_epoch(dataset):
    batches = loader(dataset).epoch(3)
    found = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda own: own.extend(batches), args=(own,)) for own in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    seeds = sorted(place for own in found for _, places, *_ in own for place in places)
    assert seeds == list(range(300))


def test_memory_of_features_goes_with_them(tmp_path):
    import gnarl

    rows = np.ones((100_000, 200), dtype=np.float32)
    graph = gnarl.from_arrays(tmp_path / "g", np.zeros((2, 1), dtype=np.int64), features=rows)
    del rows

    def resident():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

    before = resident()
    held = graph.features()
    assert resident() - before > held.nbytes // 2
    del held
    assert resident() - before < 40_000_000


def test_no_node_at_all(dataset):
    made = loader(dataset, nodes=np.zeros(0, dtype=np.int64))
    assert len(made) == 0 and list(made.epoch(0)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "sometimes"}, "sometimes"),
        ({"time": "uniform"}, "have no times"),
        ({"batch_size": 0}, "batch_size 0"),
        ({"rank": 1}, "rank 1 of 1"),
        ({"prefetch": 0}, "prefetch 0"),
    ],
)
def test_wrong_options_are_named(dataset, options, message):
    with pytest.raises(ValueError, match=message):
        loader(dataset, **options)


def test_missing_options_are_named(dataset):
    with pytest.raises(TypeError, match="'fanouts' is missing"):
        _gnarl.Loader.of_nodes(dataset._graph, "_N", np.zeros(1, dtype=np.int64))
