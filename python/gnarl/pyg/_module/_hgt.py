"""HGT, whose output PyG's ``HGTConv`` computes with another activation and a learned skip."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import softmax

from gnarl.pyg._module._types import EdgesOf, OfType, Rows, Schema, TypedStep
from gnarl.pyg._module._weights import Weights


class Hgt(torch.nn.Module):
    """Attention by products of keys and queries; maps by node type, matrices of heads by edge type."""

    def __init__(self, model: dict[str, Any], schema: Schema, weights: Weights, last: bool) -> None:
        super().__init__()
        self._schema = schema
        self.heads: int = model["heads"]
        self.query = OfType(schema, weights, "query.weight", "query.bias")
        self.key = OfType(schema, weights, "key.weight", "key.bias")
        self.value = OfType(schema, weights, "value.weight", "value.bias")
        self.output = OfType(schema, weights, "output.weight", "output.bias")
        shape = (len(schema.edge_types), model["hidden"] // self.heads, self.heads, -1)
        self.attention = torch.nn.Parameter(weights.take("attention").view(shape))
        self.message = torch.nn.Parameter(weights.take("message").view(shape))
        self.prior = weights.parameter("prior")
        self.logits = weights.linear("logits.weight", "logits.bias") if last else None
        self.dropout: float = 0.0 if last else model["dropout"]

    def forward(self, x: Rows, edges: EdgesOf) -> Rows:
        """The rows of all node types."""
        heads = (self.heads, -1)
        query, key, value = (
            {of: rows.unflatten(1, heads) for of, rows in layer(x).items()}
            for layer in (self.query, self.key, self.value)
        )
        sums = {of: self._attended(of, query[of], key, value, edges).relu() for of in self._schema.node_types}
        found = {}
        for of, mapped in self.output(sums).items():
            y = F.dropout(mapped, self.dropout, self.training) + x[of]
            found[of] = y if self.logits is None else self.logits(y)
        return found

    def _attended(self, of: str, query: Tensor, key: Rows, value: Rows, edges: EdgesOf) -> Tensor:
        """The sum of messages of a node type, over the edges of all types together."""
        total = torch.zeros_like(query)
        into = self._schema.into(of)
        among = [edges[self._schema.edge_types[r]] for r in into]
        scores = []
        messages = []
        for r, one in zip(into, among, strict=True):
            asked = torch.einsum("nhi,iho->nho", query, self.attention[r])
            sent = torch.einsum("nhi,iho->nho", value[self._schema.source(r)], self.message[r])
            products = (asked[one.dst] * key[self._schema.source(r)][one.src]).sum(dim=2)
            scores.append(products * self.prior[r] / math.sqrt(query.shape[2]))
            messages.append(sent[one.src])
        if into:
            ends = torch.cat([one.dst for one in among])
            shares = softmax(torch.cat(scores), ends, num_nodes=len(query))
            total = total.index_add(0, ends, torch.cat(messages) * shares[:, :, None])
        return total.flatten(1)


def hgt(model: dict[str, Any], schema: Schema, weights: Weights) -> list[torch.nn.Module]:
    """The layers of HGT."""
    last = model["layers"] - 1
    return [
        TypedStep(
            Hgt(model, schema, weights.within(f"layer{i}."), i == last),
            input_dropout=(model.get("input_dropout") or 0.0) if i == 0 else 0.0,
        )
        for i in range(model["layers"])
    ]
