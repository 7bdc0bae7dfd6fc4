"""Batches of parts, on this host and behind a server: those of the whole graph, in any number of processes."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
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
        replace=False,
        subgraph="directional",
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


@contextlib.contextmanager
def serving(place, token, *options):
    """The address of a server of parts, which ends with the block."""
    command = [
        sys.executable,
        "-m",
        "gnarl",
        "serve",
        place,
        "--token-file",
        token,
        *options,
    ]
    if "--listen" not in options:
        command += ["--listen", "127.0.0.1:0"]
    words = list(map(str, command))
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        log = []
        while not log or "serving parts" not in log[-1]:
            log.append(server.stderr.readline())
            assert log[-1], log
        try:
            yield log[-1].split()[-1]
        finally:
            server.terminate()
            server.communicate(timeout=30)


@pytest.fixture(scope="module")
def served(parts, tmp_path_factory):
    """A folder with the first part alone, and the address of a server of the others."""
    place = tmp_path_factory.mktemp("served") / "parts"
    shutil.copytree(parts, place, ignore=shutil.ignore_patterns("part-1", "part-2"))
    token = place / "token"
    token.write_text("7d5bd5c2aa3d4ed0b9a7c5f0c4a1be61\n")
    token.chmod(0o600)
    with serving(parts, token, "--part", "1", "--part", "2") as address:
        yield place, {"servers": [address], "token_file": token}


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


def digest_connected(options):
    return digest(gnarl.connect(options["servers"], token_file=options["token_file"]))


def test_addresses_of_servers_suffice(dataset, parts, tmp_path, monkeypatch):
    monkeypatch.setenv("GNARL_CACHE", str(tmp_path / "cache"))
    token = tmp_path / "token"
    token.write_text("7d5bd5c2aa3d4ed0b9a7c5f0c4a1be61\n")
    token.chmod(0o600)
    with contextlib.ExitStack() as running:
        whole = running.enter_context(serving(parts, token))
        # A host with two parts and nothing else, as a cluster has it.
        lean = tmp_path / "lean"
        shutil.copytree(parts, lean, ignore=shutil.ignore_patterns("part-0", "nodes"))
        some = running.enter_context(serving(lean, token, "--part", "1", "--part", "2"))
        first = running.enter_context(serving(parts, token, "--part", "0"))
        expected = digest(dataset)
        opened = gnarl.connect(whole, token_file=token)
        assert opened.is_remote and opened.path.startswith(str(tmp_path / "cache"))
        assert digest(opened) == expected
        assert list(opened.user_ids([3, 4])) == [3, 4] and opened.name == dataset.name
        np.testing.assert_array_equal(opened.split("train"), dataset.split("train"))
        np.testing.assert_array_equal(opened.features([5, 299]), dataset.features([5, 299]))
        both = {"servers": [some, first], "token_file": token}
        assert digest_connected(both) == expected, "the second server describes the parts of both"
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            assert pool.map(digest_connected, [both] * 2, chunksize=1) == [expected] * 2
            assert pool.map(digest, [opened] * 2, chunksize=1) == [expected] * 2
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(digest, [opened] * 2, chunksize=1) == [expected] * 2
        cached = [entry for entry in os.listdir(tmp_path / "cache") if entry.startswith("partition-")]
        assert len([entry for entry in cached if not entry.endswith(".used")]) == 1, "fetched once"

        with pytest.raises(gnarl.UsageError, match="no catalog of the nodes there"):
            gnarl.connect(some, token_file=token)
        with pytest.raises(gnarl.UsageError, match="token_file"):
            gnarl.connect(whole)
        other = tmp_path / "other"
        gnarl.partition(dataset, other, 2, seed=9, quiet=True)
        stranger = running.enter_context(serving(other, token))
        with pytest.raises(gnarl.UsageError, match="parts of another partition"):
            gnarl.connect([whole, stranger], token_file=token)
        monkeypatch.setenv("GNARL_CACHE_BYTES", "1KiB")
        with pytest.raises(gnarl.LimitError, match="GNARL_CACHE_BYTES"):
            gnarl.connect(stranger, token_file=token)
    with pytest.raises(gnarl.RankError, match=r"within 0\.5 s"):
        gnarl.connect("http://127.0.0.1:9", deadline=0.5)
    with pytest.raises(gnarl.UsageError, match="no servers are named"):
        gnarl.connect([])


def digest_made(servers, token):
    return digest(gnarl.connect(servers, batches=True, token_file=token))


def test_ctrl_c_ends_the_wait_for_servers(tmp_path):
    program = "import gnarl; print('here', flush=True); gnarl.connect('http://127.0.0.1:9', deadline=60)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    waiting = subprocess.Popen([sys.executable, "-c", program], env=environment, **pipes)
    assert waiting.stdout.readline() == "here\n"
    time.sleep(1)
    assert waiting.poll() is None
    start = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    _, error = waiting.communicate(timeout=30)
    assert "KeyboardInterrupt" in error and time.monotonic() - start < 10


def test_servers_make_batches(dataset, parts, tmp_path, monkeypatch):
    monkeypatch.setenv("GNARL_CACHE", str(tmp_path / "cache"))
    token = tmp_path / "token"
    token.write_text("7d5bd5c2aa3d4ed0b9a7c5f0c4a1be61\n")
    token.chmod(0o600)
    lean = tmp_path / "lean"
    shutil.copytree(parts, lean, ignore=shutil.ignore_patterns("part-1", "part-2"))
    expected = digest(dataset)
    with contextlib.ExitStack() as running:
        whole = running.enter_context(serving(parts, token, "--batches"))
        # The other worker has one part, and reads the others from the first.
        some = running.enter_context(serving(lean, token, "--part", "0", "--batches", "--servers", whole))
        opened = gnarl.connect([whole, some], batches=True, token_file=token)
        for threads in (1, 4):
            assert digest(opened, threads=threads) == expected
        for method in ("spawn", "fork"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.starmap(digest_made, [([some, whole], token)] * 2, chunksize=1) == [expected] * 2, method
                assert pool.map(digest, [opened] * 2, chunksize=1) == [expected] * 2, method
        with serving(parts, token, "--batches") as gone:
            opened = gnarl.connect([gone, whole], batches=True, token_file=token)
            loader = batches(opened)
            first = next(loader)
        rest = list(loader)
        both = [first, *rest]
        assert [batch[1].tolist() for batch in both] == [batch[1].tolist() for batch in batches(dataset)]
        plain = running.enter_context(serving(parts, token))
        assert digest(gnarl.connect([whole, plain], batches=True, token_file=token)) == expected, "one makes them"
        with pytest.raises(gnarl.UsageError, match="no server makes batches"):
            gnarl.connect(plain, batches=True, token_file=token)
        # A server that is gone is not needed, here and in processes that connect anew.
        opened = gnarl.connect([gone, whole], batches=True, token_file=token)
        assert digest(opened) == expected
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(digest, [opened]) == [expected]
    opened = None
    with serving(parts, token, "--batches") as gone:
        opened = gnarl.connect(gone, batches=True, token_file=token, deadline=1)
    start = time.monotonic()
    with pytest.raises(gnarl.RankError, match="asking servers for a batch: asking http"):
        list(batches(opened))
    assert time.monotonic() - start < 5


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_servers_that_read_parts_of_each_other_make_batches(dataset, parts, tmp_path, monkeypatch):
    monkeypatch.setenv("GNARL_CACHE", str(tmp_path / "cache"))
    token = tmp_path / "token"
    token.write_text("7d5bd5c2aa3d4ed0b9a7c5f0c4a1be61\n")
    token.chmod(0o600)
    places = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with contextlib.ExitStack() as running:
        addresses = []
        for number, own in enumerate(([0], [1, 2])):
            place = tmp_path / str(number)
            others = [f"part-{part}" for part in range(3) if part not in own]
            shutil.copytree(parts, place, ignore=shutil.ignore_patterns(*others))
            words = [word for part in own for word in ("--part", part)]
            other = f"http://{places[1 - number]}"
            words += ["--batches", "--servers", other, "--threads", "1", "--listen", places[number]]
            addresses.append(running.enter_context(serving(place, token, *words)))
        opened = gnarl.connect(addresses, batches=True, token_file=token)
        # One thread each: rows of parts do not wait for batches, which wait for them.
        assert digest(opened, threads=6) == digest(dataset)


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
