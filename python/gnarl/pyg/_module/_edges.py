"""Edges that messages pass over, and the sums over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges from sources to destinations: of a graph, of a batch, or of one edge type.

    Attributes:
        index: Sources above destinations.
        num_src: Number of sources.
        num_dst: Number of destinations; in a homogeneous graph they are the sources.
        weight: A number for each edge, 1 without.
        features: A row for each edge.
        degrees: In-degree of each node in the whole graph, where ``index`` has a sample of its edges.
        order: Number by which an LSTM orders sources; by default their position.
    """

    index: Tensor
    num_src: int
    num_dst: int
    weight: Tensor | None = None
    features: Tensor | None = None
    degrees: Tensor | None = None
    order: Tensor | None = None

    @property
    def src(self) -> Tensor:
        """The source of each edge."""
        return self.index[0]

    @property
    def dst(self) -> Tensor:
        """The destination of each edge."""
        return self.index[1]

    @cached_property
    def counts(self) -> Tensor:
        """Number of in-edges of each destination here."""
        return torch.bincount(self.dst, minlength=self.num_dst)

    @cached_property
    def shares(self) -> Tensor:
        """The share of each edge in the in-edges of its destination, by weight."""
        if self.weight is None:
            return 1 / self.counts.to(torch.get_default_dtype())[self.dst]
        total = self.weight.new_zeros(self.num_dst).index_add(0, self.dst, self.weight)[self.dst]
        # Edges whose weights add up to 0 bring nothing, instead of NaN.
        return torch.where(total > 0, self.weight / total.where(total > 0, torch.ones_like(total)), 0.0)

    @cached_property
    def sampled(self) -> Tensor | None:
        """Degree over number of edges of each destination: the factor that makes a sum over a sample one over all."""
        if self.degrees is None:
            return None
        return self.degrees[: self.num_dst].to(torch.get_default_dtype()) / self.counts.clamp(min=1)

    @cached_property
    def of_sums(self) -> Tensor | None:
        """The weight of each edge in sums over all neighbors; None where all are 1."""
        if self.sampled is None:
            return self.weight
        scale = self.sampled[self.dst]
        return scale if self.weight is None else scale * self.weight

    @cached_property
    def of_gcn(self) -> tuple[Tensor, Tensor]:
        """The symmetric normalization of GCN: edges with a loop at each node, and their weights.

        In-degrees count edges, whatever their weights. Loops that the graph has remain edges beside the added ones.
        """
        counts = self.counts
        degrees = (counts if self.degrees is None else self.degrees).to(torch.get_default_dtype())
        root = (degrees + 1).rsqrt()
        weight = (degrees / counts.clamp(min=1) * root)[self.dst] * root[self.src]
        if self.weight is not None:
            weight = weight * self.weight
        # A node none of whose edges are here stands for its neighbors.
        own = torch.where(counts == 0, torch.ones_like(degrees), 1 / (degrees + 1))
        loops = torch.arange(self.num_dst, device=self.index.device)
        return torch.cat([self.index, torch.stack([loops, loops])], dim=1), torch.cat([weight, own])

    @cached_property
    def with_loops(self) -> Edges:
        """These edges, and one from each node to itself that has none, with the mean features of its in-edges."""
        missing = torch.ones(self.num_dst, dtype=torch.bool, device=self.index.device)
        missing[self.dst[self.src == self.dst]] = False
        nodes = missing.nonzero().view(-1)
        index = torch.cat([self.index, torch.stack([nodes, nodes])], dim=1)
        features = self.features
        if features is not None:
            total = features.new_zeros(self.num_dst, features.shape[1]).index_add(0, self.dst, features)
            mean = total / self.counts.clamp(min=1)[:, None]
            features = torch.cat([features, mean[nodes]])
        return replace(self, index=index, features=features, weight=None)

    def sum(self, x: Tensor, weight: Tensor | None) -> Tensor:
        """The sum of the rows of sources by edge weights, a row for each destination."""
        messages = x[self.src]
        if weight is not None:
            messages = messages * weight.to(x.dtype).view(-1, *[1] * (x.dim() - 1))
        return self.add_up(messages)

    def add_up(self, messages: Tensor) -> Tensor:
        """The sum of the rows of edges, a row for each destination."""
        return messages.new_zeros(self.num_dst, *messages.shape[1:]).index_add(0, self.dst, messages)
