"""Layers over several types of nodes and edges: rows are dicts by node type, edges by edge type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._steps import activation
from gnarl.pyg._module._weights import Weights

Rows = dict[str, Tensor]
EdgesOf = dict[str, Edges]


@dataclass(frozen=True)
class Schema:
    """Node types, and edge types by names, in the order of the dataset."""

    node_types: list[str]
    edge_types: list[str]

    def into(self, node_type: str) -> list[int]:
        """Numbers of the edge types that end in a node type."""
        return [r for r, name in enumerate(self.edge_types) if name.split(":")[2] == node_type]

    def source(self, edge_type: int) -> str:
        """The node type that an edge type begins in."""
        return self.edge_types[edge_type].split(":")[0]


class TypedStep(torch.nn.Module):
    """A layer between dropout of its input and activation and dropout of its output."""

    def __init__(
        self,
        conv: torch.nn.Module,
        activation: torch.nn.Module | None = None,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.conv = conv
        self.activation = activation or torch.nn.Identity()
        self.dropout = dropout
        self.input_dropout = input_dropout

    def forward(self, x: Rows, edges: EdgesOf) -> Rows:
        """The rows of all node types."""
        x = {of: F.dropout(rows, self.input_dropout, self.training) for of, rows in x.items()}
        return {
            of: F.dropout(self.activation(rows), self.dropout, self.training)
            for of, rows in self.conv(x, edges).items()
        }

    def extra_repr(self) -> str:
        """Dropout probabilities."""
        return f"dropout={self.dropout}, input_dropout={self.input_dropout}"


def stack(model: dict[str, Any], layer: Callable[[int], torch.nn.Module]) -> list[torch.nn.Module]:
    """``model.layers`` layers, with activation and dropout after all but the last."""
    last = model["layers"] - 1
    return [
        TypedStep(
            layer(i),
            None if i == last else activation(model, "relu"),
            0.0 if i == last else model["dropout"],
            (model.get("input_dropout") or 0.0) if i == 0 else 0.0,
        )
        for i in range(model["layers"])
    ]


class OfType(torch.nn.Module):
    """A linear map of each node type: weights one below the other, biases in rows."""

    def __init__(self, schema: Schema, weights: Weights, weight: str, bias: str) -> None:
        super().__init__()
        matrix = weights.take(weight)
        types = len(schema.node_types)
        self.weight = torch.nn.Parameter(matrix.view(types, -1, matrix.shape[1]))
        self.bias = weights.parameter(bias)
        self._types = schema.node_types

    def forward(self, x: Rows) -> Rows:
        """The mapped rows of all types."""
        return {of: torch.addmm(self.bias[n], x[of], self.weight[n]) for n, of in enumerate(self._types)}


class _Dense(torch.nn.Module):
    """A linear map of each node's own row, common to all types."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Rows, _: EdgesOf) -> Rows:
        """The mapped rows."""
        return {of: self.linear(rows) for of, rows in x.items()}


def mlp(model: dict[str, Any], _: Schema, weights: Weights) -> list[torch.nn.Module]:
    """The layers of a perceptron."""
    return stack(model, lambda i: _Dense(weights.linear(f"layer{i}.weight", f"layer{i}.bias")))
