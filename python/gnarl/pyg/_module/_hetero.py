"""A layer of its own for each edge type: PyG's ``SAGEConv``, ``GATConv`` or ``GINConv``."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch

from gnarl._errors import UsageError
from gnarl.pyg._module._attention import Gat
from gnarl.pyg._module._gin import Gin
from gnarl.pyg._module._sage import Sage
from gnarl.pyg._module._types import EdgesOf, Rows, Schema, stack
from gnarl.pyg._module._weights import Weights


class Hetero(torch.nn.Module):
    """The results of the layers of all edge types into a node type, combined; a linear map where there is none."""

    def __init__(self, model: dict[str, Any], schema: Schema, weights: Weights) -> None:
        super().__init__()
        self._schema = schema
        self.across: str = model["across"]
        self.relations = torch.nn.ModuleList(
            [_layer(model, weights.within(f"{name}.layer0.")) for name in schema.edge_types]
        )
        self.own = torch.nn.ModuleList(
            [
                torch.nn.Identity() if schema.into(of) else weights.linear(f"{of}.self.weight", f"{of}.self.bias")
                for of in schema.node_types
            ]
        )

    def forward(self, x: Rows, edges: EdgesOf) -> Rows:
        """The rows of all node types."""
        found = {}
        for number, of in enumerate(self._schema.node_types):
            into = self._schema.into(of)
            if not into:
                found[of] = self.own[number](x[of])
                continue
            heard = [
                self.relations[r]((x[self._schema.source(r)], x[of]), edges[self._schema.edge_types[r]]) for r in into
            ]
            all_of_them = reduce(torch.maximum if self.across == "max" else torch.add, heard)
            found[of] = all_of_them / len(heard) if self.across == "mean" else all_of_them
        return found


def _layer(model: dict[str, Any], weights: Weights) -> torch.nn.Module:
    kind = model["relation_layer"]
    if kind == "sage":
        return Sage(weights, model["aggregator"])
    if kind == "gat":
        # Edges join two node types mostly, where a loop has no meaning.
        return Gat({**model, "self_loops": False}, weights, joins=False)
    if kind == "gin":
        return Gin(weights)
    raise UsageError(f"model.relation_layer = {kind!r} has no counterpart here", "known: sage, gat, gin")


def hetero(model: dict[str, Any], schema: Schema, weights: Weights) -> list[torch.nn.Module]:
    """The layers of a model with a layer for each edge type."""
    return stack(model, lambda i: Hetero(model, schema, weights.within(f"layer{i}.")))
