"""Layer-wise inference of torch modules over datasets on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnarl._dataset import Dataset
from gnarl._errors import UsageError
from gnarl.pyg import _arguments as arguments
from gnarl.pyg._infer._known import known_layers, refuse_norms_of_all, refuse_own_degrees
from gnarl.pyg._infer._run import Inference, file_of

#: One layer: of the rows of a batch's nodes, and the batch, the rows of its first ``batch_size`` nodes.
Layer = Callable[[Any, Any], Any]


def infer(
    module: torch.nn.Module,
    data: Dataset | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    layers: Sequence[Layer] | None = None,
    inputs: Any = None,
    edge_weight: bool = False,
    node_types: Sequence[str] | None = None,
    batch_size: int = 1024,
    device: str | torch.device | None = None,
    threads: int | None = None,
    force: bool = False,
) -> Any:
    """Computes the outputs of a module for every node, layer by layer, over all neighbors.

    Each node is computed once a layer (GLISP, section III-D), from rows on disk: memory holds a batch, and 8 bytes for each
    node, for ``GCN`` 4 more. The rows of layers in between take ``nodes × width × 4`` bytes beside ``out``, and are removed.

    Args:
        module: The model. Those of ``torch_geometric.nn`` that are a ``BasicGNN`` (``GraphSAGE``, ``GCN``, ``GAT``,
            ``GIN``, ``PNA``, ``EdgeCNN``) need nothing else over a homogeneous graph; ``jk`` may be None or ``"last"``.
        data: A dataset, or its folder.
        out: The NumPy file to make, a row of float32 for each node; of a heterogeneous graph the folder of ``TYPE.npy``.
        layers: For other models, a function for each layer: of the rows of a batch's nodes, and the batch
            (``edge_index``, ``edge_attr``, ``edge_weight``, ``n_id``, ``batch_size``), the rows of its first
            ``batch_size`` nodes. What follows the layer, such as an activation, belongs to it. In a heterogeneous graph
            rows are a dict by node type, a batch (``HeteroData``) has the edges into the nodes of one type,
            ``batch.seed_type``, and a function returns its rows, first those of the ``batch_size`` nodes: as a tensor,
            or in a dict by type. A type of which no layer returns rows is left out of the next.
        inputs: Rows that the first layer reads in place of features: a tensor, or a function of numbers of nodes; of a
            heterogeneous graph these by type, such as the embeddings of types without features.
        edge_weight: Give a known model the weights of edges, as ``model(x, edge_index, edge_weight)`` does. Features of
            edges it has where its layers have an ``edge_dim``.
        node_types: Types of a heterogeneous graph whose rows are written; by default all that have some.
        batch_size: Nodes computed at a time, with all of their neighbors.
        device: Where it is computed; by default where the module's parameters are.
        threads: Threads that prepare batches; by default one for each processor.
        force: Replace a file or folder of rows that is there.

    Returns:
        The rows, mapped from ``out``; of a heterogeneous graph by node type.

    Raises:
        UsageError: If layers are needed and not given, nodes have nothing to compute from, a layer returns other rows than
            those of its nodes, or needs more than their neighbors: normalization by the rows of all nodes, or, in
            ``layers``, ``GCNConv`` with degrees of its own.
    """
    dataset = data if isinstance(data, Dataset) else Dataset(data)
    if not isinstance(module, torch.nn.Module):
        raise UsageError(
            f"module is a {type(module).__name__}", "expected a torch.nn.Module, of which layers may be parts"
        )
    place = Path(out)
    wanted = _wanted(dataset, node_types)
    _check_place(place, dataset, force)
    refuse_norms_of_all(module)
    arguments.positive(batch_size=batch_size)
    settings = (int(batch_size), threads, _device(device, module), _dtype(module))
    run = Inference(dataset, _inputs(dataset, inputs), settings)
    # A part that is frozen stays so.
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            if layers is None:
                steps: list[Layer] = known_layers(module, run, edge_weight)
            else:
                steps = list(layers)
                refuse_own_degrees(module)
            if not steps:
                raise UsageError("the model has no layers")
            run.write(steps, wanted, place)
    finally:
        for part, training in modes:
            part.training = training
    if dataset.is_heterogeneous:
        written = {of: place / file_of(of) for of in wanted}
        return {of: np.load(file, mmap_mode="r") for of, file in written.items() if file.exists()}
    return np.load(place, mmap_mode="r")


def _wanted(dataset: Dataset, given: Sequence[str] | None) -> list[str]:
    if given is None:
        return dataset.node_types
    if isinstance(given, str):
        given = [given]
    if not given:
        raise UsageError("node_types names none", f"there are: {', '.join(dataset.node_types)}")
    return [dataset.node_type(of) for of in given]


def _check_place(place: Path, dataset: Dataset, force: bool) -> None:
    """Refuses to replace anything but rows of an inference, and these unless asked to."""
    if not place.exists():
        return
    if not force:
        raise UsageError(f"{place} is there already", "force=True replaces it")
    if place.is_dir() != dataset.is_heterogeneous:
        kind = "a folder" if dataset.is_heterogeneous else "a file"
        raise UsageError(f"{place} is there, and not {kind}", "choose another out")
    known = {file_of(of) for of in dataset.node_types}
    other = [entry.name for entry in place.iterdir() if entry.name not in known] if place.is_dir() else []
    if other:
        raise UsageError(f"{place} has {other[0]!r}, which is no file of rows", "choose another out")


def _inputs(dataset: Dataset, given: Any) -> dict[str, Any]:
    """The functions of inputs by node type."""
    if given is None:
        by_type: Mapping[str, Any] = {}
    elif isinstance(given, Mapping):
        by_type = {dataset.node_type(of): value for of, value in given.items()}
    elif dataset.is_heterogeneous:
        raise UsageError("inputs of a heterogeneous graph", "expected a mapping by node type")
    else:
        by_type = {dataset.node_type(): given}
    return {of: _input(of, value, dataset.num_nodes(of)) for of, value in by_type.items()}


def _input(of: str, given: Any, count: int) -> Any:
    if callable(given):
        return given
    rows = torch.as_tensor(given).detach()
    if rows.shape[:1] != (count,):
        raise UsageError(
            f"inputs of {of} have the shape {tuple(rows.shape)}", f"expected a row for each of {count} nodes"
        )
    return lambda nodes: rows[nodes.to(rows.device)]


def _dtype(module: torch.nn.Module) -> torch.dtype:
    """The type of floating-point numbers that the module computes with."""
    return next((part.dtype for part in module.parameters() if part.is_floating_point()), torch.float32)


def _device(given: str | torch.device | None, module: torch.nn.Module) -> torch.device:
    if given is not None:
        return torch.device(given)
    parameter = next(module.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
