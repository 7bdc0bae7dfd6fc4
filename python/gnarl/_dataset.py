"""Datasets on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gnarl import _gnarl
from gnarl._errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

EdgeType = tuple[str, str, str]

#: The node type of a homogeneous graph.
PLAIN = "_N"


def edge_name(edge_type: EdgeType | str) -> str:
    """The name of an edge type in files: ``source:relation:destination``."""
    return edge_type if isinstance(edge_type, str) else ":".join(edge_type)


#: Objects with connections of another process, which this one must not close.
LEFT: list[Any] = []


class Dataset:
    """A graph on disk with the features and labels of its nodes. Nothing is read before it is needed.

    Nodes are counted from 0 within their type; :meth:`user_ids` has the ids of the input. :func:`gnarl.open` tells the
    arguments.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        servers: Sequence[str] = (),
        token_file: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        deadline: float = 60.0,
        cache: int | None = None,
    ) -> None:
        if isinstance(servers, str):
            servers = [servers]
        files = _checked(token_file, certificate, cache)
        opened = _gnarl.Graph(os.path.abspath(path), list(servers), *files, deadline, cache)
        self._opened = (os.getpid(), opened)

    @property
    def _graph(self) -> _gnarl.Graph:
        process, graph = self._opened
        if process != os.getpid() and graph.is_remote:
            # Connections and their threads are those of the process that this one was forked from.
            LEFT.append(graph)
            kind, args = graph.__reduce__()
            graph = kind(*args)
            self._opened = (os.getpid(), graph)
        return graph

    def __reduce__(self) -> tuple[Any, tuple[_gnarl.Graph]]:
        return (_of_graph, (self._graph,))

    def __repr__(self) -> str:
        nodes = ", ".join(f"{self.num_nodes(of):,} {of}" for of in self.node_types)
        if not self.is_heterogeneous:
            nodes = f"{self.num_nodes():,}"
        counts = [self._graph.edge_facts(edge_name(of))["count"] for of in self.edge_types]
        edges = "?" if None in counts else f"{sum(count or 0 for count in counts):,}"
        return f"Dataset({str(self.path)!r}: {nodes} nodes, {edges} edges)"

    @property
    def path(self) -> str:
        """The folder."""
        return os.fspath(self._graph.path)

    @property
    def is_remote(self) -> bool:
        """True if parts of it are at servers."""
        return self._graph.is_remote

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self._graph.name

    @property
    def node_types(self) -> list[str]:
        """Names of the node types."""
        return self._graph.node_types

    @property
    def edge_types(self) -> list[EdgeType]:
        """The edge types: source, relation, destination."""
        return self._graph.edge_types

    @property
    def is_heterogeneous(self) -> bool:
        """True if there are several types of nodes or edges."""
        return len(self.node_types) > 1 or len(self.edge_types) > 1

    def metadata(self) -> tuple[list[str], list[EdgeType]]:
        """The node types and edge types, as PyTorch Geometric's ``to_hetero`` takes them."""
        return self.node_types, self.edge_types

    def node_type(self, name: str | None = None) -> str:
        """The node type of that name, or the only one.

        Raises:
            UsageError: If there is none of that name, or none is given and there are several.
        """
        if name is None:
            if len(self.node_types) != 1:
                known = ", ".join(self.node_types)
                raise UsageError("a node type must be named where there are several", f"there are: {known}")
            return self.node_types[0]
        if name not in self.node_types:
            raise UsageError(f"unknown node type {name!r}", f"there are: {', '.join(self.node_types)}")
        return name

    def edge_type(self, name: EdgeType | str | None = None) -> EdgeType:
        """The edge type of that name, or the only one.

        Raises:
            UsageError: If there is none of that name, or none is given and there are several.
        """
        known = self.edge_types
        there = f"there are: {', '.join(map(edge_name, known))}"
        if name is None:
            if len(known) != 1:
                raise UsageError("an edge type must be named where there are several", there)
            return known[0]
        found = tuple(name.split(":")) if isinstance(name, str) else tuple(name)
        if found not in known:
            raise UsageError(f"unknown edge type {edge_name(name)!r}", there)
        return found

    def num_nodes(self, node_type: str | None = None) -> int:
        """Number of nodes of a type; of all types where there are several and none is named."""
        if node_type is None:
            return sum(self._graph.node_facts(of)["count"] for of in self.node_types)
        return self._graph.node_facts(self.node_type(node_type))["count"]

    def num_edges(self, edge_type: EdgeType | str | None = None) -> int:
        """Number of edges of a type; of all types where there are several and none is named."""
        if edge_type is None:
            return sum(self.num_edges(of) for of in self.edge_types)
        count = self._graph.edge_facts(edge_name(self.edge_type(edge_type)))["count"]
        if count is None:
            raise UsageError(f"{self.path}: parts with several hops of halo nodes do not tell the number of edges")
        return count

    def num_features(self, node_type: str | None = None) -> int:
        """Width of the features of a node type; 0 without any."""
        return self._graph.node_facts(self.node_type(node_type))["features"] or 0

    def num_classes(self, node_type: str | None = None) -> int:
        """Number of classes, or of labels that may hold together; 1 for numbers, 0 without labels."""
        return self._graph.node_facts(self.node_type(node_type))["outputs"] or 0

    def class_names(self, node_type: str | None = None) -> list[str] | None:
        """Names of the classes by their numbers, as an import of names or of numbers with gaps keeps them, or None."""
        return self._graph.class_names(self.node_type(node_type))

    def has_labels(self, node_type: str | None = None) -> bool:
        """True if nodes of a type have labels."""
        return self._graph.node_facts(self.node_type(node_type))["labels"] is not None

    def has_times(self, node_type: str | None = None) -> bool:
        """True if nodes of a type have times."""
        return self._graph.node_facts(self.node_type(node_type))["times"]

    def splits(self, node_type: str | None = None) -> list[str]:
        """Names of the splits of a node type."""
        return self._graph.node_facts(self.node_type(node_type))["splits"]

    def split(self, name: str, node_type: str | None = None) -> NDArray[np.int64]:
        """The nodes of a split, ascending.

        Raises:
            UsageError: If there is none of that name.
        """
        return self._graph.split(self.node_type(node_type), split_name(name))

    def mask(self, name: str, node_type: str | None = None) -> NDArray[np.bool_]:
        """True for each node of a split."""
        mask = np.zeros(self.num_nodes(self.node_type(node_type)), dtype=bool)
        mask[self.split(name, node_type)] = True
        return mask

    @property
    def train_mask(self) -> NDArray[np.bool_]:
        """True for each training node of a homogeneous graph."""
        return self.mask("train")

    @property
    def val_mask(self) -> NDArray[np.bool_]:
        """True for each validation node of a homogeneous graph."""
        return self.mask("valid")

    @property
    def test_mask(self) -> NDArray[np.bool_]:
        """True for each test node of a homogeneous graph."""
        return self.mask("test")

    def features(self, nodes: ArrayLike | None = None, node_type: str | None = None) -> NDArray[np.float32] | None:
        """The features of nodes, by default of all: ``nodes × num_features`` values, or None without any."""
        of = self.node_type(node_type)
        return self._graph.features(of, self._listed(nodes, of))

    def labels(self, nodes: ArrayLike | None = None, node_type: str | None = None) -> NDArray[Any] | None:
        """The labels of nodes, by default of all, or None without any.

        Classes are integers, -1 where there is none; labels of which several may hold are ``nodes × tasks`` values 0 and
        1; numbers are NaN where there is none.
        """
        of = self.node_type(node_type)
        return self._graph.labels(of, self._listed(nodes, of))

    def edges(self, edge_type: EdgeType | str | None = None) -> NDArray[np.int64]:
        """All edges of a type, sources above destinations. Column ``i`` is the edge with the id ``i``."""
        sources, destinations = self._graph.edges(edge_name(self.edge_type(edge_type)))
        return np.stack([sources, destinations])

    def times(self, node_type: str | None = None, nodes: ArrayLike | None = None) -> NDArray[np.int64] | None:
        """The times of nodes, by default of all of a type, or None without any."""
        of = self.node_type(node_type)
        return self._graph.node_times(of, None if nodes is None else self._listed(nodes, of))

    def edge_features(
        self, edge_type: EdgeType | str | None = None, edges: ArrayLike | None = None
    ) -> NDArray[np.float32] | None:
        """The features of edges by their ids, by default of all of a type, or None without any."""
        return self._graph.edge_features(edge_name(self.edge_type(edge_type)), _ids("edges", edges))

    def edge_weights(
        self, edge_type: EdgeType | str | None = None, edges: ArrayLike | None = None
    ) -> NDArray[np.float32] | None:
        """The weights of edges likewise."""
        return self._graph.edge_weights(edge_name(self.edge_type(edge_type)), _ids("edges", edges))

    def edge_times(
        self, edge_type: EdgeType | str | None = None, edges: ArrayLike | None = None
    ) -> NDArray[np.int64] | None:
        """The times of edges likewise."""
        return self._graph.edge_times(edge_name(self.edge_type(edge_type)), _ids("edges", edges))

    def user_ids(self, nodes: ArrayLike | None = None, node_type: str | None = None) -> NDArray[np.int64] | list[str]:
        """The ids that the input gave to nodes, by default to all."""
        of = self.node_type(node_type)
        return self._graph.user_ids(of, self._listed(nodes, of))

    def find(self, ids: Sequence[Any], node_type: str | None = None) -> NDArray[np.int64]:
        """The nodes with ids of the input.

        Raises:
            DataError: Naming the first id, counted from 1, that no node has.
        """
        listed = np.asarray(ids).reshape(-1).tolist()
        return self._graph.find(self.node_type(node_type), [str(id) for id in listed])

    def to_pyg(self) -> Any:
        """The whole dataset in memory, as ``Data`` or ``HeteroData`` of PyTorch Geometric."""
        from gnarl.pyg._convert import to_pyg

        return to_pyg(self)

    def _listed(self, nodes: ArrayLike | None, node_type: str) -> NDArray[np.int64]:
        found = _ids("nodes", nodes)
        return np.arange(self.num_nodes(node_type)) if found is None else found


def _ids(what: str, given: ArrayLike | None) -> NDArray[np.int64] | None:
    if given is None:
        return None
    found = np.asarray(given)
    if found.size and found.dtype.kind not in "iu":
        raise UsageError(f"{what} are of type {found.dtype}", "expected integers")
    return np.ascontiguousarray(found, dtype=np.int64).reshape(-1)


def split_name(name: str) -> str:
    """The name by which a split is stored."""
    return "valid" if name.lower() in ("val", "validation", "dev") else name


def _of_graph(graph: _gnarl.Graph) -> Dataset:
    dataset = Dataset.__new__(Dataset)
    dataset._opened = (os.getpid(), graph)
    return dataset


def open(
    path: str | os.PathLike[str],
    *,
    servers: Sequence[str] = (),
    token_file: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    deadline: float = 60.0,
    cache: int | None = None,
) -> Dataset:
    """Opens a dataset, or a partitioned one (``gnarl.partition``), whose parts may be at servers (``gnarl serve``).

    Batches of parts are those of the whole graph, but their edges have no ids, features and times.

    Args:
        path: The folder of the dataset, or of the partition: with ``partition.json``, maps, the catalog of nodes
            (``nodes/``), and the parts that no server has.
        servers: Addresses of servers of parts, ``"http://HOST:PORT"`` or ``"https://…"``.
        token_file: A file with the servers' token.
        certificate: The certificate to trust, a PEM file, for ``https``.
        deadline: Seconds until a server that does not reply is an error, retries included.
        cache: Bytes of memory for features that servers sent, by default 256 MiB; of a dataset that is not partitioned for
            those that are read often of files larger than memory, by default an eighth of what is free. Each process has
            as much.

    Raises:
        DataError: If there is none, or it is damaged.
        RankError: If a server does not reply in time.
        UsageError: If a part is neither there nor at a server.
    """
    return Dataset(
        path, servers=servers, token_file=token_file, certificate=certificate, deadline=deadline, cache=cache
    )


def connect(
    servers: str | Sequence[str],
    *,
    batches: bool = False,
    token_file: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    deadline: float = 60.0,
    cache: int | None = None,
) -> Dataset:
    """Opens the partitioned dataset whose parts servers have (``gnarl serve``), by their addresses alone.

    The description of the partition and the catalog of its nodes (ids, labels, splits) are fetched into a cache on this
    host, once (``GNARL_CACHE``, by default in the user's folder for caches); features and neighbors stay at the servers.
    All else is as with :func:`open`.

    Args:
        servers: An address, ``"http://HOST:PORT"`` or ``"https://…"``, or those of all servers of the parts.
        batches: True if the servers make the batches of loaders, too (``gnarl serve --batches``), each of any nodes: this
            host neither samples nor gathers, and asks them in turns, as many at a time as a loader has threads and
            workers. Batches are the same, and another server stands in for one that does not reply.
        token_file: A file with the servers' token.
        certificate: The certificate to trust, a PEM file, for ``https``.
        deadline: Seconds until a server that does not reply is an error, retries included.
        cache: Bytes of memory for features that servers sent, by default 256 MiB.

    Raises:
        RankError: If a server does not reply in time.
        UsageError: If no server has a part, they have parts of different partitions, or one makes no batches and is to.
        LimitError: If the description does not fit in the cache on disk.
    """
    addresses = [servers] if isinstance(servers, str) else list(servers)
    files = _checked(token_file, certificate, cache)
    return _of_graph(_gnarl.Graph.connect(addresses, *files, deadline, cache, batches))


def _checked(
    token_file: str | os.PathLike[str] | None, certificate: str | os.PathLike[str] | None, cache: int | None
) -> tuple[str | None, str | None]:
    """Absolute paths of files: the folder that the process works in may change."""
    if cache is not None and cache < 0:
        raise UsageError(f"invalid cache {cache}", "expected bytes, from 0")
    token, trusted = (None if file is None else os.path.abspath(file) for file in (token_file, certificate))
    return token, trusted
