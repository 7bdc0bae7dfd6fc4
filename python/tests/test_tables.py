"""Datasets from tables of other libraries."""

from __future__ import annotations

import datetime as dt
import os

import numpy as np
import pytest

import gnarl

pa = pytest.importorskip("pyarrow")

EDGES = {"src": ["a", "b", "c", "a"], "dst": ["b", "c", "a", "c"], "weight": [1.0, 2.0, 3.0, 0.5]}
NODES = {
    "id": ["c", "a", "b"],
    "x": [1.0, None, 3.0],
    "flag": [True, False, None],
    "kind": ["u", "v", "u"],
    "born": [dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(2020, 1, 3)],
    "label": ["yes", "no", None],
    "split": ["train", "val", None],
}


def table(columns, **types):
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def frames(columns):
    """The table in every library that is there."""
    own = table(columns)
    yield own
    yield pa.RecordBatchReader.from_batches(own.schema, own.to_batches(max_chunksize=2))
    try:
        import polars
    except ImportError:
        pass
    else:
        yield polars.from_arrow(own)
    try:
        import pandas  # noqa: F401
    except ImportError:
        pass
    else:
        yield own.to_pandas()
    try:
        import duckdb
    except ImportError:
        pass
    else:
        yield duckdb.from_arrow(own)


def test_tables_of_every_library_make_the_same_graph(tmp_path):
    found = []
    for number, edges in enumerate(frames(EDGES)):
        graph = gnarl.from_tables(tmp_path / str(number), edges, table(NODES), quiet=True)
        ids = np.array(graph.user_ids())
        assert sorted(map(tuple, ids[graph.edges()].T)) == sorted(zip(EDGES["src"], EDGES["dst"], strict=True))
        found.append((graph.edges().tolist(), graph.edge_weights().tolist()))
    assert len(found) >= 2 and all(other == found[0] for other in found)
    # Nothing is left beside the datasets.
    assert sorted(os.listdir(tmp_path)) == [str(number) for number in range(len(found))]


def test_columns_become_features_labels_times_and_splits(tmp_path):
    nodes = table(NODES).set_column(3, "kind", table(NODES)["kind"].dictionary_encode())
    graph = gnarl.from_tables(
        tmp_path / "graph",
        table(EDGES),
        nodes,
        features=["x", "flag"],
        impute=0.5,
        categorical="kind",
        node_time="born",
        quiet=True,
    )
    assert graph.user_ids() == ["c", "a", "b"]
    assert graph.features().tolist() == [[1, 1, 1, 0], [0.5, 0, 0, 1], [3, 0.5, 1, 0]]
    assert graph.labels().tolist() == [0, 1, -1]
    assert graph.class_names() == ["yes", "no"]
    days = np.array(NODES["born"], dtype="datetime64[s]").astype(np.int64)
    assert graph.times().tolist() == days.tolist()
    assert (graph.split("train").tolist(), graph.split("val").tolist()) == ([0], [1])


def test_types_of_columns(tmp_path):
    draw = np.random.default_rng(0)
    ids = draw.permutation(1000)
    edges = table({"src": draw.choice(ids, 5000), "dst": draw.choice(ids, 5000)}, src=pa.uint32(), dst=pa.int16())
    rows = draw.normal(size=(1000, 3)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 3)
    when = pa.array(np.arange(1000), pa.timestamp("ms", tz="UTC"))
    nodes = pa.table({"id": ids, "x": vectors, "when": when, "price": pa.array(range(1000), pa.decimal128(9, 2))})
    made = {"features": "x", "standardize": "price", "node_time": "when", "quiet": True}
    graph = gnarl.from_tables(tmp_path / "graph", edges, nodes, **made)
    assert graph.user_ids().tolist() == ids.tolist()
    np.testing.assert_array_equal(graph.features()[:, :3], rows)
    np.testing.assert_allclose(graph.features()[:, 3].mean(), 0, atol=1e-6)
    assert graph.times().tolist() == [0] * 1000
    ends = graph.user_ids().astype(np.int64)[graph.edges()]
    expected = np.stack([edges["src"].to_numpy(), edges["dst"].to_numpy()]).astype(np.int64)
    assert sorted(map(tuple, ends.T)) == sorted(map(tuple, expected.T))


def test_heterogeneous_graphs_have_columns_by_type(tmp_path):
    writes = table({"author": ["ann", "bob"], "paper": [20, 10], "year": [2001, 2002]})
    graph = gnarl.from_tables(
        tmp_path / "graph",
        {("author", "writes", "paper"): writes, ("paper", "cites", "paper"): table({"src": [10], "dst": [20]})},
        {"paper": table({"number": [10, 20], "topic": [1, 0]}), "author": table({"name": ["bob", "ann"], "h": [5, 7]})},
        src={("author", "writes", "paper"): "author"},
        dst={"author:writes:paper": "paper"},
        time={"author:writes:paper": "year"},
        id={"paper": "number", "author": "name"},
        features={"author": "h"},
        label={"paper": "topic"},
        shares={"paper": (0.5, 0.5, 0)},
        reverse=True,
        quiet=True,
    )
    assert graph.features(node_type="author").tolist() == [[5], [7]]
    assert graph.edges("author:writes:paper").tolist() == [[1, 0], [1, 0]]
    assert graph.edge_times("author:writes:paper").tolist() == [2001, 2002]
    assert ("paper", "rev_writes", "author") in graph.edge_types
    assert graph.labels(node_type="paper").tolist() == [1, 0]
    assert graph.splits("paper") == ["train", "valid"]


def test_related_tables_are_a_graph_in_time(tmp_path):
    days = [dt.datetime(2020, 1, day) for day in (1, 2, 3)]
    orders = table({"id": [10, 11, 12], "customer": [1.0, None, 2.0], "amount": [5.0, None, 7.0], "at": days})
    customers = table({"cid": [1, 2, 3], "name": ["x", "y", "z"], "vip": [True, False, True], "label": [0, 1, 0]})
    items = table({"order": [10, 10, 12], "count": [1, 2, 3]})
    tables = {"orders": orders, "customers": customers, "items": items}
    keys = {"orders": {"id": None, "customer": "customers"}, "customers": {"cid": None}, "items": {"order": "orders"}}
    graph = gnarl.from_relational(tmp_path / "graph", tables, keys, {"orders": "at"}, quiet=True)
    assert graph.node_types == ["orders", "customers", "items"]
    assert graph.edges("orders:customer:customers").tolist() == [[0, 2], [0, 1]]
    assert graph.edges("customers:rev_customer:orders").tolist() == [[0, 1], [0, 2]]
    assert graph.edges("items:order:orders").tolist() == [[0, 1, 2], [0, 0, 2]]
    # Amounts are standardized, a missing one is told; keys, times, names and labels are no features.
    assert graph.features(node_type="orders").tolist() == [[-1, 0], [0, 1], [1, 0]]
    assert graph.features(node_type="customers").tolist() == [[1], [0], [1]]
    assert graph.labels(node_type="customers").tolist() == [0, 1, 0]
    assert np.diff(graph.times("orders")).tolist() == [86400, 86400]
    assert graph.user_ids(node_type="orders").tolist() == [10, 11, 12]

    class Table:
        """A table as RelBench has it."""

        def __init__(self, df, links, key, time):
            self.df = df
            self.fkey_col_to_pkey_table = links
            self.pkey_col = key
            self.time_col = time

    again = gnarl.from_relational(
        tmp_path / "again",
        {
            "orders": Table(orders, {"customer": "customers"}, "id", "at"),
            "customers": Table(customers, {}, "cid", None),
            "items": Table(items, {"order": "orders"}, None, None),
        },
        quiet=True,
    )
    for of in graph.edge_types:
        assert again.edges(of).tolist() == graph.edges(of).tolist()
    assert again.times("orders").tolist() == graph.times("orders").tolist()


def test_edge_features_are_imputed_and_marked(tmp_path):
    edges = table({"src": [0, 1, 2], "dst": [1, 2, 0], "w": [1.0, None, 3.0]})
    nodes = table({"id": [0, 1, 2], "x": [None, 2.0, 4.0]})
    made = {"features": "x", "edge_features": "w", "impute": "mean", "quiet": True}
    graph = gnarl.from_tables(tmp_path / "both", edges, nodes, impute_indicator=True, **made)
    assert graph.features().tolist() == [[3, 1], [2, 0], [4, 0]]
    assert sorted(graph.edge_features().tolist()) == [[1, 0], [2, 1], [3, 0]]
    typed = {("a", "to", "a"): edges}
    made["impute"] = {"a": 0, "a:to:a": 7}
    graph = gnarl.from_tables(tmp_path / "typed", typed, {"a": nodes}, **made)
    assert graph.features().tolist() == [[0], [2], [4]] and sorted(graph.edge_features().tolist()) == [[1], [3], [7]]


def test_columns_of_types_that_are_not_read_are_left_out(tmp_path):
    union = pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])])
    nodes = pa.table({"id": ["a", "b", "c"], "odd": union, "nested": [{"k": 1}] * 3})
    # A slash at the end is no other place.
    graph = gnarl.from_tables(f"{tmp_path}/graph/", table(EDGES), nodes, quiet=True)
    assert graph.num_nodes() == 3
    for column in ("odd", "nested"):
        told = refusal(lambda: gnarl.from_tables(tmp_path / "no", table(EDGES), nodes, features=column, quiet=True))  # noqa: B023
        assert f"column {column!r} has a type that is not read" in told
    assert os.listdir(tmp_path) == ["graph"]


def test_numbers_to_learn_are_the_targets(tmp_path):
    nodes = table({"id": [0, 1, 2], "label": [1, 0, 1], "price": [2.5, None, 4.0]})
    edges = table({"src": [0, 1], "dst": [1, 2]})
    graph = gnarl.from_tables(tmp_path / "graph", edges, nodes, value="price", quiet=True)
    np.testing.assert_array_equal(graph.labels(), np.array([2.5, np.nan, 4.0], dtype=np.float32))


def test_an_index_without_a_name_is_no_id(tmp_path):
    pandas = pytest.importorskip("pandas")
    edges = table({"src": [2, 0], "dst": [0, 1]})
    nodes = pandas.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[2, 0, 1])
    assert 'reset_index(names="id")' in refusal(lambda: gnarl.from_tables(tmp_path / "g", edges, nodes, quiet=True))
    graph = gnarl.from_tables(tmp_path / "g", edges, nodes.reset_index(names="id"), features="x", quiet=True)
    assert graph.features(graph.find([0, 1, 2]).tolist()).ravel().tolist() == [2, 3, 1]


def test_columns_that_are_features_unasked(tmp_path):
    many = pa.array([f"v{at}" for at in range(300)]).dictionary_encode()
    few = pa.array(["a", "b", "a"] * 100).dictionary_encode()
    rows = pa.table(
        {
            "id": range(300),
            "to": range(300),
            "few": few,
            "many": many,
            "none": pa.array([None] * 300, pa.float64()),
            "ragged": [[1.0]] * 299 + [[1.0, 2.0]],
            "pair": [[1.0, 2.0]] * 300,
            "holes": [[1.0, 2.0]] * 299 + [[1.0, None]],
            "time": range(300),
        }
    )
    keys = {"a": {"id": None, "to": "a"}}
    graph = gnarl.from_relational(tmp_path / "graph", {"a": rows}, keys, quiet=True)
    # Two categories, a pair, and a number.
    assert graph.num_features() == 5
    assert ("a", "rev_to", "a") in graph.edge_types and graph.edge_times("a:to:a") is None
    bare = gnarl.from_relational(tmp_path / "bare", {"a": rows}, keys, features=[], quiet=True)
    assert bare.num_features() == 0
    texts = pa.table({"id": ["1", "2"], "to": [2, 1]})
    mixed = gnarl.from_relational(tmp_path / "mixed", {"a": texts}, keys, ids="string", quiet=True)
    assert mixed.num_edges("a:to:a") == 2


def test_keys_without_values_are_types_without_edges(tmp_path):
    orders = table({"id": [1.0, 2.0], "customer": [5, 5], "old": pa.array([None, None], pa.int64())})
    customers = table({"cid": [5, 6]})
    keys = {"orders": {"id": None, "customer": "customers", "old": "customers"}, "customers": {"cid": None}}
    graph = gnarl.from_relational(tmp_path / "graph", {"orders": orders, "customers": customers}, keys, quiet=True)
    assert graph.num_edges("orders:old:customers") == 0 and graph.num_edges("orders:customer:customers") == 2
    # Primary keys may be floats of whole numbers, too.
    assert graph.user_ids(node_type="orders").tolist() == [1, 2]


def refusal(act):
    with pytest.raises(gnarl.Error) as caught:
        act()
    return str(caught.value)


def test_what_is_wrong_is_named(tmp_path):
    edges, nodes = table(EDGES), table(NODES)
    out = tmp_path / "graph"

    def of(edges, nodes=None, **options):
        return refusal(lambda: gnarl.from_tables(out, edges, nodes, quiet=True, **options))

    assert "no column 's'" in of(edges, src="s")
    assert "nodes: no column 'zz'" in of(edges, nodes, features="zz")
    null = of(table({"src": [1, None], "dst": [2, 3]}))
    assert "edges: row 1: column 'src' is null" in null and str(tmp_path) not in null
    assert "list has no Arrow stream" in of([1, 2])
    assert "without a table of nodes" in of(edges, features="x")
    assert "no node type 'paper'" in of(edges, nodes, features={"paper": "x"})
    assert "both label and value" in of(edges, nodes, label="label", value="x")
    assert "expected a mapping" in of({("a", "to", "b"): edges}, nodes)
    assert "unknown type 'aa'" in of({("a", "to", "b"): edges}, num_nodes={"aa": 7})
    assert "edges are empty" in of({})
    assert "edge type ('a', 'b')" in of({("a", "b"): edges})
    assert "shares of nodes" in of(edges, nodes, shares=0.8)
    assert "0 is no name of a column" in of(edges, nodes, features=[0])
    assert "impute: no type 'c'" in of(edges, nodes, features="x", impute={"c": 1})
    assert os.listdir(tmp_path) == []
    gnarl.from_tables(out, edges, quiet=True)
    assert "dataset already" in of(edges)
    gnarl.from_tables(out, edges, force=True, quiet=True)
    assert os.listdir(tmp_path) == ["graph"]


def test_keys_that_lead_nowhere_are_named(tmp_path):
    orders = table({"id": [1, 2], "customer": [5, 6]})
    customers = table({"cid": [5]})

    def of(keys, tables=None):
        tables = tables or {"orders": orders, "customers": customers}
        return refusal(lambda: gnarl.from_relational(tmp_path / "graph", tables, keys, quiet=True))

    known = {"cid": None}
    assert "keys of customers" in of({"customers": "cid"})
    assert "keys of customers" in of({"customers": {("a", "b"): None}})
    assert "keys is a str" in of("cid")
    assert "no column 'buyer'" in of({"orders": {"buyer": "customers"}, "customers": known})
    assert "unknown table 'people'" in of({"orders": {"customer": "people"}})
    assert "no primary key" in of({"orders": {"customer": "customers"}})
    assert "no table has a foreign key" in of({"customers": known})
    lost = of({"orders": {"customer": "customers"}, "customers": known})
    assert "orders.customer" in lost and "6" in lost
    halves = {"orders": table({"customer": [5.5]}), "customers": customers}
    assert "row 0: column 'customer' has the key 5.5" in of(
        {"orders": {"customer": "customers"}, "customers": known}, halves
    )
    assert os.listdir(tmp_path) == []
