"""``BaseSampler`` of PyTorch Geometric over a dataset on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from gnarl import _gnarl
from gnarl._dataset import LEFT, Dataset, EdgeType
from gnarl._errors import UsageError
from gnarl.pyg import _arguments as arguments
from gnarl.pyg._batches import fill_edge_columns


class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Samples neighborhoods for PyTorch Geometric's own loaders, as their ``neighbor_sampler`` or ``node_sampler``.

    It is for those who need their classes; :class:`gnarl.pyg.NeighborLoader` is faster, since its threads prepare batches
    whole. A neighborhood is a function of the seeds in their order, ``seed`` and ``epoch``: never of the process that
    samples it, so that batches are the same for any ``num_workers``.

    Args:
        data: A dataset, or its folder.
        num_neighbors: In-neighbors of a node in each hop, -1 for all: a list, or one for each edge type.
        replace: As many neighbors as asked for, each any of a node's, so that some may be there several times.
        subgraph_type: The edges of a batch: ``"directional"``, ``"bidirectional"`` or ``"induced"``, as with
            :class:`gnarl.pyg.NeighborLoader`.
        disjoint: Nodes of its own for each seed.
        temporal_strategy: ``"uniform"`` among the edges that are there, or the ``"last"`` of them.
        time_attr: ``"time"`` for neighbors no later than the seed, whose time the loader gives (``input_time``).
        weight_attr: ``"edge_weight"`` to draw neighbors by the weights of edges.
        sampler: ``"uniform"``, ``"labor"`` or ``"exact"``.
        seed: Seed of neighbors; by default that of ``torch.manual_seed``.
        threads: Threads that order lists by time, once.
    """

    def __init__(
        self,
        data: Dataset | str | os.PathLike[str],
        num_neighbors: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        *,
        sampler: str = "uniform",
        seed: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.data = data if isinstance(data, Dataset) else Dataset(data)
        default, by_type = arguments.fan_outs(self.data, num_neighbors)
        time = arguments.rule_in_time(time_attr, temporal_strategy)
        self.seed = arguments.seed_of(seed, None, 1)
        #: The times of all nodes by type, once negatives are drawn in time.
        self._times: dict[str, Tensor] | None = None
        #: Another number gives other neighbors for the same seeds.
        self.epoch = 0
        self.disjoint = disjoint or time is not None
        threads = arguments.threads_of(threads)
        arguments.positive(threads=threads)
        self._options: dict[str, Any] = {
            "fanouts": default,
            "fanouts_of": by_type,
            "rule": arguments.rule_of(sampler, weight_attr),
            "disjoint": disjoint,
            "time": time,
            "replace": replace,
            "subgraph": arguments.subgraph(self.data, subgraph_type),
            "threads": threads,
        }
        self._made = (os.getpid(), _gnarl.Sampler(self.data._graph, **self._options))

    @property
    def _sampler(self) -> _gnarl.Sampler:
        process, sampler = self._made
        if process != os.getpid() and self.data.is_remote:
            # A process that was forked off connects anew.
            LEFT.append(sampler)
            sampler = _gnarl.Sampler(self.data._graph, **self._options)
            self._made = (os.getpid(), sampler)
        return sampler

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_made", "_times")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _times=None)
        self._made = (os.getpid(), _gnarl.Sampler(self.data._graph, **self._options))

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch, whose number decides the neighbors with the seed."""
        self.epoch = epoch

    def sample_from_nodes(self, inputs: NodeSamplerInput, **_: Any) -> SamplerOutput | HeteroSamplerOutput:
        """The neighborhood of nodes."""
        return node_sample(inputs, self._sample)

    def sample_from_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None, **_: Any
    ) -> SamplerOutput | HeteroSamplerOutput:
        """The neighborhood of the endpoints of edges, and of negatives, which PyTorch Geometric draws."""
        if (inputs.time is not None) != (self._options["time"] is not None):
            hint = "both have time_attr='time', or neither"
            raise UsageError("the loader and its sampler do not agree about time", hint)
        num_nodes: Any = {of: self.data.num_nodes(of) for of in self.data.node_types}
        times: Any = None
        if inputs.time is not None and neg_sampling is not None:
            if self._times is None:
                found = {of: self.data.times(of) for of in self.data.node_types}
                self._times = {of: torch.from_numpy(time) for of, time in found.items() if time is not None}
            times = self._times
        if not self.data.is_heterogeneous:
            of = self.data.node_type()
            num_nodes = num_nodes[of]
            times = None if times is None else times.get(of)
        return edge_sample(inputs, self._sample, num_nodes, self.disjoint, times, neg_sampling)

    @property
    def edge_permutation(self) -> None:
        """None: edges have the ids of the dataset."""

    def _sample(self, seed: Any, seed_time: Any = None, **_: Any) -> SamplerOutput | HeteroSamplerOutput:
        by_type = seed if isinstance(seed, Mapping) else {self.data.node_type(): seed}
        times = seed_time if isinstance(seed, Mapping) or seed_time is None else {self.data.node_type(): seed_time}
        seeds = [
            (
                of,
                arguments.integers("seeds", nodes).reshape(-1),
                None if times is None else arguments.integers("times of seeds", times[of]).reshape(-1),
            )
            for of, nodes in by_type.items()
        ]
        batch = self._sampler.sample(seeds, [self.seed, self.epoch])
        nodes = batch[2]
        edges = batch[3]
        if not self.data.is_heterogeneous:
            return _homogeneous(nodes[0], edges[0])
        return _heterogeneous(self.data, nodes, edges)

    def __repr__(self) -> str:
        return f"NeighborSampler({self.data!r})"


def _homogeneous(nodes: Any, edges: Any) -> SamplerOutput:
    ids, _, _, _, trees, nodes_of_hop = nodes
    ends, rows, _, _, _, edges_of_hop = edges
    ends = torch.from_numpy(ends)
    return SamplerOutput(
        node=torch.from_numpy(ids),
        row=ends[0],
        col=ends[1],
        edge=None if rows is None else torch.from_numpy(rows),
        batch=None if trees is None else torch.from_numpy(trees),
        num_sampled_nodes=nodes_of_hop or None,
        num_sampled_edges=edges_of_hop or None,
    )


def _heterogeneous(dataset: Dataset, nodes: Any, edges: Any) -> HeteroSamplerOutput:
    of_nodes = dict(zip(dataset.node_types, nodes, strict=True))
    of_edges = dict(zip(dataset.edge_types, edges, strict=True))
    ends: dict[EdgeType, Tensor] = {of: torch.from_numpy(own[0]) for of, own in of_edges.items()}
    disjoint = any(own[4] is not None for own in nodes)
    hops = any(own[5] for own in nodes)
    return HeteroSamplerOutput(
        node={of: torch.from_numpy(own[0]) for of, own in of_nodes.items()},
        row={of: own[0] for of, own in ends.items()},
        col={of: own[1] for of, own in ends.items()},
        edge={of: None if own[1] is None else torch.from_numpy(own[1]) for of, own in of_edges.items()},
        batch={of: torch.from_numpy(own[4]) for of, own in of_nodes.items()} if disjoint else None,
        num_sampled_nodes={of: own[5] for of, own in of_nodes.items()} if hops else None,
        num_sampled_edges={of: own[5] for of, own in of_edges.items()} if hops else None,
    )


class AddEdgeColumns:
    """A transform that adds the features, weights and times of sampled edges, which loaders over stores leave out."""

    def __init__(self, data: Dataset | str | os.PathLike[str]) -> None:
        self.data = data if isinstance(data, Dataset) else Dataset(data)

    def __call__(self, batch: Any) -> Any:
        """The batch with ``edge_attr``, ``edge_weight`` and ``time`` of its ``e_id``."""
        if self.data.is_heterogeneous:
            stores = [(batch[of], of) for of in batch.edge_types]
        else:
            stores = [(batch, self.data.edge_type())]
        for store, of in stores:
            if "e_id" not in store:
                if any("e_id" in other for other, _ in stores):
                    # Types with reverses have none in bidirectional subgraphs, as with PyG.
                    continue
                hint = "edges from parts have none, nor have types with reverses in bidirectional subgraphs"
                raise UsageError(f"edges {of} of the batch have no e_id", hint)
            rows = store.e_id.numpy()
            fill_edge_columns(
                store,
                self.data.edge_features(of, rows),
                self.data.edge_weights(of, rows),
                self.data.edge_times(of, rows),
            )
        return batch
