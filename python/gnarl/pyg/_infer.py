"""Layer-wise inference of torch modules over datasets on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.nn.models.basic_gnn import BasicGNN

from gnarl import _gnarl
from gnarl._dataset import Dataset
from gnarl._errors import UsageError
from gnarl.pyg import _arguments as arguments
from gnarl.pyg._batches import to_data

#: One layer: of the rows of a batch's nodes, and the batch, the rows of its first ``batch_size`` nodes.
Layer = Callable[[Tensor, Any], Tensor]


def infer(
    module: torch.nn.Module,
    data: Dataset | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    layers: Sequence[Layer] | None = None,
    batch_size: int = 1024,
    device: str | torch.device | None = None,
    threads: int | None = None,
    force: bool = False,
) -> Any:
    """Computes the outputs of a module for every node of a homogeneous graph, layer by layer, over all neighbors.

    Each node is computed once a layer (GLISP, section III-D), from rows on disk: memory holds a batch, whatever the size of
    the graph. The rows of layers in between take ``nodes × width × 4`` bytes beside ``out``, and are removed.

    Args:
        module: The model. Those of ``torch_geometric.nn`` that are a ``BasicGNN`` (``GraphSAGE``, ``GAT``, ``GIN``,
            ``PNA``, ``EdgeCNN``) need nothing else; ``jk`` may be None or ``"last"``.
        data: A dataset, or its folder.
        out: The NumPy file to make: a row for each node.
        layers: For other models, a function for each layer: of the rows of a batch's nodes, and the batch
            (``edge_index``, ``edge_attr``, ``edge_weight``, ``n_id``, ``batch_size``), the rows of its first
            ``batch_size`` nodes. What follows the layer, such as an activation, belongs to it.
        batch_size: Nodes computed at a time, with all of their neighbors.
        device: Where it is computed; by default where the module's parameters are.
        threads: Threads that prepare batches; by default one for each processor.
        force: Replace a file that is there.

    Returns:
        The rows, mapped from ``out``.

    Raises:
        UsageError: If the graph is heterogeneous, the model is none of these and ``layers`` is not given, or a layer needs
            more than the neighbors of a node, as ``GCNConv`` with degrees of its own does.
    """
    dataset = data if isinstance(data, Dataset) else Dataset(data)
    if dataset.is_heterogeneous:
        raise UsageError("inference over heterogeneous graphs is not supported yet")
    place = Path(out)
    if place.exists() and not force:
        raise UsageError(f"{place} is there already", "force=True replaces it")
    if dataset.num_features() == 0:
        raise UsageError(f"{dataset.path}: nodes have no features to compute from")
    steps = list(layers) if layers is not None else _layers_of(module)
    _refuse_own_degrees(module)
    device = torch.device(device) if device is not None else _device_of(module)
    was_training = module.training
    module.eval()
    try:
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder, torch.no_grad():
            rows: Any = None
            for number, step in enumerate(steps):
                written = Path(folder) / f"layer-{number}.npy"
                rows = _compute(dataset, step, rows, written, (batch_size, threads, device))
            if rows is None:
                raise UsageError("the model has no layers")
            del rows
            os.replace(written, place)
    finally:
        module.train(was_training)
    return np.load(place, mmap_mode="r")


def _compute(
    dataset: Dataset, step: Layer, rows: Any, written: Path, settings: tuple[int, int | None, torch.device]
) -> Any:
    """The rows of a layer for all nodes, from those of the layer before, or features."""
    batch_size, threads, device = settings
    of = dataset.node_type()
    loader = _gnarl.Loader.of_nodes(
        dataset._graph,
        of,
        np.arange(dataset.num_nodes(of)),
        **arguments.options(dataset, [-1], batch_size=batch_size, threads=threads, features=rows is None, labels=False),
    )
    found = None
    first = 0
    for batch in loader.epoch(0):
        data = to_data(dataset, batch)
        data.batch_size = len(batch[1])
        inputs = data.x if rows is None else torch.from_numpy(rows[data.n_id.numpy()])
        output = step(inputs.to(device), data.to(device)).to("cpu", torch.float32)
        if output.shape[0] != data.batch_size:
            told = f"a layer gave {output.shape[0]} rows for the {data.batch_size} nodes of a batch"
            raise UsageError(told, "it returns the rows of the first batch_size nodes")
        if found is None:
            shape = (dataset.num_nodes(of), *output.shape[1:])
            found = np.lib.format.open_memmap(written, mode="w+", dtype=np.float32, shape=shape)
        found[first : first + len(output)] = output.numpy()
        first += len(output)
    if found is None:
        raise UsageError(f"{dataset.path}: there are no nodes")
    found.flush()
    return found


def _layers_of(module: torch.nn.Module) -> list[Layer]:
    if not isinstance(module, BasicGNN):
        hint = "give its layers: layers=[lambda x, batch: …, …]"
        raise UsageError(f"the layers of {type(module).__name__} are not known", hint)
    if module.jk_mode not in (None, "last"):
        raise UsageError(f"jk={module.jk_mode!r} needs the rows of all layers", "None and 'last' are supported")

    def layer(number: int) -> Layer:
        return lambda x, batch: module.inference_per_layer(number, x, batch.edge_index, batch.batch_size)

    return [layer(number) for number in range(module.num_layers)]


def _refuse_own_degrees(module: torch.nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, GCNConv) and part.normalize:
            hint = "compute gcn_norm of the graph once, keep it as edge_weight, and use GCNConv(normalize=False)"
            raise UsageError("GCNConv counts the edges of a batch, not those of its sources in the graph", hint)


def _device_of(module: torch.nn.Module) -> torch.device:
    parameter = next(module.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
