"""R-GCN, coupled and decoupled."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gnarl.pyg._module._steps import activation
from gnarl.pyg._module._types import EdgesOf, OfType, Rows, Schema, stack
from gnarl.pyg._module._weights import Weights


class Rgcn(torch.nn.Module):
    """The node's own row by a matrix, plus for each edge type the mean of neighbors by a matrix of the type.

    This is the formula of PyG's ``RGCNConv``, which takes no weights of edges, and whose mean is over all edge types
    together where pyg-lib is installed.
    """

    def __init__(self, schema: Schema, weights: Weights) -> None:
        super().__init__()
        self._schema = schema
        relations = len(schema.edge_types)
        self.bias = weights.bias("bias")
        self.coefficients = weights.parameter("coefficients") if weights.has("coefficients") else None
        self.own = self.matrices = self.bases = self.blocks = self.own_coefficients = None
        if weights.has("self.coefficients"):
            self.own_coefficients = weights.parameter("self.coefficients")
            return
        own = weights.take("self.weight")
        self.own = torch.nn.Parameter(own)
        if self.coefficients is not None:
            self.bases = torch.nn.Parameter(weights.take("bases").view(-1, *own.shape))
        elif weights.has("blocks"):
            found = weights.take("blocks")
            blocks = relations * own.shape[0] // found.shape[0]
            shape = (relations, own.shape[0] // blocks, blocks, own.shape[1] // blocks)
            self.blocks = torch.nn.Parameter(found.view(shape))
        else:
            self.matrices = torch.nn.Parameter(weights.take("weight").view(relations, *own.shape))

    def forward(self, x: Rows, edges: EdgesOf) -> Rows:
        """The rows of all node types."""
        matrices = self.matrices
        if self.bases is not None and self.coefficients is not None:
            matrices = torch.einsum("rb,bio->rio", self.coefficients, self.bases)
        found = {of: self._own(rows) + self.bias for of, rows in x.items()}
        for of in self._schema.node_types:
            for r in self._schema.into(of):
                among = edges[self._schema.edge_types[r]]
                mean = among.sum(x[self._schema.source(r)], among.shares)
                found[of] = found[of] + (self._by_parts(mean, r) if matrices is None else mean @ matrices[r])
        return found

    def _own(self, rows: Tensor) -> Tensor:
        if self.own is not None:
            return rows @ self.own
        assert self.own_coefficients is not None
        return _combined(rows, self.own_coefficients[0])

    def _by_parts(self, mean: Tensor, r: int) -> Tensor:
        if self.blocks is not None:
            split = mean.unflatten(1, (self.blocks.shape[2], -1))
            return torch.einsum("nbi,ibo->nbo", split, self.blocks[r]).flatten(1)
        assert self.coefficients is not None
        return _combined(mean, self.coefficients[r])


def _combined(rows: Tensor, coefficients: Tensor) -> Tensor:
    """The sum of the parts of each row, one for each basis, by their coefficients."""
    return torch.einsum("nbi,b->ni", rows.unflatten(1, (len(coefficients), -1)), coefficients)


class _Mixing(torch.nn.Module):
    """``(1 - α) P H + α H⁰``, P being parts of the node itself and of the mean over each edge type that it has.

    The first one computes H⁰ by the dense layers; all but the last pass it on beside H.
    """

    def __init__(
        self, model: dict[str, Any], schema: Schema, dense: list[OfType], scores: torch.nn.Parameter, last: bool
    ) -> None:
        super().__init__()
        self._schema = schema
        self.dense = torch.nn.ModuleList(dense)
        self.scores = scores
        self.activation = activation(model, "relu")
        self.teleport: float = model["teleport"]
        self.dropout: float = model["dropout"]
        self.input_dropout: float = model.get("input_dropout") or 0.0
        self.last = last

    def forward(self, x: Rows, edges: EdgesOf) -> Rows:
        """The rows of all node types: H, and H⁰ beside it unless it is the last."""
        first = self._first(x) if len(self.dense) else {of: rows.chunk(2, dim=1)[1] for of, rows in x.items()}
        now = first if len(self.dense) else {of: rows.chunk(2, dim=1)[0] for of, rows in x.items()}
        found = {}
        for of in self._schema.node_types:
            into = self._schema.into(of)
            among = [edges[self._schema.edge_types[r]] for r in into]
            scores = self.scores[[*into, -1], 0].expand(len(now[of]), -1)
            # A node has a part for itself, and for the edge types over which it has neighbors.
            lacks = torch.stack([*(one.counts == 0 for one in among), torch.zeros_like(scores[:, 0]).bool()], dim=1)
            parts = scores.masked_fill(lacks, -torch.inf).softmax(dim=1)
            passed = now[of] * parts[:, -1:]
            for column, (r, one) in enumerate(zip(into, among, strict=True)):
                mean = one.sum(now[self._schema.source(r)], one.shares)
                passed = passed + mean * parts[:, column : column + 1]
            y = (1 - self.teleport) * passed + self.teleport * first[of]
            found[of] = y if self.last else torch.cat([y, first[of]], dim=1)
        return found

    def _first(self, x: Rows) -> Rows:
        x = {of: F.dropout(rows, self.input_dropout, self.training) for of, rows in x.items()}
        for i, layer in enumerate(self.dense):
            x = layer(x)
            if i + 1 < len(self.dense):
                x = {of: F.dropout(self.activation(rows), self.dropout, self.training) for of, rows in x.items()}
        return x


def rgcn(model: dict[str, Any], schema: Schema, weights: Weights) -> list[torch.nn.Module]:
    """The layers of R-GCN."""
    return stack(model, lambda i: Rgcn(schema, weights.within(f"layer{i}.")))


def decoupled(model: dict[str, Any], schema: Schema, weights: Weights) -> list[torch.nn.Module]:
    """The propagations of a decoupled R-GCN."""
    dense = [OfType(schema, weights, f"layer{i}.weight", f"layer{i}.bias") for i in range(model["layers"])]
    scores = weights.parameter("scores")
    times = model.get("propagations") or model["layers"]
    return [_Mixing(model, schema, dense if i == 0 else [], scores, i + 1 == times) for i in range(times)]
