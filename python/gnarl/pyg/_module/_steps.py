"""Steps of a model: a layer with what comes before and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gnarl._errors import UsageError
from gnarl.pyg._module._edges import Edges

_ACTIVATIONS: dict[str, Callable[[], torch.nn.Module]] = {
    "none": torch.nn.Identity,
    "relu": torch.nn.ReLU,
    "elu": torch.nn.ELU,
    "tanh": torch.nn.Tanh,
    "sigmoid": torch.nn.Sigmoid,
}


def activation(model: dict[str, Any], of_paper: str) -> torch.nn.Module:
    """The activation between layers: ``model.activation``, or that of the model's paper.

    Raises:
        UsageError: If it is unknown.
    """
    given = model.get("activation") or of_paper
    if isinstance(given, dict) and set(given) == {"leaky-relu"}:
        return torch.nn.LeakyReLU(given["leaky-relu"])
    if not isinstance(given, str) or given not in _ACTIVATIONS:
        raise UsageError(f"model.activation = {given!r} has no counterpart here", f"known: {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[given]()


class Step(torch.nn.Module):
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

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """The rows of the destinations of ``edges``."""
        x = F.dropout(x, self.input_dropout, self.training)
        y = self.activation(self.conv(x, edges))
        return F.dropout(y, self.dropout, self.training)

    def extra_repr(self) -> str:
        """Dropout probabilities."""
        return f"dropout={self.dropout}, input_dropout={self.input_dropout}"


def stack(
    model: dict[str, Any],
    layer: Callable[[int], torch.nn.Module],
    *,
    of_paper: str = "relu",
    drops_input: bool = False,
) -> list[torch.nn.Module]:
    """``model.layers`` layers, with activation and dropout after all but the last.

    ``drops_input`` is True for models whose papers drop values of the input as well.
    """
    given = model.get("input_dropout")
    of_input = given if given is not None else (model["dropout"] if drops_input else 0.0)
    last = model["layers"] - 1
    return [
        Step(
            layer(i),
            None if i == last else activation(model, of_paper),
            0.0 if i == last else model["dropout"],
            of_input if i == 0 else 0.0,
        )
        for i in range(model["layers"])
    ]


class Dense(torch.nn.Module):
    """A linear map of each node's own row; edges play no part."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Tensor, _: Edges) -> Tensor:
        """The mapped rows."""
        return self.linear(x)
