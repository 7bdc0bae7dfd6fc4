"""Heterogeneous temporal graphs of related tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gnarl._dataset import Dataset
from gnarl._errors import Error, UsageError
from gnarl._tables import Tables, columns_by_type, node_table, open_tables

#: The column of row numbers, of tables without a primary key.
_ROW = "__row__"
#: Arguments of features by the kinds of columns, where none are named.
_BY_KIND = {
    "number": "standardize",
    "date": "standardize",
    "boolean": "features",
    "list": "features",
    "category": "categorical",
}


def from_relational(
    path: str | os.PathLike[str],
    tables: Mapping[str, Any],
    keys: Mapping[str, Mapping[str, str | None]] | None = None,
    time: Mapping[str, str] | None = None,
    *,
    features: Any = None,
    standardize: Any = None,
    min_max: Any = None,
    categorical: Any = None,
    impute: Any = "mean",
    impute_indicator: bool = True,
    ids: str | None = None,
    label: Mapping[str, str] | None = None,
    value: Mapping[str, str] | None = None,
    num_classes: Mapping[str, int] | None = None,
    split: Mapping[str, str] | None = None,
    shares: Mapping[str, Any] | None = None,
    memory: int = 1 << 30,
    force: bool = False,
    quiet: bool = False,
) -> Dataset:
    """Writes a graph of related tables, and opens it: their rows are nodes, their foreign keys edges.

    Each table is a node type, and each foreign key an edge type ``(table, key, other table)``, with its reverse
    ``(other table, rev_key, table)``. Rows whose key is null have no such edge. Rows have the times of their tables, so
    that ``time_attr="time"`` samples rows no later than a seed.

    Args:
        path: The folder to make.
        tables: Tables by name, as :func:`gnarl.from_tables` takes them, but for paths. Tables of RelBench have their keys and times with
            them (``df``, ``pkey_col``, ``fkey_col_to_pkey_table``, ``time_col``).
        keys: Of each table its columns of keys: the name of the table that a foreign key points to, None for the primary
            key: ``{"orders": {"order_id": None, "customer": "customers"}}``.
        time: Column of times of tables that have any: integers, dates or timestamps.
        features: Columns that are features as they are, by table. A table of which neither ``features``, ``standardize``,
            ``min_max`` nor ``categorical`` names columns has all of its numbers and dates (standardized), booleans and
            lists of numbers (as they are) and categories (a feature for each); texts, columns without values, lists of
            several lengths, and columns of more than 256 categories are left out. An empty list stands for no features.
        standardize: Columns that become features of mean 0 and deviation 1, by table.
        min_max: Columns that become features from 0 to 1, by table.
        categorical: Columns of categories, by table.
        impute: ``"mean"``, ``"median"`` or a number in place of missing values of features; None refuses these.
        impute_indicator: Adds a feature that marks them.
        ids: ``"string"`` where the same keys are integers in one table and texts in another.
        label: Column of classes, by table; by default ``label``, if there.
        value: Column of numbers to learn, by table.
        num_classes: Number of classes, by table.
        split: Column that names the split of each row, by table; by default ``split``, if there.
        shares: Instead shares of train, valid and test, by table.
        memory: Bytes that the import may take, beside the tables.
        force: Replace a dataset that is there.
        quiet: No log on ``sys.stderr``.

    Raises:
        UsageError: If a table or column does not exist.
        CommandError: If a value is invalid, or a key has no row in the table that it points to.
    """
    for argument, given in (("keys", keys), ("time", time)):
        _known(argument, {} if given is None else given, tables)
    tables, keys, time = _of_relbench(tables, dict(keys or {}), dict(time or {}))
    primary = _check(tables, keys)
    _known("time", time, tables)
    arguments = {
        "features": features,
        "standardize": standardize,
        "min_max": min_max,
        "categorical": categorical,
        "impute": impute,
        "impute_indicator": impute_indicator,
        "label": label,
        "value": value,
        "num_classes": num_classes,
        "split": split,
        "shares": shares,
        "node_time": time,
    }
    columns = columns_by_type(arguments, {name: name for name in tables}, "table")
    with open_tables(path, force) as written:
        schema: dict[str, Any] = {"nodes": [], "edges": []}
        for name, table in tables.items():
            links = {column: other for column, other in keys.get(name, {}).items() if other is not None}
            _add(written, schema, name, table, primary.get(name), links, columns[name])
        try:
            return written.imported(
                schema, path, {"reverse": True, "ids": ids, "memory": memory, "force": force}, quiet
            )
        except Error as error:
            if any(f"{edges['files']}: row " in error.message for edges in schema["edges"]) and error.hint is None:
                error.hint = "rows of a key are counted among those that have one"
            raise


def _add(
    written: Tables,
    schema: dict[str, Any],
    name: str,
    table: Any,
    primary: str | None,
    links: Mapping[str, str],
    asked: dict[str, Any],
) -> None:
    """Writes a table and its links, and lists them."""
    file = written.file(name)
    files = {column: written.file(f"{name}.{column}") for column in links}
    found = written.write(file, table, primary, list(files.items()))
    # Columns of these names have their role unasked.
    used = {
        "id",
        "label",
        "split",
        primary,
        *links,
        *(asked.get(of) for of in ("label", "value", "split", "node_time")),
    }
    if all(asked.get(of) is None for of in set(_BY_KIND.values()) | {"min_max"}):
        for column, kind in found:
            if kind in _BY_KIND and column not in used:
                asked.setdefault(_BY_KIND[kind], None)
                asked[_BY_KIND[kind]] = [*(asked[_BY_KIND[kind]] or []), column]
    # Rows of a table without a key are told by their numbers where there are links.
    id = primary if primary is not None or not links else _ROW
    schema["nodes"].append(node_table(name, file, asked | {"id": id}))
    for column, other in links.items():
        edges = {
            "relation": [name, column, other],
            "files": files[column],
            "source_id_col": "src",
            "dest_id_col": "dst",
        }
        schema["edges"].append(edges)


def _of_relbench(
    tables: Mapping[str, Any], keys: dict[str, Mapping[str, str | None]], time: dict[str, str]
) -> tuple[dict[str, Any], dict[str, Mapping[str, str | None]], dict[str, str]]:
    """Tables, keys and times, of which tables of RelBench have theirs."""
    plain = {}
    for name, table in tables.items():
        if not hasattr(table, "fkey_col_to_pkey_table"):
            plain[name] = table
            continue
        plain[name] = table.df
        own: dict[str, str | None] = dict(table.fkey_col_to_pkey_table)
        if table.pkey_col is not None:
            own[table.pkey_col] = None
        keys.setdefault(name, own)
        if table.time_col is not None:
            time.setdefault(name, table.time_col)
    return plain, keys, time


def _check(tables: Mapping[str, Any], keys: Mapping[str, Mapping[str, str | None]]) -> dict[str, str]:
    """The primary key of each table that has one."""
    _known("keys", keys, tables)
    for name, columns in keys.items():
        if not isinstance(columns, Mapping) or not all(isinstance(column, str) for column in columns):
            hint = f'expected names of columns: {{"{name}": {{"id": None, "other": "table"}}}}; a key is one column'
            raise UsageError(f"keys of {name}", hint)
        if any(":" in column or "/" in column for column, other in columns.items() if other is not None):
            raise UsageError(f"keys of {name}: foreign keys name edge types", "rename columns with ':' or '/'")
    primary: dict[str, str] = {}
    for name, columns in keys.items():
        for column, other in columns.items():
            if other is None and primary.setdefault(name, column) != column:
                raise UsageError(f"keys: {name} has two primary keys, {primary[name]!r} and {column!r}")
    for name, columns in keys.items():
        for column, other in columns.items():
            if other is not None and other not in tables:
                raise UsageError(f"keys: {name}.{column} points to the unknown table {other!r}", _there(tables))
            if other is not None and other not in primary:
                hint = f'keys={{"{other}": {{"…": None}}}} names it'
                raise UsageError(f"keys: {name}.{column} points to {other}, which has no primary key", hint)
    if not any(other is not None for columns in keys.values() for other in columns.values()):
        raise UsageError("keys: no table has a foreign key", "a graph without edges cannot be written")
    return primary


def _known(argument: str, given: Any, tables: Mapping[str, Any]) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f"{argument} is a {type(given).__name__}", "expected a mapping by the name of a table")
    unknown = sorted(set(given) - set(tables))
    if unknown:
        raise UsageError(f"{argument}: unknown table {unknown[0]!r}", _there(tables))


def _there(tables: Mapping[str, Any]) -> str:
    return f"there are: {', '.join(tables)}"
