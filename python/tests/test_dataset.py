"""Datasets written from arrays and read back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gnarl


def test_arrays_come_back(dataset, arrays):
    assert dataset.num_nodes() == 300 and dataset.num_edges() == 2000
    assert (dataset.num_features(), dataset.num_classes()) == (6, 4)
    np.testing.assert_array_equal(dataset.edges(), arrays["edges"])
    np.testing.assert_array_equal(dataset.features(), arrays["features"])
    np.testing.assert_array_equal(dataset.features([7, 3, 7]), arrays["features"][[7, 3, 7]])
    np.testing.assert_array_equal(dataset.labels(), arrays["labels"])
    assert sorted(dataset.splits()) == ["train", "valid"]
    np.testing.assert_array_equal(dataset.split("train"), arrays["splits"]["train"])
    np.testing.assert_array_equal(dataset.split("val"), np.flatnonzero(arrays["splits"]["val"]))
    np.testing.assert_array_equal(dataset.val_mask, arrays["splits"]["val"])
    assert not dataset.is_heterogeneous and "300 nodes, 2,000 edges" in repr(dataset)


def test_types_come_back(typed, typed_arrays):
    assert typed.is_heterogeneous
    assert set(typed.node_types) == {"author", "paper", "venue"}
    assert set(typed.edge_types) == set(typed_arrays["edges"])
    for triple, edges in typed_arrays["edges"].items():
        np.testing.assert_array_equal(typed.edges(triple), edges)
        np.testing.assert_array_equal(typed.edges(":".join(triple)), edges)
    np.testing.assert_array_equal(typed.features(node_type="author"), typed_arrays["features"]["author"])
    assert typed.features(node_type="venue") is None and typed.num_nodes("venue") == 5
    assert typed.num_nodes() == 155 and typed.num_edges() == 1500


def test_ids_of_the_input_come_back(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst\nann,bob\nbob,eve\neve,ann\n")
    gnarl.import_("csv", tmp_path / "g", edges=tmp_path / "e.csv", quiet=True)
    graph = gnarl.open(tmp_path / "g")
    names = graph.user_ids()
    assert sorted(names) == ["ann", "bob", "eve"]
    np.testing.assert_array_equal(graph.find(["eve", "ann"]), [names.index("eve"), names.index("ann")])
    with pytest.raises(gnarl.DataError, match="unknown node id 'joe'"):
        graph.find(["ann", "joe"])


def test_labels_of_every_kind(tmp_path):
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    several = np.array([[1, 0], [0, 0], [1, 1]])
    graph = gnarl.from_arrays(tmp_path / "several", edges, labels=several)
    np.testing.assert_array_equal(graph.labels(), several)
    assert graph.num_classes() == 2 and graph.num_features() == 0 and graph.features() is None
    numbers = np.array([0.5, np.nan, -1], dtype=np.float64)
    graph = gnarl.from_arrays(tmp_path / "numbers", edges, labels=numbers)
    np.testing.assert_array_equal(graph.labels(), numbers.astype(np.float32))
    classes = gnarl.from_arrays(tmp_path / "classes", edges, labels=np.array([1, -1, 0]))
    np.testing.assert_array_equal(classes.labels(), [1, -1, 0])


def test_features_keep_their_type_on_disk(tmp_path):
    edges = np.array([[0, 1], [1, 0]])
    for dtype, bytes_ in ((np.float16, 2), (np.uint8, 1), (np.float64, 4)):
        rows = np.array([[1, 2], [3, 4]], dtype=dtype)
        graph = gnarl.from_arrays(tmp_path / dtype.__name__, edges, features=rows)
        np.testing.assert_array_equal(graph.features(), rows)
        [file] = (tmp_path / dtype.__name__).glob("*features*.npy")
        assert np.load(file).itemsize == bytes_


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.zeros((4, 2))}, "edge 1: destination 9"),
        ({"edges": np.array([[0, -1], [1, 2]])}, "edge 1: source -1 is negative"),
        ({"edges": np.zeros((3, 2), dtype=np.int64)}, "2 × edges"),
        ({"edges": np.zeros((2, 2))}, "2 × edges"),
        ({"labels": np.zeros(7, dtype=np.int64)}, "labels of _N: 7 rows for 10"),
        ({"edge_weights": np.zeros(3)}, "weights of _N:_E:_N: 3 rows for 2"),
        ({"splits": {"train": [1, 10]}}, "node 10"),
        ({"splits": {"train": [1, -1]}}, "split train"),
        ({"splits": {"train": np.ones((10, 3), dtype=bool)}}, "one dimension"),
        ({"splits": {"a/b": [1]}}, "invalid split name 'a/b'"),
        ({"splits": [1, 2]}, "mapping from names"),
        ({"labels": np.full((10, 2), 0.5)}, "other values than 0 and 1"),
        ({"labels": np.full(10, 1 << 31)}, "classes below 2"),
        ({"labels": np.full(10, -5)}, "classes from -5"),
        ({"labels": np.zeros((10, 2, 2))}, "with the shape"),
        ({"features": np.zeros((10, 0))}, "have no values"),
        ({"features": np.zeros((10, 2), dtype=complex)}, "real numbers"),
        ({"edges": np.array([[2**63 + 5], [1]], dtype=np.uint64)}, "exceeds 63 bits"),
        ({"num_nodes": -3, "features": None}, "num_nodes"),
        ({"memory": -1}, "positive number"),
        ({"times": np.zeros(10)}, "expected integers"),
    ],
)
def test_arrays_that_disagree_are_named(tmp_path, changes, message):
    given = {"edges": np.array([[0, 1], [1, 9]]), "features": np.zeros((10, 2)), **changes}
    with pytest.raises(gnarl.Error, match=message):
        gnarl.from_arrays(tmp_path / "wrong", **given)
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_nothing_is_overwritten_unasked(tmp_path):
    edges = np.array([[0, 1], [1, 0]])
    gnarl.from_arrays(tmp_path / "g", edges)
    with pytest.raises(gnarl.Error, match="force"):
        gnarl.from_arrays(tmp_path / "g", edges)
    assert gnarl.from_arrays(tmp_path / "g", edges[:, :1], force=True).num_edges() == 1


def test_parts_are_refused(dataset, tmp_path):
    gnarl.partition(dataset, tmp_path / "parts", 2, quiet=True)
    with pytest.raises(gnarl.UsageError, match="part of a partitioned dataset"):
        gnarl.open(tmp_path / "parts" / "part-0")


def test_columns_of_edges_come_back(dataset, arrays):
    np.testing.assert_array_equal(dataset.edge_features(), arrays["edge_features"])
    np.testing.assert_array_equal(dataset.edge_weights(), arrays["edge_weights"])
    assert dataset.edge_times() is None and dataset.times() is None


def test_an_empty_graph(tmp_path):
    graph = gnarl.from_arrays(tmp_path / "g", np.zeros((2, 0), dtype=np.int64), features=np.zeros((0, 8)))
    assert (graph.num_nodes(), graph.num_edges(), graph.features().shape) == (0, 0, (0, 8))


def test_datasets_are_pickled_by_their_place(dataset):
    again = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(again.edges(), dataset.edges())


def test_errors_say_what_there_is(dataset, typed, tmp_path):
    with pytest.raises(gnarl.UsageError, match="unknown split 'training'") as caught:
        dataset.split("training")
    assert "train" in caught.value.hint and isinstance(caught.value, ValueError)
    with pytest.raises(gnarl.UsageError, match="unknown node type 'editor'.*\nhint: there are: "):
        typed.num_nodes("editor")
    with pytest.raises(gnarl.UsageError, match="must be named"):
        typed.features()
    with pytest.raises(gnarl.UsageError, match="unknown edge type 'a:b:c'"):
        typed.edges(("a", "b", "c"))
    with pytest.raises(gnarl.DataError, match="no dataset.json here"):
        gnarl.open(tmp_path)
    with pytest.raises(gnarl.UsageError, match="300 nodes"):
        dataset.features([300])


def test_folders_stay_known_where_the_process_moves(dataset, arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = gnarl.from_arrays("graph", arrays["edges"], features=arrays["features"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = pickle.loads(pickle.dumps(opened))
    assert again.path == opened.path == str(tmp_path / "graph") and again.num_nodes() == opened.num_nodes() == 300
    assert opened.find(np.array([3, 4])).tolist() == [3, 4]
    with pytest.raises(gnarl.UsageError, match="invalid cache"):
        gnarl.open(opened.path, cache=-1)
    small = pickle.loads(pickle.dumps(gnarl.open(opened.path, cache=1 << 20)))
    assert small._graph.__reduce__()[1][-1] == 1 << 20 and opened._graph.__reduce__()[1][-1] is None
    assert np.array_equal(small.features(), opened.features())
