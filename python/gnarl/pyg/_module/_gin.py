"""GIN: PyG's ``GINConv``, and ``GINEConv`` with features of edges."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GINConv, GINEConv

from gnarl.pyg._module._attention import features_of
from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._steps import stack
from gnarl.pyg._module._weights import Weights, fill


class Gin(torch.nn.Module):
    """``GINConv`` or ``GINEConv``; messages are multiplied by weights of edges, which PyG's layers do not take."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        inner = weights.linear("mlp0.weight", "mlp0.bias")
        outer = weights.linear("mlp1.weight", "mlp1.bias")
        network = torch.nn.Sequential(inner, torch.nn.ReLU(), outer)
        edges = weights.take("edge") if weights.has("edge") else None
        self.edge_dim = None if edges is None else edges.shape[0]
        # PyG's layers draw new weights for the network that they are given.
        state = copy.deepcopy(network.state_dict())
        if edges is None:
            self.conv = GINConv(network, train_eps=True)
        else:
            self.conv = GINEConv(network, train_eps=True, edge_dim=self.edge_dim)
            fill(self.conv.lin.weight, edges.T)
            fill(self.conv.lin.bias, weights.take("edge_bias").view(-1))
        network.load_state_dict(state)
        fill(self.conv.eps, weights.take("eps").view(-1))

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edges: Edges) -> Tensor:
        """The rows of destinations, from rows of all nodes, or of sources and destinations."""
        sources, own = x if isinstance(x, tuple) else (x, x)
        features = None if self.edge_dim is None else features_of(edges, self.edge_dim)
        weight = edges.of_sums
        if weight is None:
            return self.conv((sources, own), edges.index, *([] if features is None else [features]))
        messages = sources[edges.src]
        if features is not None:
            messages = (messages + self.conv.lin(features)).relu()
        total = edges.add_up(messages * weight.to(messages.dtype)[:, None])
        return self.conv.nn(total + (1 + self.conv.eps) * own)


def gin(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The layers of GIN."""
    return stack(model, lambda i: Gin(weights.within(f"layer{i}.")))
