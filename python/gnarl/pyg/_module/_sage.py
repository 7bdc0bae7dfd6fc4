"""GraphSAGE and NGNN: PyG's ``SAGEConv``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._steps import activation, stack
from gnarl.pyg._module._weights import Weights, fill


class Sage(torch.nn.Module):
    """``SAGEConv`` with the mean by weight where edges have weights, the largest value, or an LSTM."""

    def __init__(self, weights: Weights, aggregator: str) -> None:
        super().__init__()
        neighbors = weights.take("neigh.weight")
        pools = aggregator == "max-pool"
        self.conv = SAGEConv(*neighbors.shape, aggr="max" if pools else "mean", project=pools)
        fill(self.conv.lin_l.weight, neighbors.T)
        fill(self.conv.lin_l.bias, weights.take("bias").view(-1))
        fill(self.conv.lin_r.weight, weights.take("self.weight").T)
        if pools:
            fill(self.conv.lin.weight, weights.take("pool.weight").T)
            fill(self.conv.lin.bias, weights.take("pool.bias").view(-1))
        self.weighs = aggregator == "mean"
        self.lstm = Lstm(weights.within("lstm.")) if aggregator == "lstm" else None

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edges: Edges) -> Tensor:
        """The rows of destinations, from rows of all nodes, or of sources and destinations."""
        sources, own = x if isinstance(x, tuple) else (x, x)
        if self.lstm is not None:
            read = self.lstm(sources, edges)
        elif self.weighs and edges.weight is not None:
            read = edges.sum(sources, edges.shares)
        else:
            return self.conv((sources, own), edges.index)
        return self.conv.lin_l(read) + self.conv.lin_r(own)


class Lstm(torch.nn.Module):
    """The last state of an LSTM over the sources of each destination in ascending order; 0 without any.

    PyG's ``LSTMAggregation`` reads on over the padding behind shorter lists, which changes its results.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        recurrent = weights.take("recurrent")
        self.lstm = torch.nn.LSTM(recurrent.shape[0], recurrent.shape[0], batch_first=True)
        fill(self.lstm.weight_ih_l0, weights.take("input").T)
        fill(self.lstm.weight_hh_l0, recurrent.T)
        fill(self.lstm.bias_ih_l0, weights.take("bias").view(-1))
        # gnarl has one bias where PyTorch has the sum of two.
        torch.nn.init.zeros_(self.lstm.bias_hh_l0)
        self.lstm.bias_hh_l0.requires_grad_(False)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """The states, a row for each destination."""
        by = edges.src if edges.order is None else edges.order[edges.src]
        order = torch.argsort(by, stable=True)
        order = order[torch.argsort(edges.dst[order], stable=True)]
        counts = edges.counts
        nodes = counts.nonzero().view(-1)
        states = x.new_zeros(edges.num_dst, x.shape[1])
        if len(nodes) == 0:
            return states
        lists = torch.split(x[edges.src[order]], counts[nodes].tolist())
        packed = torch.nn.utils.rnn.pack_sequence(list(lists), enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return states.index_copy(0, nodes, last[0])


class Ngnn(torch.nn.Module):
    """A hidden layer of NGNN: a convolution, and one more linear map after its activation."""

    def __init__(self, conv: Sage, activation: torch.nn.Module, inner: torch.nn.Linear) -> None:
        super().__init__()
        self.conv = conv
        self.activation = activation
        self.inner = inner

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """The rows of all nodes."""
        return self.inner(self.activation(self.conv(x, edges)))


def sage(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The layers of GraphSAGE."""
    return stack(model, lambda i: Sage(weights.within(f"layer{i}."), model["aggregator"]))


def ngnn(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The layers of NGNN; its last is a plain convolution."""

    def layer(i: int) -> torch.nn.Module:
        of = weights.within(f"layer{i}.")
        conv = Sage(of, model["aggregator"])
        if i + 1 == model["layers"]:
            return conv
        return Ngnn(conv, activation(model, "relu"), of.linear("inner.weight", "inner.bias"))

    return stack(model, layer)
