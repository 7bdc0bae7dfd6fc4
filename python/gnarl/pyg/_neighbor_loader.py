"""``NeighborLoader`` of PyTorch Geometric over a dataset on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from gnarl import _gnarl
from gnarl._dataset import Dataset, EdgeType
from gnarl._errors import UsageError
from gnarl.pyg import _arguments as arguments
from gnarl.pyg._loader import Loader


class NeighborLoader(Loader):
    """Mini-batches of sampled neighborhoods, as ``torch_geometric.loader.NeighborLoader`` gives them.

    Batches are ``Data`` or ``HeteroData`` with ``x``, ``y``, ``edge_index``, ``n_id``, ``e_id``, ``input_id``,
    ``batch_size``, ``num_sampled_nodes`` and ``num_sampled_edges``; where the dataset has them also ``edge_attr``,
    ``edge_weight`` and ``time``; ``batch`` where seeds are disjoint, and ``seed_time`` in temporal sampling. Threads prepare
    them from disk ahead of the model. Each pass over the loader is one epoch, with an order and neighbors of its own; the
    same seed gives the same batches, whatever the number of threads.

    Args:
        data: A dataset, or its folder.
        num_neighbors: In-neighbors of a node in each hop, -1 for all: a list, or one for each edge type.
        input_nodes: Nodes to make batches around: numbers, a mask, the name of a split such as ``"train"``, or None for
            all. In a heterogeneous graph the name of a type, or a pair of it and any of these.
        input_time: The time as of which each input node is seen; by default its own.
        replace: As many neighbors as asked for, each any of a node's, so that some may be there several times.
        subgraph_type: The edges of a batch: ``"directional"``, those that were drawn; ``"bidirectional"``, these and their
            reverses; or ``"induced"``, all between its nodes. The latter two leave out ``num_sampled_nodes`` and
            ``num_sampled_edges``.
        disjoint: Nodes of its own for each input node. What it draws does not depend on the others of its batch.
        temporal_strategy: ``"uniform"`` among the edges that are there, or the ``"last"`` of them.
        time_attr: ``"time"`` for neighbors no later than the input node: by the times of edges, and of nodes that have any.
        weight_attr: ``"edge_weight"`` to draw neighbors by the weights of edges.
        transform: Called with each batch; its result is given instead.
        batch_size: Nodes that a batch is made around.
        shuffle: Another order in each epoch.
        drop_last: Leave out a last batch of fewer nodes.
        pin_memory: Batches in memory that a GPU reads directly.
        seed: Seed of order and neighbors; by default that of ``generator``, or of ``torch.manual_seed``.
        rank: This process among those that share each epoch.
        world_size: Number of processes that share each epoch. Each takes ``batch_size`` nodes of every step. Without
            ``seed`` or ``generator`` the seed is 0, on which all agree.
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
        super().__init__(data, transform, pin_memory, batch_size)
        arguments.refuse(
            transform_sampler_output=transform_sampler_output,
            neighbor_sampler=neighbor_sampler,
        )
        arguments.warn_of(kwargs)
        time = arguments.rule_in_time(time_attr, temporal_strategy)
        if input_time is not None and time is None:
            raise UsageError("input_time is given without time_attr", "time_attr='time' samples in time")
        self.input_type, nodes, self._ids = arguments.input_nodes(self.data, input_nodes)
        self._examples = len(nodes)
        self._loader = _gnarl.Loader.of_nodes(
            self.data._graph,
            self.input_type,
            nodes,
            None if input_time is None else arguments.integers("input times", input_time).reshape(-1),
            **arguments.options(
                self.data,
                num_neighbors,
                rule=arguments.rule_of(sampler, weight_attr),
                disjoint=disjoint,
                time=time,
                replace=replace,
                subgraph=arguments.subgraph(self.data, subgraph_type, directed),
                batch_size=batch_size,
                shuffle=shuffle,
                drop_last=drop_last,
                seed=self._keep_seed(arguments.seed_of(seed, generator, world_size)),
                rank=rank,
                world_size=world_size,
                threads=threads,
                prefetch=prefetch,
            ),
        )

    def _add_inputs(self, data: Any, batch: Any) -> None:
        _, places, _, _, times, _ = batch
        store = data[self.input_type] if self.data.is_heterogeneous else data
        store.input_id = torch.from_numpy(places if self._ids is None else self._ids[places])
        store.batch_size = len(places)
        if times is not None:
            store.seed_time = torch.from_numpy(times)
