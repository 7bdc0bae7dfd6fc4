"""GCN by PyG's ``GCNConv``, SGC, and the models whose dense layers come before all propagation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.utils import softmax

from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._steps import Dense, stack
from gnarl.pyg._module._weights import Weights, fill


class Gcn(torch.nn.Module):
    """``GCNConv`` over edges that are normalized as gnarl does: its in-degrees count edges, not weights."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        weight = weights.take("weight")
        self.conv = GCNConv(*weight.shape, add_self_loops=False, normalize=False)
        fill(self.conv.lin.weight, weight.T)
        fill(self.conv.bias, weights.take("bias").view(-1))

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """The rows of all nodes."""
        index, weight = edges.of_gcn
        return self.conv(x, index, weight.to(x.dtype))


def propagate(x: Tensor, edges: Edges) -> Tensor:
    """One propagation by GCN's normalization."""
    index, weight = edges.of_gcn
    looped = Edges(index, edges.num_src, edges.num_dst)
    return looped.sum(x, weight)


class Sgc(torch.nn.Module):
    """A propagation of SGC, and after the last one the linear map."""

    def __init__(self, linear: torch.nn.Linear | None) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """The rows of all nodes."""
        mixed = propagate(x, edges)
        return mixed if self.linear is None else self.linear(mixed)


class Coefficients(torch.nn.Module):
    """Attention of a decoupled GAT: the mean over heads, from the output of the dense layers."""

    def __init__(self, model: dict[str, Any], weights: Weights) -> None:
        super().__init__()
        self.attention = weights.parameter("attention")
        self.loops: bool = model["self_loops"]
        self.slope: float = model["negative_slope"]
        self.dropout: float = model["attention_dropout"]

    def forward(self, x: Tensor, first: Tensor, edges: Edges) -> Tensor:
        """The rows of ``x`` propagated by coefficients of ``first``."""
        if self.loops:
            edges = edges.with_loops
        of_source, of_destination = (first @ self.attention).chunk(2, dim=1)
        scores = F.leaky_relu(of_source[edges.src] + of_destination[edges.dst], self.slope)
        found = softmax(scores, edges.dst, num_nodes=edges.num_dst)
        found = F.dropout(found, self.dropout, self.training)
        return edges.sum(x, found.mean(dim=1))


class Propagation(torch.nn.Module):
    """``(1 - α) P H + α H⁰``; the first one computes H⁰ by the dense layers, all but the last pass it on beside H."""

    def __init__(
        self, dense: list[torch.nn.Module], attention: Coefficients | None, teleport: float, last: bool
    ) -> None:
        super().__init__()
        self.dense = torch.nn.ModuleList(dense)
        self.attention = attention
        self.teleport = teleport
        self.last = last

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """The rows of all nodes: H, and H⁰ beside it unless it is the last."""
        if len(self.dense):
            for layer in self.dense:
                x = layer(x, edges)
            first = x
        else:
            x, first = x.chunk(2, dim=1)
        passed = propagate(x, edges) if self.attention is None else self.attention(x, first, edges)
        y = (1 - self.teleport) * passed + self.teleport * first
        return y if self.last else torch.cat([y, first], dim=1)


def gcn(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The layers of GCN."""
    return stack(model, lambda i: Gcn(weights.within(f"layer{i}.")), drops_input=True)


def sgc(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The propagations of SGC."""
    between: list[torch.nn.Module] = [Sgc(None) for _ in range(model["layers"] - 1)]
    return [*between, Sgc(weights.linear("weight", "bias"))]


def decoupled(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The propagations of a decoupled GCN or GAT."""
    attends = model["name"] == "gat"
    dense = stack(
        model,
        lambda i: Dense(weights.linear(f"layer{i}.weight", f"layer{i}.bias")),
        of_paper="elu" if attends else "relu",
        drops_input=True,
    )
    attention = Coefficients(model, weights) if attends else None
    times = model.get("propagations") or model["layers"]
    return [Propagation(dense if i == 0 else [], attention, model["teleport"], i + 1 == times) for i in range(times)]
