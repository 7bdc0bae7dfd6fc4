"""Datasets from arrays and from objects of PyTorch Geometric."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnarl import _gnarl
from gnarl._dataset import PLAIN, Dataset, EdgeType, edge_name, split_name
from gnarl._errors import UsageError

PLAIN_EDGES: EdgeType = (PLAIN, "_E", PLAIN)
_FEATURES = (np.float32, np.float16, np.uint8)


def from_arrays(
    path: str | os.PathLike[str],
    edges: Any,
    *,
    num_nodes: int | Mapping[str, int] | None = None,
    features: Any = None,
    labels: Any = None,
    splits: Any = None,
    times: Any = None,
    edge_features: Any = None,
    edge_weights: Any = None,
    edge_times: Any = None,
    memory: int = 1 << 30,
    force: bool = False,
) -> Dataset:
    """Writes a dataset from arrays, and opens it. An edge keeps its column in ``edges`` as its id.

    Of a homogeneous graph each argument is an array; of a heterogeneous one it is a mapping, by the name of a node type
    or by an edge type ``(source, relation, destination)``.

    Args:
        path: The folder to make.
        edges: Sources above destinations, ``2 × edges`` integers, as ``edge_index`` of PyTorch Geometric.
        num_nodes: Number of nodes; by default that of features or labels, or as many as edges need.
        features: A row for each node: float32, float16 or uint8; other numbers become float32.
        labels: Integers are classes, -1 for none; float is a number to learn, NaN for none; two dimensions are labels of
            which several may hold.
        splits: Nodes by the name of their split, or a mask for each: ``{"train": nodes, "valid": mask}``.
        times: An integer for each node.
        edge_features: A row for each edge.
        edge_weights: A number for each edge.
        edge_times: An integer for each edge.
        memory: Bytes that building the lists of neighbors may take, beside the arrays.
        force: Replace a dataset that is there.

    Raises:
        DataError: If an edge ends in a node that does not exist.
        UsageError: If arrays disagree in their lengths.
    """
    if not isinstance(edges, Mapping):
        by_node = {"features": features, "labels": labels, "splits": splits, "times": times, "num_nodes": num_nodes}
        nodes = {PLAIN: {name: value for name, value in by_node.items() if value is not None}}
        of_edges = {"edges": edges, "features": edge_features, "weights": edge_weights, "times": edge_times}
        types = {PLAIN_EDGES: {name: value for name, value in of_edges.items() if value is not None}}
        return _write(path, nodes, types, memory, force)
    nodes = {}
    of_nodes: dict[str, Any] = {
        "num_nodes": num_nodes,
        "features": features,
        "labels": labels,
        "splits": splits,
        "times": times,
    }
    for name, given in of_nodes.items():
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"{name} of a heterogeneous graph", "expected a mapping by node type")
        for of, value in (given or {}).items():
            nodes.setdefault(of, {})[name] = value
    types = {_triple(of): {"edges": value} for of, value in edges.items()}
    for of in types:
        nodes.setdefault(of[0], {})
        nodes.setdefault(of[2], {})
    for name, given in (("features", edge_features), ("weights", edge_weights), ("times", edge_times)):
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"edge_{name} of a heterogeneous graph", "expected a mapping by edge type")
        for of, value in (given or {}).items():
            if _triple(of) not in types:
                raise UsageError(f"edge_{name} of {edge_name(of)}, which has no edges")
            types[_triple(of)][name] = value
    return _write(path, nodes, types, memory, force)


def from_pyg(data: Any, path: str | os.PathLike[str], *, memory: int = 1 << 30, force: bool = False) -> Dataset:
    """Writes ``Data`` or ``HeteroData`` of PyTorch Geometric as a dataset, and opens it.

    Taken are ``x``, ``y``, ``time``, masks of splits, ``edge_index``, ``edge_attr``, ``edge_weight`` and ``time`` of edges;
    an edge keeps its column in ``edge_index`` as its id. Anything else is warned of.
    """
    from gnarl.pyg._convert import parts_of_pyg

    nodes, types = parts_of_pyg(data)
    return _write(path, nodes, types, memory, force)


def _triple(of: EdgeType | str) -> EdgeType:
    found = tuple(of.split(":")) if isinstance(of, str) else tuple(of)
    if len(found) != 3:
        raise UsageError(f"{of!r} is no edge type", "edge types are (source, relation, destination)")
    return found


def _array(values: Any) -> Any:
    """An array that shares memory where it can: of tensors, too."""
    detach = getattr(values, "detach", None)
    if not callable(detach):
        return np.asarray(values)
    tensor = detach().cpu()
    # NumPy has no such type.
    return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)


def _write(
    path: str | os.PathLike[str],
    nodes: dict[str, dict[str, Any]],
    types: dict[EdgeType, dict[str, Any]],
    memory: int,
    force: bool,
) -> Dataset:
    if memory <= 0:
        raise UsageError(f"memory of {memory} bytes", "expected a positive number")
    arrays = {of: _ends(of, columns["edges"]) for of, columns in types.items()}
    counts = {of: _count(of, columns, arrays) for of, columns in nodes.items()}
    writer = _gnarl.Writer(os.fspath(path), max(counts.values(), default=0), force)
    for of, columns in nodes.items():
        _write_nodes(writer, of, counts[of], columns)
    for triple, columns in types.items():
        name = edge_name(triple)
        sources, destinations = arrays[triple]
        writer.edge_type(name, (counts[triple[0]], counts[triple[2]]), sources, destinations)
        _write_edges(writer, name, len(sources), columns)
    writer.finish(memory)
    return Dataset(path)


def _ends(of: EdgeType, edges: Any) -> tuple[Any, Any]:
    found = _array(edges)
    if found.ndim != 2 or found.shape[0] != 2 or found.dtype.kind not in "iu":
        told = f"an array of {found.dtype} with the shape {found.shape}"
        raise UsageError(f"edges of {edge_name(of)}: {told}", "expected 2 × edges integers, sources above destinations")
    ends = _as_int64(f"edges of {edge_name(of)}", found)
    return ends[0], ends[1]


def _as_int64(what: str, found: Any) -> Any:
    if found.dtype == np.uint64 and found.size and int(found.max()) >= 1 << 63:
        raise UsageError(f"{what}: {int(found.max())} exceeds 63 bits")
    return np.ascontiguousarray(found, dtype=np.int64)


def _count(of: str, columns: Mapping[str, Any], arrays: Mapping[EdgeType, tuple[Any, Any]]) -> int:
    given = columns.get("num_nodes")
    if given is not None:
        if int(given) < 0:
            raise UsageError(f"num_nodes of {of} is {given}", "expected a number from 0")
        return int(given)
    for name in ("features", "labels", "times"):
        if name in columns:
            return len(columns[name])
    largest = -1
    for (source, _, destination), (sources, destinations) in arrays.items():
        for end, ids in ((source, sources), (destination, destinations)):
            if end == of and len(ids):
                largest = max(largest, int(ids.max()))
    return largest + 1


def _rows(what: str, values: Any, count: int) -> Any:
    found = _array(values)
    rows = len(found) if found.ndim else 0
    if rows != count:
        raise UsageError(f"{what}: {rows} rows for {count}", "expected one for each, in their order")
    return found


def _matrix(what: str, values: Any, count: int) -> Any:
    found = _rows(what, values, count)
    if found.dtype.kind not in "fiub":
        raise UsageError(f"{what} are of type {found.dtype}", "expected real numbers")
    width = int(np.prod(found.shape[1:]))
    if width == 0:
        raise UsageError(f"{what} have no values", "leave them out")
    kept = found.dtype.type if found.dtype.type in _FEATURES else np.float32
    return np.ascontiguousarray(found.reshape(count, width), dtype=kept)


def _integers(what: str, values: Any, count: int) -> Any:
    found = _rows(what, values, count).reshape(-1)
    if found.dtype.kind not in "iu":
        raise UsageError(f"{what}: {found.dtype}", "expected integers")
    return _as_int64(what, found)


def _write_nodes(writer: _gnarl.Writer, of: str, count: int, columns: Mapping[str, Any]) -> None:
    labels = _labels(of, columns["labels"], count) if "labels" in columns else None
    classes = None
    if labels is not None and labels.dtype != np.float32:
        classes = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=-1)) + 1
    writer.node_type(of, count, classes)
    if labels is not None:
        writer.node_column(of, "value" if labels.dtype == np.float32 else "label", labels)
    if "features" in columns:
        writer.node_column(of, "features", _matrix(f"features of {of}", columns["features"], count))
    if "times" in columns:
        writer.node_column(of, "time", _integers(f"times of {of}", columns["times"], count))
    splits = columns.get("splits") or {}
    if not isinstance(splits, Mapping):
        raise UsageError(f"splits of {of}", "expected a mapping from names to nodes or masks")
    for name, given in splits.items():
        writer.split(of, split_name(name), _members(f"split {name} of {of}", given, count))


def _labels(of: str, given: Any, count: int) -> Any:
    """Labels as they are stored: int32 classes, float32 numbers, or uint8 where several may hold."""
    what = f"labels of {of}"
    found = _rows(what, given, count)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim == 2:
        if found.dtype.kind not in "fiub" or not np.isin(found, (0, 1)).all():
            hint = "labels of which several may hold are 0 and 1; of numbers there is one for each node"
            raise UsageError(f"{what}: an array of {found.shape} with other values than 0 and 1", hint)
        return np.ascontiguousarray(found, dtype=np.uint8)
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        told = f"{what}: an array of {found.dtype} with the shape {found.shape}"
        raise UsageError(told, "expected one for each node, or a row of 0 and 1")
    if found.dtype.kind == "f":
        return np.ascontiguousarray(found, dtype=np.float32)
    if found.size and (int(found.min()) < -1 or int(found.max()) >= 1 << 31):
        low, high = int(found.min()), int(found.max())
        raise UsageError(f"{what}: classes from {low} to {high}", "expected -1 for none, and classes below 2^31")
    return np.ascontiguousarray(found, dtype=np.int32)


def _members(what: str, given: Any, count: int) -> Any:
    """The nodes of a split, of a mask or of numbers."""
    found = _array(given)
    if found.ndim != 1:
        hint = "of several splits take one: mask[:, 0]"
        raise UsageError(f"{what}: an array of {found.shape}", f"expected one dimension; {hint}")
    if found.dtype == bool:
        found = np.flatnonzero(_rows(what, found, count))
    if found.size and (found.dtype.kind not in "iu" or int(found.min()) < 0):
        raise UsageError(what, "expected a mask, or the numbers of nodes")
    return np.ascontiguousarray(found, dtype=np.uint64)


def _write_edges(writer: _gnarl.Writer, name: str, count: int, columns: Mapping[str, Any]) -> None:
    if "features" in columns:
        writer.edge_column(name, "features", _matrix(f"features of {name}", columns["features"], count))
    if "weights" in columns:
        weights = _rows(f"weights of {name}", columns["weights"], count).reshape(-1)
        writer.edge_column(name, "weight", np.ascontiguousarray(weights, dtype=np.float32))
    if "times" in columns:
        writer.edge_column(name, "time", _integers(f"times of {name}", columns["times"], count))
