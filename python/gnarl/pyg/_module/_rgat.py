"""R-GAT, whose attention PyG's ``RGATConv`` computes by another formula."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import softmax

from gnarl.pyg._module._types import EdgesOf, Rows, Schema, stack
from gnarl.pyg._module._weights import Weights


class Rgat(torch.nn.Module):
    """Additive attention with a projection and score vectors of each edge type; a matrix for the node itself."""

    def __init__(self, model: dict[str, Any], schema: Schema, weights: Weights, last: bool) -> None:
        super().__init__()
        self._schema = schema
        self.heads: int = model["out_heads" if last else "heads"]
        self.joins = not last
        self.across: bool = model["softmax"] == "across"
        self.slope: float = model["negative_slope"]
        self.own = weights.parameter("self.weight")
        self.bias = weights.bias("bias")
        relations = len(schema.edge_types)
        self.weight = torch.nn.Parameter(weights.take("weight").view(relations, self.own.shape[0], -1))
        self.source = torch.nn.Parameter(weights.take("attn_src").view(relations, self.heads, -1))
        self.destination = torch.nn.Parameter(weights.take("attn_dst").view(relations, self.heads, -1))

    def forward(self, x: Rows, edges: EdgesOf) -> Rows:
        """The rows of all node types."""
        return {of: self._of(of, x, edges) for of in self._schema.node_types}

    def _of(self, of: str, x: Rows, edges: EdgesOf) -> Tensor:
        own = x[of]
        y = own @ self.own + self.bias
        into = self._schema.into(of)
        if not into:
            return y
        among = [edges[self._schema.edge_types[r]] for r in into]
        values = []
        scores = []
        for r, one in zip(into, among, strict=True):
            z = (x[self._schema.source(r)] @ self.weight[r]).unflatten(1, (self.heads, -1))
            at_end = torch.einsum(
                "nhd,hd->nh", (own @ self.weight[r]).unflatten(1, (self.heads, -1)), self.destination[r]
            )
            at_start = torch.einsum("nhd,hd->nh", z, self.source[r])
            values.append(z[one.src])
            scores.append(F.leaky_relu(at_start[one.src] + at_end[one.dst], self.slope))
        ends = [one.dst for one in among]
        if self.across:
            values, scores, ends = [torch.cat(values)], [torch.cat(scores)], [torch.cat(ends)]
        total = own.new_zeros(len(own), *values[0].shape[1:])
        for value, score, end in zip(values, scores, ends, strict=True):
            share = softmax(score, end, num_nodes=len(own))
            total = total.index_add(0, end, value * share[:, :, None])
        return y + (total.flatten(1) if self.joins else total.mean(dim=1))


def rgat(model: dict[str, Any], schema: Schema, weights: Weights) -> list[torch.nn.Module]:
    """The layers of R-GAT."""
    last = model["layers"] - 1
    return stack(model, lambda i: Rgat(model, schema, weights.within(f"layer{i}."), i == last))
