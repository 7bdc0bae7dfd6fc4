"""Datasets from tables of other libraries: pandas, Polars, PyArrow, DuckDB, or files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gnarl import _gnarl
from gnarl._commands import _run_command, _words
from gnarl._dataset import PLAIN, Dataset, EdgeType, edge_name
from gnarl._errors import Error, UsageError
from gnarl._write import PLAIN_EDGES

#: Names of transforms in schema files, by the arguments that ask for them.
_TRANSFORMS = {
    "features": None,
    "standardize": "standard",
    "min_max": "max_min_norm",
    "categorical": "to_categorical",
    "edge_features": None,
}


def from_tables(
    path: str | os.PathLike[str],
    edges: Any,
    nodes: Any = None,
    *,
    src: Any = "src",
    dst: Any = "dst",
    id: Any = None,
    features: Any = None,
    standardize: Any = None,
    min_max: Any = None,
    categorical: Any = None,
    impute: Any = None,
    impute_indicator: bool = False,
    label: Any = None,
    value: Any = None,
    num_classes: Any = None,
    split: Any = None,
    shares: Any = None,
    node_time: Any = None,
    weight: Any = None,
    time: Any = None,
    edge_features: Any = None,
    edge_label: Any = None,
    edge_value: Any = None,
    edge_split: Any = None,
    num_nodes: Any = None,
    ids: str | None = None,
    symmetrize: bool = False,
    reverse: bool = False,
    coalesce: bool | None = None,
    memory: int = 1 << 30,
    force: bool = False,
    quiet: bool = False,
) -> Dataset:
    """Writes a dataset from tables, and opens it. Ids are integers or strings, which ``user_ids`` has later.

    A table is anything with the Arrow stream interface (``__arrow_c_stream__``): a data frame of pandas (2.2 or later, with
    PyArrow) or Polars, a table or reader of PyArrow, a relation of DuckDB. It is read once, in pieces. A path is a file of
    Parquet, CSV or TSV. Each argument that names columns is one for all tables, or a mapping by node type or edge type.

    Args:
        path: The folder to make.
        edges: A table of edges; of a heterogeneous graph a mapping from ``(source, relation, destination)`` to tables.
        nodes: A table of nodes, or a mapping from node types, None for a type whose nodes are the ids that edges mention.
            Without any tables all are.
        src: Column of sources.
        dst: Column of destinations.
        id: Column of the ids of nodes; by default ``id``. Without any, nodes are numbered by row.
        features: Columns of features of nodes, as they are: numbers, booleans, dates, or one of lists. ``x*`` stands for
            all columns that begin so.
        standardize: Columns of numbers that become features of mean 0 and deviation 1.
        min_max: Columns of numbers that become features from 0 to 1.
        categorical: Columns of categories: a feature of 0 and 1 for each.
        impute: ``"mean"``, ``"median"`` or a number in place of missing values of features.
        impute_indicator: Adds a feature that marks them.
        label: Column of classes; by default ``label``, if there.
        value: Column of numbers to learn.
        num_classes: Number of classes, if not the largest plus one.
        split: Column that names the split of each node; by default ``split``, if there.
        shares: Instead shares of train, valid and test, which are drawn among the labeled nodes.
        node_time: Column of times of nodes: integers, dates or timestamps (seconds since 1970-01-01).
        weight: Column of weights of edges; by default ``weight``, if there.
        time: Column of times of edges; by default ``time``, if there.
        edge_features: Columns of features of edges.
        edge_label: Column of classes of edges.
        edge_value: Column of numbers of edges to learn.
        edge_split: Column that names the split of each edge.
        num_nodes: Number of nodes, which keep their integer ids; of a heterogeneous graph a mapping.
        ids: ``"integer"`` or ``"string"``; by default as they look.
        symmetrize: Store the reverse of every edge too, where both endpoints are of one type.
        reverse: Store the reverse of every edge too, as an edge type ``rev_relation``.
        coalesce: Drop repeated edges.
        memory: Bytes that the import may take, beside the tables.
        force: Replace a dataset that is there.
        quiet: No log on ``sys.stderr``.

    Raises:
        UsageError: If arguments ask for different things, or name types without tables.
        CommandError: If a table has no such column, or a value is invalid; the message names its table and row.
    """
    given_nodes, given_edges = _by_type(edges, nodes)
    node_impute, edge_impute = _by_kind("impute", impute, given_nodes, given_edges)
    node_indicator, edge_indicator = _by_kind("impute_indicator", impute_indicator, given_nodes, given_edges)
    of_nodes = {
        "id": id,
        "features": features,
        "standardize": standardize,
        "min_max": min_max,
        "categorical": categorical,
        "impute": node_impute if given_nodes else None,
        "impute_indicator": node_indicator if given_nodes else False,
        "label": label,
        "value": value,
        "num_classes": num_classes,
        "split": split,
        "shares": shares,
        "node_time": node_time,
    }
    of_edges = {
        "src": src,
        "dst": dst,
        "weight": weight,
        "time": time,
        "edge_features": edge_features,
        "edge_impute": edge_impute if edge_features is not None else None,
        "edge_impute_indicator": edge_indicator if edge_features is not None else False,
        "edge_label": edge_label,
        "edge_value": edge_value,
        "edge_split": edge_split,
    }
    node_columns = columns_by_type(
        of_nodes, {of: of for of, table in given_nodes.items() if table is not None}, "node type"
    )
    edge_columns = columns_by_type(of_edges, {of: edge_name(of) for of in given_edges}, "edge type")
    options = {
        "num_nodes": _numbers(num_nodes),
        "ids": ids,
        "symmetrize": symmetrize,
        "reverse": reverse,
        "coalesce": None if coalesce is None else str(coalesce).lower(),
        "memory": memory,
        "force": force,
    }
    with open_tables(path, force) as tables:
        schema = {
            "nodes": [
                {"node_type": of}
                if table is None
                else node_table(of, tables.add("nodes" if of == PLAIN else of, table), node_columns[of])
                for of, table in given_nodes.items()
            ],
            "edges": [
                _edge_table(of, tables.add("edges" if of == PLAIN_EDGES else "-".join(of), table), edge_columns[of])
                for of, table in given_edges.items()
            ],
        }
        return tables.imported(schema, path, options, quiet)


class Tables:
    """Tables beside a dataset that is to be made of them."""

    def __init__(self, inner: _gnarl.Tables) -> None:
        self._inner = inner
        self._files = {"schema.json"}
        self._left_out: dict[str, dict[str, str]] = {}
        self.folder = inner.path

    def add(self, name: str, table: Any) -> str:
        """The file of a table, which is written unless it is one."""
        if isinstance(table, (str, os.PathLike)):
            return os.path.abspath(table)
        file = self.file(name)
        self.write(file, table)
        return file

    def file(self, name: str) -> str:
        """The name of a new file, which messages tell."""
        file = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
        while file in self._files:
            file += "_"
        self._files.add(file)
        return file

    def write(
        self, name: str, table: Any, id: str | None = None, links: Sequence[tuple[str, str]] = ()
    ) -> list[tuple[str, str]]:
        """Writes a table, and one of each of its links; returns its columns and their kinds."""
        if not hasattr(table, "__arrow_c_stream__"):
            hint = (
                "collect() it first" if hasattr(table, "collect") else "expected a table of pandas, Polars or PyArrow"
            )
            raise UsageError(f"{name}: {type(table).__name__} has no Arrow stream", hint)
        columns = self._inner.write(name, table, id, list(links))
        index = next((column for column, _ in columns if column.startswith("__index_level_")), None)
        if index is not None and id is None and "id" not in dict(columns):
            hint = 'reset_index(names="id") makes it a column, reset_index(drop=True) leaves it out'
            raise UsageError(f"{name}: the index of the data frame has no name", hint)
        self._left_out[name] = {column: kind for column, kind in columns if kind == "other"}
        return columns

    def imported(
        self, schema: Mapping[str, Any], path: str | os.PathLike[str], options: Mapping[str, Any], quiet: bool
    ) -> Dataset:
        """The dataset of the tables that a schema lists."""
        (self.folder / "schema.json").write_text(json.dumps(schema, default=_plain), encoding="utf-8")
        words = _words({"out": os.path.abspath(path), **options})
        try:
            # Where files have no folder messages name tables alone.
            _run_command(["import", "schema", "schema.json", *words], quiet=quiet, folder=self.folder)
        except Error as error:
            for name, columns in self._left_out.items():
                for column in columns:
                    if error.message.endswith(f"{name}: no column {column!r}"):
                        told = f"{name}: column {column!r} has a type that is not read"
                        raise UsageError(told, "convert it to numbers, dates, strings or lists of numbers") from None
            raise
        return Dataset(path)


@contextmanager
def open_tables(path: str | os.PathLike[str], force: bool) -> Iterator[Tables]:
    """A folder of tables beside ``path``, which is removed in the end."""
    inner = _gnarl.Tables(path, force)
    try:
        yield Tables(inner)
    finally:
        inner.close()


def _by_type(edges: Any, nodes: Any) -> tuple[dict[str, Any], dict[EdgeType, Any]]:
    if isinstance(edges, Mapping):
        if not edges:
            raise UsageError("edges are empty", "expected a table for each edge type")
        for of in edges:
            if len(edge_name(of).split(":")) != 3:
                raise UsageError(f"edge type {of!r}", "expected (source, relation, destination)")
        if nodes is not None and not isinstance(nodes, Mapping):
            raise UsageError("nodes of a heterogeneous graph", "expected a mapping by node type")
        triples = {tuple(edge_name(of).split(":")): table for of, table in edges.items()}
        return dict(nodes or {}), triples  # type: ignore[return-value]
    if isinstance(nodes, Mapping):
        raise UsageError("nodes by type beside one table of edges", "expected a mapping by edge type, too")
    return {} if nodes is None else {PLAIN: nodes}, {PLAIN_EDGES: edges}


def _by_kind(argument: str, given: Any, nodes: Mapping[str, Any], edges: Mapping[EdgeType, Any]) -> tuple[Any, Any]:
    """An argument of nodes and of edges alike: a mapping names types of both."""
    if not isinstance(given, Mapping):
        return given, given
    of_edges = {edge_name(of): of for of in edges}
    names = {key: edge_name(key) if isinstance(key, tuple) else key for key in given}
    unknown = [name for name in names.values() if name not in nodes and name not in of_edges]
    if unknown:
        known = ", ".join([*nodes, *of_edges])
        raise UsageError(f"{argument}: no type {unknown[0]!r} with a table", f"there are: {known}")
    return (
        {key: value for key, value in given.items() if names[key] in nodes},
        {key: value for key, value in given.items() if names[key] in of_edges},
    )


def columns_by_type(asked: Mapping[str, Any], types: Mapping[Any, str], what: str) -> dict[Any, dict[str, Any]]:
    """The arguments of each type."""
    found: dict[Any, dict[str, Any]] = {of: {} for of in types}
    named = {name: of for of, name in types.items()}
    for argument, value in asked.items():
        if not isinstance(value, Mapping):
            for of in types:
                found[of][argument] = value
            continue
        for key, one in value.items():
            name = edge_name(key) if isinstance(key, tuple) else key
            if name not in named:
                known = ", ".join(map(str, named)) or "none"
                raise UsageError(f"{argument}: no {what} {name!r} with a table", f"there are: {known}")
            found[named[name]][argument] = one
    if not types:
        given = [
            name
            for name, value in asked.items()
            if value is not None and value is not False and not (isinstance(value, dict) and not value)
        ]
        if given:
            raise UsageError(f"{given[0]} is given without a table of nodes")
    return found


def node_table(of: str, file: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    table = {
        "node_type": of,
        "files": file,
        "node_id_col": columns.get("id"),
        "time_col": columns.get("node_time"),
        "split_col": columns.get("split"),
        "num_classes": columns.get("num_classes"),
        "features": _features(columns, ("features", "standardize", "min_max", "categorical"), "impute"),
        "labels": _labels(columns, "label", "value", f"nodes of {of}"),
    }
    return {key: value for key, value in table.items() if value is not None}


def _edge_table(of: EdgeType, file: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    table = {
        "relation": list(of),
        "files": file,
        "source_id_col": columns.get("src", "src"),
        "dest_id_col": columns.get("dst", "dst"),
        "weight_col": columns.get("weight"),
        "time_col": columns.get("time"),
        "split_col": columns.get("edge_split"),
        "features": _features(columns, ("edge_features",), "edge_impute"),
        "labels": _labels(columns, "edge_label", "edge_value", f"edges {edge_name(of)}"),
    }
    return {key: value for key, value in table.items() if value is not None}


def _features(columns: Mapping[str, Any], arguments: Sequence[str], impute: str) -> list[dict[str, Any]]:
    made = []
    for argument in arguments:
        names = columns.get(argument)
        for name in [] if names is None else [names] if isinstance(names, str) else names:
            if not isinstance(name, str):
                raise UsageError(f"{argument}: {name!r} is no name of a column", "expected texts")
            feature: dict[str, Any] = {"feature_col": name}
            if _TRANSFORMS[argument] is not None:
                feature["transform"] = {"name": _TRANSFORMS[argument]}
            if columns.get(impute) is not None and argument != "categorical":
                feature["impute"] = columns[impute]
                feature["impute_indicator"] = bool(columns.get(f"{impute}_indicator"))
            made.append(feature)
    return made


def _labels(columns: Mapping[str, Any], label: str, value: str, what: str) -> list[dict[str, Any]] | None:
    names = [columns.get(name) for name in (label, value)]
    shares = columns.get("shares")
    if shares is not None and (isinstance(shares, (int, float, str)) or len(shares) != 3):
        raise UsageError(f"shares of {what} are {shares!r}", "expected three numbers: train, valid, test")
    if shares is not None and not any(names):
        names[0] = "label"
    if all(names):
        raise UsageError(f"{what} have both {label} and {value}", "there is one task")
    for name, task in zip(names, ("classification", "regression"), strict=True):
        if name is not None:
            known = {"label_col": name, "task_type": task}
            return [known if shares is None else known | {"split_pct": list(shares)}]
    return None


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise UsageError(f"{value!r} is of type {type(value).__name__}", "expected a name or a number")


def _numbers(num_nodes: Any) -> list[str] | None:
    if num_nodes is None:
        return None
    if isinstance(num_nodes, Mapping):
        return [f"{of}={count}" for of, count in num_nodes.items()]
    return [str(num_nodes)]
