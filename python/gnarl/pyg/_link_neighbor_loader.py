"""``LinkNeighborLoader`` of PyTorch Geometric over a dataset on disk."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnarl import _gnarl
from gnarl._dataset import Dataset, EdgeType, edge_name
from gnarl._errors import UsageError
from gnarl.pyg import _arguments as arguments
from gnarl.pyg._loader import Loader


class LinkNeighborLoader(Loader):
    """Mini-batches around edges, as ``torch_geometric.loader.LinkNeighborLoader`` gives them.

    A batch has the nodes and edges that :class:`~gnarl.pyg.NeighborLoader` gives around the endpoints, and

    - without negatives, or with binary ones, ``edge_label_index`` (positions of endpoints, sources above destinations) and
      ``edge_label``: 1 and 0 for edges and negatives, or the given labels, plus one where 0 stands for negatives;
    - with triplets ``src_index``, ``dst_pos_index`` and ``dst_neg_index``.

    where edges have times, these are ``edge_label_time``, those of negatives too, or ``seed_time`` with triplets.

    Negatives are drawn uniformly, or by the weights of ``NegativeSampling``, whether the graph has such an edge or not; those of an edge depend on the seed, the epoch
    and the edge alone. Sampled neighborhoods may contain the edges of the batch, unless ``exclude`` leaves them out.

    Args:
        data: A dataset, or its folder.
        num_neighbors: In-neighbors of a node in each hop, -1 for all: a list, or one for each edge type.
        edge_label_index: Edges to make batches around: ``2 × edges`` integers, or None for all; in a heterogeneous graph an
            edge type, or a pair of it and any of these.
        edge_label: A label for each edge.
        edge_label_time: The time as of which each edge is seen, with ``time_attr``. Negatives are nodes that are there then.
        neg_sampling: ``"binary"`` or ``"triplet"``, a dict with ``mode`` and ``amount``, or PyTorch Geometric's
            ``NegativeSampling``.
        neg_sampling_ratio: Binary negatives, so many for each edge.
        exclude: Edges that a model is to predict, and that neighborhoods leave out: ``"self"`` the edges of the batch,
            ``"reverse"`` also those between the same nodes the other way round, in a heterogeneous graph those of the type
            ``rev_relation``; an edge type that has the reverses by another name.

    All others are those of :class:`~gnarl.pyg.NeighborLoader`. With ``disjoint`` or ``time_attr`` each endpoint and each
    negative has nodes of its own; ``batch`` tells the edge that a node belongs to.
    """

    def __init__(
        self,
        data: Dataset | str | os.PathLike[str],
        num_neighbors: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        edge_label_index: Any = None,
        edge_label: Any = None,
        edge_label_time: Any = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
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
        exclude: str | EdgeType | None = None,
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
        if (edge_label_time is None) != (time is None):
            hint = "edges are seen as of edge_label_time where time_attr='time' samples in time"
            raise UsageError("edge_label_time and time_attr need each other", hint)
        self.input_type, edges = _input_edges(self.data, edge_label_index)
        self.mode, amount, weights = _negatives(neg_sampling, neg_sampling_ratio)
        self._amount = int(amount)
        self._labels = _labels(edge_label, edges.shape[1], self.mode)
        self._examples = edges.shape[1]
        self._loader = _gnarl.Loader.of_edges(
            self.data._graph,
            edge_name(self.input_type),
            np.ascontiguousarray(edges[0]),
            np.ascontiguousarray(edges[1]),
            None if time is None else arguments.integers("times of edges", edge_label_time).reshape(-1),
            float(amount) if self.mode == "binary" else None,
            int(amount) if self.mode == "triplet" else None,
            weights,
            _left_out(self.data, self.input_type, exclude),
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
        _, places, _, _, times, links = batch
        sources, destinations, negative_sources, negative_destinations = links
        typed = self.data.is_heterogeneous
        store = data[self.input_type] if typed else data
        store.input_id = torch.from_numpy(places)
        if self.mode == "triplet":
            src = data[self.input_type[0]] if typed else data
            dst = data[self.input_type[2]] if typed else data
            src.src_index = torch.from_numpy(sources)
            dst.dst_pos_index = torch.from_numpy(destinations)
            shape = (len(places), self._amount) if self._amount > 1 else (len(places),)
            dst.dst_neg_index = torch.from_numpy(negative_destinations).view(shape)
            if times is not None:
                src.seed_time = dst.seed_time = torch.from_numpy(times)
            return
        ends = [[sources, negative_sources], [destinations, negative_destinations]]
        store.edge_label_index = torch.from_numpy(np.stack([np.concatenate(both) for both in ends]))
        store.edge_label = self._label_of(places, len(negative_sources))
        if times is not None:
            # Negatives are seen as of the edges that they belong to, round by round.
            store.edge_label_time = torch.from_numpy(np.resize(times, len(places) + len(negative_sources)))

    def _label_of(self, places: Any, negatives: int) -> Any:
        if self.mode is None:
            return None if self._labels is None else self._labels[places]
        own = torch.ones(len(places)) if self._labels is None else self._labels[places]
        return torch.cat([own, own.new_zeros((negatives, *own.shape[1:]))])


def _input_edges(dataset: Dataset, given: Any) -> tuple[EdgeType, Any]:
    """The edge type, and the edges."""
    of = None
    if isinstance(given, (tuple, list)) and len(given) == 3 and all(isinstance(name, str) for name in given):
        given = (given, None)
    if isinstance(given, (tuple, list)) and len(given) == 2 and not _is_row(given[0]):
        of, given = given
    if of is None and dataset.is_heterogeneous:
        known = ", ".join(map(edge_name, dataset.edge_types))
        hint = f"edge_label_index is a type or (type, edges); there are: {known}"
        raise UsageError("edges of a heterogeneous graph need a type", hint)
    edge_type = dataset.edge_type(of)
    if given is None:
        return edge_type, dataset.edges(edge_type)
    edges = arguments.integers("edges", given)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise UsageError(f"edges of the shape {edges.shape}", "expected 2 × edges, sources above destinations")
    return edge_type, edges


def _left_out(dataset: Dataset, edge_type: EdgeType, exclude: str | EdgeType | None) -> tuple[str | None] | None:
    """The edge type of reverses that are left out beside the batch's edges."""
    if exclude is None or exclude == "self":
        return None if exclude is None else (None,)
    if exclude != "reverse":
        reversed_type = dataset.edge_type(exclude)
    elif dataset.is_heterogeneous:
        src, relation, dst = edge_type
        own = relation.removeprefix("rev_") if relation.startswith("rev_") else f"rev_{relation}"
        reversed_type = (dst, own, src)
        if reversed_type not in dataset.edge_types:
            known = ", ".join(map(edge_name, dataset.edge_types))
            hint = f"exclude=(source, relation, destination) names the type of reverses; there are: {known}"
            raise UsageError(f"exclude='reverse': there is no edge type {edge_name(reversed_type)}", hint)
    else:
        reversed_type = edge_type
    if (reversed_type[0], reversed_type[2]) != (edge_type[2], edge_type[0]):
        raise UsageError(f"exclude: {edge_name(reversed_type)} does not lead back from {edge_name(edge_type)}")
    return (edge_name(reversed_type),)


def _is_row(value: Any) -> bool:
    """Tells a row of ids from an edge type and from nothing."""
    if value is None or isinstance(value, str):
        return False
    return not (isinstance(value, (tuple, list)) and any(isinstance(item, str) for item in value))


def _negatives(given: Any, ratio: float | None) -> tuple[str | None, float, tuple[Any, Any]]:
    """The form of negatives, their number for each edge, and the weights of sources and destinations."""
    if given is not None and ratio:
        raise UsageError("neg_sampling and neg_sampling_ratio exclude each other")
    if given is None:
        given = {"mode": "binary", "amount": ratio} if ratio else None
    if given is None:
        return None, 0, (None, None)
    if isinstance(given, str):
        given = {"mode": given}
    if not isinstance(given, Mapping):
        given = {name: getattr(given, name, None) for name in ("mode", "amount", "src_weight", "dst_weight")}
    weights = (_weights(given.get("src_weight")), _weights(given.get("dst_weight")))
    mode, amount = given.get("mode"), given.get("amount", 1)
    mode, amount = getattr(mode, "value", mode), 1 if amount is None else amount
    if not isinstance(amount, numbers.Real) or not 0 < float(amount) < 1 << 28:
        raise UsageError(f"invalid number of negatives {amount}", "expected a positive number for each edge")
    if mode not in ("binary", "triplet"):
        raise UsageError(f"unknown negative sampling {mode!r}", "there are 'binary' and 'triplet'")
    amount = float(amount)
    if mode == "triplet" and amount != int(amount):
        raise UsageError(f"{amount} negatives for each triplet", "expected a whole number")
    if mode == "triplet" and weights[0] is not None:
        raise UsageError("src_weight is of no use with triplets", "their negatives are destinations")
    return mode, amount, weights


def _weights(given: Any) -> Any:
    if given is None:
        return None
    found = given.detach().cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
    return np.ascontiguousarray(found.reshape(-1), dtype=np.float64)


def _labels(given: Any, count: int, mode: str | None) -> Any:
    if given is None:
        return None
    if mode == "triplet":
        raise UsageError("edge_label is of no use with triplets", "leave it out")
    labels = torch.as_tensor(given)
    if len(labels) != count:
        raise UsageError(f"{len(labels)} labels for {count} edges", "expected one for each")
    # Zero stands for negatives.
    return labels + 1 if mode == "binary" and len(labels) and labels.min() == 0 else labels
