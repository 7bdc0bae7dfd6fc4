"""Types of the extension module, which is written in Rust: ``crates/python``."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Batches",
    "Graph",
    "Loader",
    "Sampler",
    "Tables",
    "Writer",
    "__version__",
    "after_fork",
    "before_fork",
    "run_command",
]

__version__: str

# Arrays that are returned: owned by Python, in C order and writable. Arrays that are taken must be contiguous.
_Int64Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
_Int64Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
_Float32Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
_Float32Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]
# Classes, numbers to learn, or a row for each node where several labels may hold.
_Labels: TypeAlias = _Int64Vector | _Float32Vector | _Float32Matrix
# A column that is written: a value for each node or edge, or a row of values.
_Column: TypeAlias = NDArray[np.float32 | np.float16 | np.uint8 | np.int32 | np.int64]

# Ids, features, labels, times, trees; number of seeds and of the nodes of each hop.
_BatchNodes: TypeAlias = tuple[
    _Int64Vector,
    _Float32Matrix | None,
    _Labels | None,
    _Int64Vector | None,
    _Int64Vector | None,
    list[int],
]
# Endpoints (two rows), ids (None of edges from parts), features, weights, times; number of edges of each hop.
_BatchEdges: TypeAlias = tuple[
    _Int64Matrix, _Int64Vector | None, _Float32Matrix | None, _Float32Vector | None, _Int64Vector | None, list[int]
]
# Sources, destinations, and those of negatives, as positions among the nodes of their types.
_BatchLinks: TypeAlias = tuple[_Int64Vector, _Int64Vector, _Int64Vector, _Int64Vector]
# Number of the seeds' node type, places of the seeds in the loader's list, nodes by type, edges by type, times of the
# seeds, and the edges that the batch is around.
_Batch: TypeAlias = tuple[
    int, _Int64Vector, list[_BatchNodes], list[_BatchEdges], _Int64Vector | None, _BatchLinks | None
]

class _NodeFacts(TypedDict):
    count: int
    # Values of a row, or None without features.
    features: int | None
    splits: list[str]
    labels: Literal["classes", "tasks", "values"] | None
    times: bool
    # Outputs of a model that learns the labels, or None without any.
    outputs: int | None

class _EdgeFacts(TypedDict):
    # None where parts do not tell it.
    count: int | None
    features: int | None
    # None of parts.
    symmetric: bool | None
    columns: list[str] | None

@final
class Graph:
    """A dataset on disk, mapped, or a partitioned one, of which parts may be at servers. It is pickled by its path and
    options, or by its servers alone if they describe it."""

    def __new__(
        cls,
        path: str | PathLike[str],
        servers: Sequence[str] = (),
        token_file: str | PathLike[str] | None = None,
        certificate: str | PathLike[str] | None = None,
        deadline: float = 60.0,
        cache: int | None = None,
    ) -> Graph: ...
    @staticmethod
    def connect(
        servers: Sequence[str],
        token_file: str | PathLike[str] | None = None,
        certificate: str | PathLike[str] | None = None,
        deadline: float = 60.0,
        cache: int | None = None,
        batches: bool = False,
    ) -> Graph:
        """Opens the partition of servers by their addresses alone; they make the batches of loaders if `batches`."""

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[Any, ...]]: ...
    @property
    def path(self) -> Path:
        """The folder, as an absolute path."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of a whole dataset, as runs note it."""

    @property
    def is_remote(self) -> bool:
        """True if parts are at servers."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def node_types(self) -> list[str]:
        """Names of the node types."""

    @property
    def edge_types(self) -> list[tuple[str, str, str]]:
        """Names of the edge types: source, relation, destination."""

    def node_facts(self, node_type: str) -> _NodeFacts:
        """Facts about a node type, by name."""

    def edge_facts(self, edge_type: str) -> _EdgeFacts:
        """Facts about an edge type, by name."""

    def split(self, node_type: str, name: str) -> _Int64Vector:
        """The nodes of a split."""

    def features(self, node_type: str, nodes: NDArray[np.int64]) -> _Float32Matrix | None:
        """The features of nodes, a row each, or None."""

    def labels(self, node_type: str, nodes: NDArray[np.int64]) -> _Labels | None:
        """The labels of nodes, or None."""

    def edges(self, edge_type: str) -> tuple[_Int64Vector, _Int64Vector]:
        """All edges of a type in the order of their rows: an array of sources and one of destinations."""

    def node_times(self, node_type: str, nodes: NDArray[np.int64] | None = None) -> _Int64Vector | None:
        """The times of nodes, by default of all of a type, or None."""

    def edge_features(self, edge_type: str, edges: NDArray[np.int64] | None = None) -> _Float32Matrix | None:
        """The features of edges, by default of all of a type in the order of their rows, or None."""

    def edge_weights(self, edge_type: str, edges: NDArray[np.int64] | None = None) -> _Float32Vector | None:
        """The weights of edges likewise."""

    def edge_times(self, edge_type: str, edges: NDArray[np.int64] | None = None) -> _Int64Vector | None:
        """The times of edges likewise."""

    def user_ids(self, node_type: str, nodes: NDArray[np.int64]) -> _Int64Vector | list[str]:
        """The ids that the user gave to nodes: an array of integers, or a list of texts."""

    def class_names(self, node_type: str) -> list[str] | None:
        """Names of the classes of a node type by their numbers, or None."""

    def find(self, node_type: str, ids: Sequence[str]) -> _Int64Vector:
        """The nodes that the user gave these ids, written as texts."""

@final
class Loader:
    """Makes batches around nodes of one type, or around edges."""

    @staticmethod
    def of_nodes(
        graph: Graph,
        node_type: str,
        nodes: NDArray[np.int64],
        times: NDArray[np.int64] | None = None,
        *,
        fanouts: Sequence[int],
        fanouts_of: Sequence[tuple[str, Sequence[int]]],
        rule: str,
        disjoint: bool,
        time: str | None,
        replace: bool,
        subgraph: str,
        batch_size: int,
        shuffle: bool,
        drop_last: bool,
        seed: int,
        rank: int,
        world_size: int,
        threads: int,
        prefetch: int,
        features: bool,
        labels: bool,
    ) -> Loader:
        """A loader around nodes of ``graph``, as of ``times`` in temporal sampling."""

    @staticmethod
    def of_edges(
        graph: Graph,
        edge_type: str,
        sources: NDArray[np.int64],
        destinations: NDArray[np.int64],
        times: NDArray[np.int64] | None = None,
        pairs: float | None = None,
        others: int | None = None,
        weights: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None] = (None, None),
        leave_out: tuple[str | None] | None = None,
        *,
        fanouts: Sequence[int],
        fanouts_of: Sequence[tuple[str, Sequence[int]]],
        rule: str,
        disjoint: bool,
        time: str | None,
        replace: bool,
        subgraph: str,
        batch_size: int,
        shuffle: bool,
        drop_last: bool,
        seed: int,
        rank: int,
        world_size: int,
        threads: int,
        prefetch: int,
        features: bool,
        labels: bool,
    ) -> Loader:
        """A loader around edges of ``graph``, as of ``times`` in temporal sampling: with so many pairs as negatives for each,
        or so many destinations, drawn by the weights of sources and of destinations where these are given. A batch's edges
        are left out of its neighborhood, and those of the other type the other way round, if one is named."""

    def __len__(self) -> int: ...
    def epoch(self, epoch: int) -> Batches:
        """The batches of an epoch."""

    def at(self, places: Sequence[int], epoch: int) -> _Batch:
        """The batch of the nodes at some places of the list that the loader was given."""

@final
class Batches:
    """The batches of an epoch, in order."""

    def __iter__(self) -> Batches: ...
    def __next__(self) -> _Batch: ...
    def __len__(self) -> int:
        """Number of batches that are left."""

@final
class Sampler:
    """Samples neighborhoods around given nodes."""

    def __new__(
        cls,
        graph: Graph,
        *,
        fanouts: Sequence[int],
        fanouts_of: Sequence[tuple[str, Sequence[int]]],
        rule: str,
        disjoint: bool,
        time: str | None,
        replace: bool,
        subgraph: str,
        threads: int,
    ) -> Sampler: ...
    def sample(
        self, seeds: Sequence[tuple[str, NDArray[np.int64], NDArray[np.int64] | None]], key: Sequence[int]
    ) -> _Batch:
        """The neighborhood of seeds by node type, a function of them and the words of ``key``: a batch without columns."""

@final
class Tables:
    """Tables beside the dataset that is made of them, in a folder that goes when this does."""

    def __new__(cls, out: str | PathLike[str], force: bool) -> Tables: ...
    @property
    def path(self) -> Path:
        """The folder."""

    def write(
        self, name: str, stream: object, id: str | None, links: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Writes a table by its name, and a table of each link, rows of the id and a column where that is not null; returns the
        columns and their kinds: boolean, category, date, list, number, text or other."""

    def close(self) -> None:
        """Removes the folder."""

@final
class Writer:
    """Writes a dataset, which appears in its folder when it is finished."""

    def __new__(cls, path: str | PathLike[str], num_nodes: int, force: bool) -> Writer: ...
    def node_type(self, name: str, count: int, classes: int | None) -> None:
        """Adds a type of ``count`` nodes, with so many classes if they have labels."""

    def edge_type(
        self,
        name: str,
        counts: tuple[int, int],
        sources: NDArray[np.int64],
        destinations: NDArray[np.int64],
    ) -> None:
        """Adds an edge type with the ids of its sources and destinations."""

    def node_column(self, node_type: str, name: str, values: _Column) -> None:
        """Adds a column of a node type."""

    def edge_column(self, edge_type: str, name: str, values: _Column) -> None:
        """Adds a column of an edge type."""

    def split(self, node_type: str, name: str, nodes: NDArray[np.uint64]) -> None:
        """Adds a split of a node type."""

    def finish(self, memory: int) -> None:
        """Builds the lists within so many bytes of memory, and gives the dataset its name."""

def allocator_name() -> Literal["system", "mimalloc"]:
    """The allocator of this process."""

def before_fork() -> None:
    """Lets threads that make batches stand still while the process forks."""

def after_fork() -> None:
    """Lets them go on, in the parent and in the child."""

def run_command(words: Sequence[str]) -> int:
    """Runs a command of the ``gnarl`` binary in this process, which must do nothing else; returns its exit code."""
