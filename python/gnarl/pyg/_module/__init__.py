"""Trained models of gnarl as modules of PyTorch.

One file per kind of layer: ``_sage``, ``_gcn``, ``_attention``, ``_gin`` for homogeneous graphs, ``_rgcn``, ``_rgat``,
``_hgt``, ``_hetero`` for heterogeneous ones.
"""

from __future__ import annotations

import os
from typing import Any

from gnarl._errors import UsageError
from gnarl._pretrained import is_heterogeneous, load
from gnarl._run import Run
from gnarl.pyg._module._heterogeneous import Heterogeneous
from gnarl.pyg._module._homogeneous import Homogeneous
from gnarl.pyg._module._weights import Weights

__all__ = ["Heterogeneous", "Homogeneous", "module"]


def module(source: Run | str | os.PathLike[str]) -> Any:
    """A trained model of gnarl as a ``torch.nn.Module`` of PyTorch Geometric's layers, with its weights.

    Its outputs over the whole graph are those of ``run.logits()``, but for rounding. It is in evaluation mode; ``train()``
    turns dropout on, with the probabilities of the run.

    Args:
        source: A run, its folder, or a folder that :meth:`gnarl.Run.save_pretrained` wrote.

    Returns:
        A :class:`Homogeneous`, called with ``x`` and ``edge_index``, or a :class:`Heterogeneous`, called with ``x_dict`` and
        ``edge_index_dict``.

    Raises:
        DataError: If there is no trained model, or its files are damaged.
        UsageError: If the model has no counterpart in PyTorch, naming the key of the run file and the reason.
    """
    config, tensors = load(source)
    _refuse_unmapped(config)
    weights = Weights(tensors)
    made = Heterogeneous(config, weights) if is_heterogeneous(tensors) else Homogeneous(config, weights)
    weights.check_all_taken()
    return made.eval()


def _refuse_unmapped(config: dict[str, Any]) -> None:
    task = config["task"]
    if not task.startswith("node-"):
        reason = "a program's own" if task == "custom" else "its messages pass over edges that the run holds back"
        hint = "node-classification and node-regression are supported; docs/tensors.md has the equations of others"
        raise UsageError(f"task.kind = {task!r} has no module: {reason}", hint)
    method = config["sample"].get("method")
    if method in ("walk", "ppr", "custom"):
        reason = "messages come from nodes that the sampler chooses, not over the edges of the graph"
        raise UsageError(f"sample.method = {method!r} has no module: {reason}")
