"""Models of heterogeneous graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from gnarl._dataset import EdgeType, edge_name
from gnarl._errors import UsageError
from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._hetero import hetero
from gnarl.pyg._module._hgt import hgt
from gnarl.pyg._module._homogeneous import normalized
from gnarl.pyg._module._rgat import rgat
from gnarl.pyg._module._rgcn import decoupled, rgcn
from gnarl.pyg._module._types import Schema, mlp
from gnarl.pyg._module._weights import Weights

_BUILDERS: dict[str, Callable[[dict[str, Any], Schema, Weights], list[torch.nn.Module]]] = {
    "hetero": hetero,
    "hgt": hgt,
    "mlp": mlp,
    "rgat": rgat,
    "rgcn": rgcn,
}


class Heterogeneous(torch.nn.Module):
    """A trained model of a heterogeneous graph. Made by :func:`gnarl.pyg.module`.

    Attributes:
        config: Facts about the model, as in ``config.json`` of :meth:`gnarl.Run.save_pretrained`.
        steps: Its layers, or its propagations.
        inputs: For each node type the map of its features, or the embeddings of its nodes.
    """

    def __init__(self, config: dict[str, Any], weights: Weights) -> None:
        super().__init__()
        self.config = config
        model = config["model"]
        name = model["name"]
        if name not in _BUILDERS:
            known = ", ".join(sorted(_BUILDERS))
            raise UsageError(f"model.name = {name!r} has no counterpart in PyTorch here", f"known: {known}")
        self._schema = Schema([of["name"] for of in config["node_types"]], config["edge_types"])
        self.inputs = torch.nn.ModuleList([_input(weights, of) for of in self._schema.node_types])
        # As in gnarl, where the first layers of these read sums of inputs.
        maps_alone = name in ("rgcn", "rgat") and not model["decoupled"]
        self._activation = torch.nn.Identity() if maps_alone else torch.nn.ReLU()
        build = decoupled if model["decoupled"] else _BUILDERS[name]
        self.steps = torch.nn.ModuleList(build(model, self._schema, weights))
        self._passing: list[list[str]] | None = config.get("edge_types_of_steps")

    def forward(
        self,
        x_dict: Mapping[str, Tensor],
        edge_index_dict: Mapping[EdgeType, Tensor],
        edge_weight_dict: Mapping[EdgeType, Tensor] | None = None,
        n_id_dict: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """The outputs for all nodes of a graph or a batch by node type. Those of ``config["node_type"]`` were trained.

        Args:
            x_dict: Features of the node types that have any, as the dataset has them.
            edge_index_dict: Edges of each type, along which messages flow.
            edge_weight_dict: Weights of edges; give them if the dataset of the run has any.
            n_id_dict: Numbers of the nodes in the dataset, for the embeddings of types without features; by default all
                nodes in their order.

        Raises:
            UsageError: If features are missing or of another width, or an edge type is unknown.
        """
        numbers = n_id_dict or {}
        x = {
            of: self._read(layer, of, x_dict, numbers.get(of))
            for of, layer in zip(self._schema.node_types, self.inputs, strict=True)
        }
        for number in range(len(self.steps)):
            x = self._apply(number, x, (edge_index_dict, edge_weight_dict or {}), numbers)
        return x

    def layers(self) -> list[Callable[[Mapping[str, Tensor], Any], Tensor]]:
        """The layers as :func:`gnarl.pyg.infer` takes them; the first reads embeddings of types without features itself."""

        def layer(number: int) -> Callable[[Mapping[str, Tensor], Any], Tensor]:
            def compute(rows: Mapping[str, Tensor], batch: Any) -> Tensor:
                numbers = {of: batch[of].n_id for of in self._schema.node_types}
                x = dict(rows)
                if number == 0:
                    inputs = zip(self._schema.node_types, self.inputs, strict=True)
                    x = {of: self._read(read, of, rows, numbers[of]) for of, read in inputs}
                weights = {of: batch[of].edge_weight for of in batch.edge_types if "edge_weight" in batch[of]}
                return self._apply(number, x, (batch.edge_index_dict, weights), numbers)[batch.seed_type]

            return compute

        return [layer(number) for number in range(len(self.steps))]

    def _apply(
        self,
        number: int,
        x: dict[str, Tensor],
        given: tuple[Mapping[EdgeType, Tensor], Mapping[EdgeType, Tensor]],
        numbers: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """The rows of a step, over edges and their weights."""
        index = self._by_name(given[0])
        weight = self._by_name(given[1])
        some = next(iter(x.values()))
        passing = self._schema.edge_types if self._passing is None else self._passing[number]
        none = torch.empty(2, 0, dtype=torch.int64, device=some.device)
        edges: dict[str, Edges] = {}
        for name in self._schema.edge_types:
            source, _, destination = name.split(":")
            counts = (len(x[source]), len(x[destination]))
            found = name in passing and name in index
            edges[name] = Edges(
                index[name] if found else none, *counts, weight.get(name) if found else None, order=numbers.get(source)
            )
        rows: dict[str, Tensor] = self.steps[number](x, edges)
        return rows

    def _read(self, layer: torch.nn.Module, of: str, given: Mapping[str, Tensor], numbers: Tensor | None) -> Tensor:
        if isinstance(layer, torch.nn.Embedding):
            found: Tensor = layer.weight if numbers is None else layer(numbers)
            return found
        if of not in given or given[of].shape[-1] != layer.in_features:
            found_width = given[of].shape[-1] if of in given else "no"
            told = f"x_dict[{of!r}] has {found_width} columns"
            raise UsageError(told, f"the model was trained on features of width {layer.in_features}")
        mapped: Tensor = self._activation(layer(normalized(given[of], self.config["normalize"])))
        return mapped

    def _by_name(self, given: Mapping[EdgeType, Tensor]) -> dict[str, Tensor]:
        found = {edge_name(of): value for of, value in given.items()}
        unknown = sorted(set(found) - set(self._schema.edge_types))
        if unknown:
            known = ", ".join(self._schema.edge_types)
            raise UsageError(f"unknown edge type {unknown[0]!r}", f"the model was trained on: {known}")
        return found


def _input(weights: Weights, of: str) -> torch.nn.Module:
    if weights.has(f"embedding.{of}"):
        return torch.nn.Embedding.from_pretrained(weights.take(f"embedding.{of}"), freeze=False)
    return weights.linear(f"input.{of}.weight", f"input.{of}.bias")
