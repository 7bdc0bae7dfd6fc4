"""Batches of parts, on this host and behind a server: those of the whole graph, in any number of processes."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import gnarl
from gnarl import _gnarl


def batches(dataset, epoch=3, threads=2, rule="uniform"):
    loader = _gnarl.Loader.of_nodes(
        dataset._graph,
        "_N",
        np.arange(dataset.num_nodes()),
        batch_size=16,
        shuffle=True,
        drop_last=False,
        seed=5,
        rank=0,
        world_size=1,
        threads=threads,
        prefetch=2,
        features=True,
        labels=True,
        fanouts=[4, 3],
        fanouts_of=[],
        rule=rule,
        disjoint=False,
        time=None,
    )
    return loader.epoch(epoch)


def digest(dataset, **options):
    """A hash of nodes, features, labels, endpoints and weights of all batches."""
    whole = hashlib.sha256()
    for _, places, nodes, edges, _, _ in batches(dataset, **options):
        ids, features, labels, *_ = nodes[0]
        ends, _, _, weights, _, _ = edges[0]
        for array in (places, ids, features, labels, ends, weights):
            whole.update(array.tobytes())
    return whole.hexdigest()


@pytest.fixture(scope="module")
def parts(dataset, tmp_path_factory):
    place = tmp_path_factory.mktemp("parts") / "parts"
    gnarl.partition(dataset, place, 3, quiet=True)
    return place


@pytest.fixture(scope="module")
def served(parts, tmp_path_factory):
    """A folder with the first part alone, and the address of a server of the others."""
    place = tmp_path_factory.mktemp("served") / "parts"
    shutil.copytree(parts, place, ignore=shutil.ignore_patterns("part-1", "part-2"))
    token = place / "token"
    token.write_text("7d5bd5c2aa3d4ed0b9a7c5f0c4a1be61\n")
    token.chmod(0o600)
    command = [sys.executable, "-m", "gnarl", "serve", parts, "--part", "1", "--part", "2", "--listen", "127.0.0.1:0"]
    words = [*map(str, command), "--token-file", str(token)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        log = []
        while not log or "serving parts" not in log[-1]:
            log.append(server.stderr.readline())
            assert log[-1], log
        yield place, {"servers": [log[-1].split()[-1]], "token_file": token}
        server.terminate()
        server.communicate(timeout=30)


def open_served(place, options):
    return gnarl.open(place, **options)


def digest_of(place, options):
    return digest(open_served(place, options))


def test_batches_of_parts_are_those_of_the_whole_graph(dataset, parts):
    opened = gnarl.open(parts)
    assert not opened.is_remote and opened.num_edges() == dataset.num_edges()
    assert opened.path == os.path.abspath(parts)
    np.testing.assert_array_equal(opened.features([5, 299]), dataset.features([5, 299]))
    np.testing.assert_array_equal(opened.split("train"), dataset.split("train"))
    assert list(opened.user_ids([3, 4])) == [3, 4]
    for threads in (1, 4):
        assert digest(opened, threads=threads) == digest(dataset)
    assert next(iter(batches(opened)))[3][0][1] is None, "edges have no ids"
    assert opened.name == dataset.name
    for whole in (opened.edges, opened.edge_weights, opened.edge_features, opened.edge_times):
        with pytest.raises(gnarl.UsageError, match="need the whole graph"):
            whole()


def test_served_parts_give_the_same_batches_in_any_process(dataset, served):
    place, options = served
    opened = gnarl.open(place, **options)
    assert opened.is_remote
    expected = digest(dataset)
    assert digest(opened) == expected == digest(pickle.loads(pickle.dumps(opened)))
    for method in ("spawn", "fork"):
        # By then this process has connections.
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.starmap(digest_of, [(place, options)] * 4, chunksize=1) == [expected] * 4, method
            # A dataset of this process connects anew.
            assert pool.map(digest, [opened] * 2) == [expected] * 2, method


def _digest_here(opened, queue):
    queue.put(digest(opened))


def test_a_dataset_that_is_forked_off_connects_anew(dataset, served):
    place, options = served
    opened = gnarl.open(place, **options)
    assert digest(opened) == digest(dataset)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_digest_here, args=(opened, queue))
    process.start()
    assert queue.get(timeout=60) == digest(dataset)
    process.join(60)
    assert process.exitcode == 0
    assert digest(opened) == digest(dataset)


def _one_batch(opened):
    digest(opened)
    os._exit(0)


def test_forks_while_threads_load(dataset, parts):
    """No child waits for memory that a thread of its parent had locked."""
    opened = gnarl.open(parts)
    made = batches(opened, threads=4)
    for _ in range(60):
        next(made, None)
        child = os.fork()
        if child == 0:
            _one_batch(opened)
        deadline = time.monotonic() + 30
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        if len(made) == 0:
            made = batches(opened, threads=4)


def test_what_is_missing_is_named(dataset, parts, served, tmp_path):
    place, options = served
    with pytest.raises(gnarl.UsageError, match="part 1 is neither in"):
        gnarl.open(place)
    with pytest.raises(gnarl.UsageError, match="token"):
        gnarl.open(place, servers=options["servers"])
    with pytest.raises(gnarl.RankError, match="no reply"):
        gnarl.open(place, servers=["http://127.0.0.1:9"], deadline=0.5)
    with pytest.raises(gnarl.UsageError, match="there is no partition.json"):
        gnarl.open(dataset.path, servers=options["servers"])
    with pytest.raises(gnarl.UsageError, match="there is no partition.json"):
        gnarl.open(dataset.path, token_file=options["token_file"])
    # Servers of parts that are here are not asked.
    assert digest(gnarl.open(parts, servers=["http://127.0.0.1:9"], deadline=0.5)) == digest(dataset)
    with pytest.raises(gnarl.UsageError, match="invalid deadline"):
        gnarl.open(parts, deadline=0)
    with pytest.raises(gnarl.UsageError, match="folder of all parts"):
        gnarl.open(parts / "part-0")
    gnarl.partition(dataset, tmp_path / "cut", 2, algorithm="adadne", layout="vertex-cut", quiet=True)
    shared = gnarl.open(tmp_path / "cut")
    with pytest.raises(gnarl.UsageError, match="share lists"):
        digest(shared)
    assert digest(shared, rule="exact") == digest(dataset, rule="exact")
