"""GAT and GATv2: PyG's ``GATConv`` and ``GATv2Conv``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv

from gnarl._errors import UsageError
from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._steps import stack
from gnarl.pyg._module._weights import Weights, fill


def features_of(edges: Edges, width: int) -> Tensor:
    """The features of edges.

    Raises:
        UsageError: If there are none, or of another width.
    """
    if edges.features is None or edges.features.shape[-1] != width:
        found = "none" if edges.features is None else str(edges.features.shape[-1])
        raise UsageError(f"edge_attr: expected {width} features of each edge, found {found}")
    return edges.features


class Gat(torch.nn.Module):
    """``GATConv`` that adds a loop to nodes without one, and keeps those that the graph has."""

    def __init__(self, model: dict[str, Any], weights: Weights, joins: bool) -> None:
        super().__init__()
        weight = weights.take("weight")
        source = weights.take("attn_src")
        heads, width = source.shape
        edges = weights.take("edge") if weights.has("edge") else None
        self.edge_dim = None if edges is None else edges.shape[0]
        self.conv = GATConv(
            weight.shape[0],
            width,
            heads,
            concat=joins,
            negative_slope=model["negative_slope"],
            dropout=model["attention_dropout"],
            add_self_loops=False,
            edge_dim=self.edge_dim,
        )
        fill(self.conv.lin.weight, weight.T)
        fill(self.conv.att_src, source[None])
        fill(self.conv.att_dst, weights.take("attn_dst")[None])
        fill(self.conv.bias, weights.take("bias").view(-1))
        if edges is not None:
            fill(self.conv.lin_edge.weight, edges.T)
            fill(self.conv.att_edge, weights.take("attn_edge")[None])
        self.loops: bool = model["self_loops"]

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edges: Edges) -> Tensor:
        """The rows of destinations, from rows of all nodes, or of sources and destinations."""
        if self.loops:
            edges = edges.with_loops
        features = None if self.edge_dim is None else features_of(edges, self.edge_dim)
        return self.conv(x, edges.index, features)


class GatV2(torch.nn.Module):
    """``GATv2Conv`` without biases of its maps, of which gnarl has the last alone."""

    def __init__(self, model: dict[str, Any], weights: Weights, joins: bool) -> None:
        super().__init__()
        source = weights.take("source")
        scores = weights.take("attn")
        heads, width = scores.shape
        edges = weights.take("edge") if weights.has("edge") else None
        self.edge_dim = None if edges is None else edges.shape[0]
        self.conv = GATv2Conv(
            source.shape[0],
            width,
            heads,
            concat=joins,
            negative_slope=model["negative_slope"],
            dropout=model["attention_dropout"],
            add_self_loops=False,
            edge_dim=self.edge_dim,
            bias=False,
        )
        fill(self.conv.lin_l.weight, source.T)
        fill(self.conv.lin_r.weight, weights.take("destination").T)
        fill(self.conv.att, scores[None])
        if edges is not None:
            fill(self.conv.lin_edge.weight, edges.T)
        self.bias = weights.bias("bias")
        self.loops: bool = model["self_loops"]

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """The rows of all nodes."""
        if self.loops:
            edges = edges.with_loops
        features = None if self.edge_dim is None else features_of(edges, self.edge_dim)
        return self.conv(x, edges.index, features) + self.bias


def gat(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The layers of GAT or GATv2: heads side by side in hidden ones, their mean in the last."""
    kind = Gat if model["name"] == "gat" else GatV2
    last = model["layers"] - 1
    return stack(
        model,
        lambda i: kind(model, weights.within(f"layer{i}."), i != last),
        of_paper="elu",
        drops_input=True,
    )
