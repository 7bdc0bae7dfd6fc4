"""Models of homogeneous graphs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnarl._dataset import Dataset
from gnarl._errors import UsageError
from gnarl.pyg._module._attention import gat
from gnarl.pyg._module._edges import Edges
from gnarl.pyg._module._gcn import decoupled, gcn, sgc
from gnarl.pyg._module._gin import gin
from gnarl.pyg._module._sage import ngnn, sage
from gnarl.pyg._module._steps import Dense, stack
from gnarl.pyg._module._weights import Weights


def mlp(model: dict[str, Any], weights: Weights) -> list[torch.nn.Module]:
    """The layers of a perceptron."""
    return stack(model, lambda i: Dense(weights.linear(f"layer{i}.weight", f"layer{i}.bias")))


_BUILDERS: dict[str, Callable[[dict[str, Any], Weights], list[torch.nn.Module]]] = {
    "gat": gat,
    "gatv2": gat,
    "gcn": gcn,
    "gin": gin,
    "mlp": mlp,
    "ngnn": ngnn,
    "sage": sage,
    "sgc": sgc,
}


def normalized(x: Tensor, normalize: str) -> Tensor:
    """Features as the model reads them: ``dataset.normalize`` of the run."""
    if normalize == "none":
        return x
    total = x.abs().sum(dim=1, keepdim=True)
    return torch.where(total > 0, x / total.where(total > 0, torch.ones_like(total)), x)


class Homogeneous(torch.nn.Module):
    """A trained model of a homogeneous graph. Made by :func:`gnarl.pyg.module`.

    Attributes:
        config: Facts about the model, as in ``config.json`` of :meth:`gnarl.Run.save_pretrained`.
        steps: Its layers, or its propagations.
    """

    def __init__(self, config: dict[str, Any], weights: Weights) -> None:
        super().__init__()
        self.config = config
        model = config["model"]
        name = model["name"]
        if name not in _BUILDERS:
            known = ", ".join(sorted(_BUILDERS))
            raise UsageError(f"model.name = {name!r} has no counterpart in PyTorch here", f"known: {known}")
        build = decoupled if model["decoupled"] else _BUILDERS[name]
        self.steps = torch.nn.ModuleList(build(model, weights))
        self._in_dim: int = model["in_dim"]
        # Their sums depend on the degrees of sources, of whose edges a batch has a sample.
        self._needs_degrees: bool = name in ("gcn", "sgc")

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        *,
        degrees: Tensor | None = None,
        n_id: Tensor | None = None,
    ) -> Tensor:
        """The outputs for all nodes of a graph or a batch: logits, or numbers in regression.

        Args:
            x: Features as the dataset has them; the run's ``dataset.normalize`` is applied here.
            edge_index: Edges, along which messages flow.
            edge_weight: Weights of the edges; give them if the dataset of the run has any.
            edge_attr: Features of the edges, for ``model.edge_features``.
            degrees: In-degrees of the nodes in the whole graph, where ``edge_index`` is a sample: GCN and SGC normalize by
                them, and GIN scales its sums, as in gnarl's own batches. By default they are counted in ``edge_index``.
            n_id: Numbers of the nodes in the dataset, by which an LSTM orders neighbors; by default their positions.

        Raises:
            UsageError: If ``x`` has another width than the features that the model was trained on.
        """
        count = x.shape[0]
        edges = Edges(edge_index, count, count, edge_weight, edge_attr, degrees, n_id)
        x = self._read(x)
        for step in self.steps:
            x = step(x, edges)
        return x

    def layers(self, data: Dataset | str | os.PathLike[str] | None = None) -> list[Callable[[Tensor, Any], Tensor]]:
        """The layers as :func:`gnarl.pyg.infer` takes them.

        Args:
            data: The dataset of the inference, for GCN and SGC: the in-degrees of its nodes are counted.

        Raises:
            UsageError: If it is needed and not given.
        """
        degrees = self._degrees_of(data) if self._needs_degrees else None

        def layer(number: int) -> Callable[[Tensor, Any], Tensor]:
            def compute(rows: Tensor, batch: Any) -> Tensor:
                x = self._read(rows) if number == 0 else rows
                of_nodes = None if degrees is None else degrees[batch.n_id.cpu()].to(x.device)
                weight = batch.get("edge_weight")
                features = batch.get("edge_attr")
                edges = Edges(batch.edge_index, len(x), len(x), weight, features, of_nodes, batch.n_id)
                y: Tensor = self.steps[number](x, edges)
                return y[: batch.batch_size]

            return compute

        return [layer(number) for number in range(len(self.steps))]

    def _read(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self._in_dim:
            told = f"x has {x.shape[-1]} columns"
            raise UsageError(told, f"the model was trained on features of width {self._in_dim}")
        return normalized(x, self.config["normalize"])

    def _degrees_of(self, data: Any) -> Tensor:
        if data is None:
            name = self.config["model"]["name"]
            raise UsageError(f"{name} normalizes by degrees in the whole graph", "give the dataset: layers(data)")
        dataset = data if isinstance(data, Dataset) else Dataset(data)
        counts = np.bincount(dataset.edges()[1], minlength=dataset.num_nodes())
        return torch.from_numpy(counts)
