"""``NeighborLoader`` of PyTorch Geometric over a dataset on disk."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gnarl import _gnarl
from gnarl._dataset import Dataset, EdgeType, edge_name
from gnarl._errors import UsageError

#: Arguments of ``torch.utils.data.DataLoader`` that concern processes, of which there are none here.
_OF_PROCESSES = {
    "num_workers",
    "persistent_workers",
    "prefetch_factor",
    "worker_init_fn",
    "multiprocessing_context",
    "timeout",
    "filter_per_worker",
    "is_sorted",
    "in_order",
    "pin_memory_device",
    "collate_fn",
    "dataset",
}


class NeighborLoader:
    """Mini-batches of sampled neighborhoods, as ``torch_geometric.loader.NeighborLoader`` gives them.

    Batches are ``Data`` or ``HeteroData`` with ``x``, ``y``, ``edge_index``, ``n_id``, ``e_id``, ``input_id``,
    ``batch_size``, ``num_sampled_nodes`` and ``num_sampled_edges``; where the dataset has them also ``edge_attr``,
    ``edge_weight`` and ``time``. Threads prepare them from disk ahead of the model. Each pass over the loader is one epoch,
    with an order and neighbors of its own; the same seed gives the same batches, whatever the number of threads.

    Args:
        data: A dataset, or its folder.
        num_neighbors: In-neighbors of a node in each hop, -1 for all: a list, or one for each edge type.
        input_nodes: Nodes to make batches around: numbers, a mask, the name of a split such as ``"train"``, or None for
            all. In a heterogeneous graph the name of a type, or a pair of it and any of these.
        replace: Only False is supported.
        subgraph_type: Only ``"directional"`` is supported.
        disjoint: Only False is supported.
        weight_attr: ``"edge_weight"`` to draw neighbors by the weights of edges.
        transform: Called with each batch; its result is given instead.
        batch_size: Nodes that a batch is made around.
        shuffle: Another order in each epoch.
        drop_last: Leave out a last batch of fewer nodes.
        pin_memory: Batches in memory that a GPU reads directly.
        seed: Seed of order and neighbors; by default that of ``torch.manual_seed``, or of ``generator``.
        rank: This process among those that share each epoch.
        world_size: Number of processes that share each epoch. Each takes ``batch_size`` nodes of every step.
        threads: Threads that prepare batches; by default one for each processor.
        prefetch: Batches that are ready beside the one that is taken.
        sampler: ``"uniform"``, ``"labor"`` or ``"exact"``: how neighbors are drawn.
    """

    def __init__(
        self,
        data: Dataset | str | os.PathLike[str],
        num_neighbors: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        input_nodes: Any = None,
        input_time: Any = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        transform_sampler_output: Callable[[Any], Any] | None = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: Any = None,
        directed: bool = True,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        pin_memory: bool = False,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        threads: int | None = None,
        prefetch: int = 2,
        sampler: str = "uniform",
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        self.data = data if isinstance(data, Dataset) else Dataset(data)
        self.transform = transform
        self._pin = pin_memory and torch.cuda.is_available()
        _refuse(
            input_time=input_time,
            replace=replace,
            disjoint=disjoint,
            time_attr=time_attr,
            transform_sampler_output=transform_sampler_output,
            neighbor_sampler=neighbor_sampler,
        )
        if getattr(subgraph_type, "value", subgraph_type) != "directional" or not directed:
            raise UsageError(f"subgraph_type={subgraph_type!r} is not supported", "'directional' is")
        if temporal_strategy not in ("uniform", "last"):
            raise UsageError(f"unknown temporal_strategy {temporal_strategy!r}", "'uniform' and 'last' are known")
        _warn_of(kwargs)
        if weight_attr is not None:
            if sampler not in ("uniform", "weighted"):
                raise UsageError("weight_attr and sampler exclude each other")
            if weight_attr not in ("edge_weight", "weight"):
                raise UsageError(f"unknown weight_attr {weight_attr!r}", "weights of edges are 'edge_weight'")
            sampler = "weighted"
        if seed is None:
            # Processes that share an epoch must agree on it.
            of_torch = generator.initial_seed() if generator is not None else torch.initial_seed()
            seed = 0 if world_size > 1 and generator is None else of_torch
        self.input_type, nodes, self._ids = _input_nodes(self.data, input_nodes)
        default, by_type = _fan_outs(self.data, num_neighbors)
        self._loader = _gnarl.Loader(
            self.data._graph,
            self.input_type,
            nodes,
            default,
            by_type,
            sampler,
            batch_size=batch_size,
            shuffle=shuffle,
            drop_last=drop_last,
            seed=seed % 2**64,
            rank=rank,
            world_size=world_size,
            threads=threads or len(os.sched_getaffinity(0)),
            prefetch=prefetch,
            features=True,
            labels=True,
        )
        self.batch_size = batch_size
        self.epoch = 0
        self._count = len(nodes)

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return len(self._loader)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, which counts from 0: one that was left is repeated by it."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        """The batches of the next epoch."""
        batches = self._loader.epoch(self.epoch)
        self.epoch += 1
        return (self._finished(batch) for batch in batches)

    def __call__(self, index: Any) -> Any:
        """The batch around some of the input nodes, by their places among these."""
        places = [int(place) for place in index]
        count = self._count
        if any(not 0 <= place < count for place in places):
            raise IndexError(f"places are from 0 and below {count}")
        return self._finished(self._loader.at(places, self.epoch))

    def _finished(self, batch: Any) -> Any:
        data = _heterogeneous(self.data, batch) if self.data.is_heterogeneous else _homogeneous(batch)
        _, places, _, _ = batch
        store = data[self.input_type] if self.data.is_heterogeneous else data
        store.input_id = torch.from_numpy(places if self._ids is None else self._ids[places])
        store.batch_size = len(places)
        if self._pin:
            data = data.pin_memory()
        return data if self.transform is None else self.transform(data)


def _refuse(**asked: Any) -> None:
    for name, value in asked.items():
        if value is not None and value is not False:
            raise UsageError(f"{name} is not supported yet")


def _warn_of(kwargs: Mapping[str, Any]) -> None:
    unknown = sorted(set(kwargs) - _OF_PROCESSES)
    if unknown:
        hint = "processes and files need none of DataLoader's arguments but batch_size, shuffle, drop_last and pin_memory"
        raise TypeError(f"unexpected argument {unknown[0]!r}: {hint}")
    if kwargs.get("num_workers"):
        message = "num_workers is ignored: threads of this process prepare batches (threads=…)"
        warnings.warn(message, stacklevel=3)


def _input_nodes(dataset: Dataset, given: Any) -> tuple[str, Any, Any]:
    """The node type, the nodes, and the id by which each is told in batches: its place without any."""
    if dataset.is_heterogeneous:
        if isinstance(given, str) and given in dataset.node_types:
            given = (given, None)
        if not (isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str)):
            known = ", ".join(dataset.node_types)
            hint = f"input_nodes is a type or (type, nodes); there are: {known}"
            raise UsageError("input nodes of a heterogeneous graph need a type", hint)
        of, given = dataset.node_type(given[0]), given[1]
    else:
        of = dataset.node_type()
    if given is None:
        return of, np.arange(dataset.num_nodes(of)), None
    if isinstance(given, str):
        return of, dataset.split(given, of), None
    nodes = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if nodes.dtype == bool:
        if nodes.shape != (dataset.num_nodes(of),):
            raise UsageError(f"a mask of {nodes.size} for {dataset.num_nodes(of)} nodes")
        nodes = np.flatnonzero(nodes)
        return of, nodes, nodes
    if nodes.size and nodes.dtype.kind not in "iu":
        raise UsageError(f"input nodes are of type {nodes.dtype}", "expected integers or a mask")
    return of, np.ascontiguousarray(nodes.reshape(-1), dtype=np.int64), None


def _fan_outs(dataset: Dataset, given: Any) -> tuple[list[int], list[tuple[str, list[int]]]]:
    if not isinstance(given, Mapping):
        return [int(count) for count in given], []
    by_type = {edge_name(of): [int(count) for count in counts] for of, counts in given.items()}
    missing = [edge_name(of) for of in dataset.edge_types if edge_name(of) not in by_type]
    if missing:
        raise UsageError(f"num_neighbors has none for edge type {missing[0]}", "0 takes none")
    hops = max((len(counts) for counts in by_type.values()), default=0)
    return [0] * hops, list(by_type.items())


def _homogeneous(batch: Any) -> Data:
    _, _, [nodes], [edges] = batch
    data = Data()
    _fill_nodes(data, nodes)
    _fill_edges(data, edges)
    return data


def _heterogeneous(dataset: Dataset, batch: Any) -> HeteroData:
    _, _, nodes, edges = batch
    data = HeteroData()
    for of, columns in zip(dataset.node_types, nodes, strict=True):
        _fill_nodes(data[of], columns)
    for triple, columns in zip(dataset.edge_types, edges, strict=True):
        _fill_edges(data[triple], columns)
    return data


def _fill_nodes(store: Any, columns: Any) -> None:
    ids, features, labels, times, of_hop = columns
    if features is not None:
        store.x = torch.from_numpy(features)
    if labels is not None:
        store.y = torch.from_numpy(labels)
    if times is not None:
        store.time = torch.from_numpy(times)
    store.n_id = torch.from_numpy(ids)
    store.num_nodes = len(ids)
    store.num_sampled_nodes = of_hop


def _fill_edges(store: Any, columns: Any) -> None:
    ends, ids, features, weights, times, of_hop = columns
    store.edge_index = torch.from_numpy(ends)
    store.e_id = torch.from_numpy(ids)
    if features is not None:
        store.edge_attr = torch.from_numpy(features)
    if weights is not None:
        store.edge_weight = torch.from_numpy(weights)
    if times is not None:
        # In a homogeneous batch the name is taken by nodes that have times.
        key = "time" if "time" not in store else "edge_time"
        store[key] = torch.from_numpy(times)
    store.num_sampled_edges = of_hop
