"""Tensors of a trained model on their way into modules of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gnarl._errors import DataError


class Weights:
    """Tensors by name, each of which is taken once. ``within`` names a prefix that they share."""

    def __init__(self, tensors: Mapping[str, Any], prefix: str = "", taken: set[str] | None = None) -> None:
        self._tensors = tensors
        self._prefix = prefix
        self._taken = set() if taken is None else taken

    def within(self, prefix: str) -> Weights:
        """The tensors whose names begin with a prefix."""
        return Weights(self._tensors, self._prefix + prefix, self._taken)

    def has(self, name: str) -> bool:
        """True if there is a tensor of that name."""
        return self._prefix + name in self._tensors

    def take(self, name: str) -> Tensor:
        """A copy of a tensor.

        Raises:
            DataError: If there is none.
        """
        full = self._prefix + name
        if full not in self._tensors:
            raise DataError(
                f"model.safetensors has no tensor '{full}'", "it belongs to another model than its settings"
            )
        self._taken.add(full)
        return torch.tensor(self._tensors[full], dtype=torch.float32)

    def parameter(self, name: str) -> torch.nn.Parameter:
        """A tensor as a parameter of its shape."""
        return torch.nn.Parameter(self.take(name))

    def bias(self, name: str) -> torch.nn.Parameter:
        """A bias, which files have as a matrix of one row."""
        return torch.nn.Parameter(self.take(name).view(-1))

    def linear(self, weight: str, bias: str | None = None) -> torch.nn.Linear:
        """A linear map: PyTorch's weight is the transpose of gnarl's."""
        matrix = self.take(weight)
        layer = torch.nn.Linear(*matrix.shape, bias=bias is not None)
        fill(layer.weight, matrix.T)
        if bias is not None:
            fill(layer.bias, self.take(bias).view(-1))
        return layer

    def check_all_taken(self) -> None:
        """Refuses tensors that no layer has taken: the outputs would not be those of the run.

        Raises:
            DataError: Naming them.
        """
        left = sorted(set(self._tensors) - self._taken)
        if left:
            named = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
            raise DataError(f"model.safetensors has tensors of no layer: {named}", "its settings are of another model")


def fill(parameter: Any, values: Tensor) -> None:
    """Sets a parameter.

    Raises:
        DataError: If the shapes differ.
    """
    if tuple(parameter.shape) != tuple(values.shape):
        found = " × ".join(map(str, values.shape))
        wanted = " × ".join(map(str, parameter.shape))
        raise DataError(f"model.safetensors: a tensor of {found} where the settings of the model ask for {wanted}")
    with torch.no_grad():
        parameter.copy_(values)
