"""The layers of models of PyTorch Geometric that are known."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import (
    EdgeConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphNorm,
    GraphSizeNorm,
    InstanceNorm,
    LayerNorm,
    MeanSubtractionNorm,
    PairNorm,
    SAGEConv,
)
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.utils import add_remaining_self_loops

from gnarl._errors import UsageError

if TYPE_CHECKING:
    from gnarl.pyg._infer._run import Inference

#: Layers that take the rows of sources and of destinations apart: what they do for destinations is done for these alone.
_PAIRS = (SAGEConv, GINConv, GATConv, GATv2Conv, EdgeConv)
#: Layers that multiply by a sparse matrix where they can.
_PRODUCTS = (SAGEConv, GINConv)


def known_layers(module: torch.nn.Module, run: Inference) -> list[Any]:
    """The layers of a ``BasicGNN``, as functions of rows and a batch.

    Raises:
        UsageError: If the module is none, or its layers need more than the rows of their neighbors.
    """
    if run.dataset.is_heterogeneous or not isinstance(module, BasicGNN):
        kind = " over a heterogeneous graph" if run.dataset.is_heterogeneous else ""
        hint = "give its layers: layers=[lambda x, batch: …, …]"
        raise UsageError(f"the layers of {type(module).__name__}{kind} are not known", hint)
    if module.jk_mode not in (None, "last"):
        raise UsageError(f"jk={module.jk_mode!r} needs the rows of all layers", "None and 'last' are supported")
    convs = list(module.convs)[: module.num_layers]
    roots: dict[tuple[bool, bool], Tensor] = {}
    for conv in convs:
        if _counts_degrees(conv) and _loops_of(conv) not in roots:
            roots[_loops_of(conv)] = _inverse_roots(run, conv)
    return [_layer(module, number, conv, roots) for number, conv in enumerate(convs)]


def _layer(module: Any, number: int, conv: Any, roots: dict[tuple[bool, bool], Tensor]) -> Any:
    if _counts_degrees(conv):

        def normalized(x: Tensor, batch: Any) -> Tensor:
            edge_index, weights = _gcn_norm(conv, roots[_loops_of(conv)], batch)
            conv.normalize = False
            try:
                out = conv(x, edge_index, weights)[: batch.batch_size]
            finally:
                conv.normalize = True
            return _after(module, number, out)

        return normalized
    if type(conv) not in _PAIRS:
        return lambda x, batch: module.inference_per_layer(number, x, batch.edge_index, batch.batch_size)
    products = type(conv) in _PRODUCTS and conv.aggr in ("mean", "sum", "add")

    def paired(x: Tensor, batch: Any) -> Tensor:
        size = batch.batch_size
        edges = _adjacency(batch) if products and x.device.type == "cpu" else batch.edge_index
        out: Tensor = module.inference_per_layer(number, (x, x[:size]), edges, size)
        return out

    return paired


def _after(module: Any, number: int, x: Tensor) -> Tensor:
    """The steps of a ``BasicGNN`` after a layer: activation, normalization, and the last linear one."""
    last = number == module.num_layers - 1
    if last and module.jk_mode is None:
        return x
    if module.act is not None and module.act_first:
        x = module.act(x)
    if module.norms is not None:
        x = module.norms[number](x)
    if module.act is not None and not module.act_first:
        x = module.act(x)
    return module.lin(x) if last and hasattr(module, "lin") else x


def _adjacency(batch: Any) -> Tensor:
    """The edges of a batch as a matrix in compressed rows, one for each of its first nodes."""
    # Lists come one after the other, in the order of the nodes that they belong to.
    sources, destinations = batch.edge_index
    counts = torch.bincount(destinations, minlength=batch.batch_size)
    starts = torch.zeros(batch.batch_size + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=starts[1:])
    shape = (batch.batch_size, batch.num_nodes)
    with warnings.catch_warnings():
        # That such matrices are in beta state.
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, sources, torch.ones(len(sources)), shape, check_invariants=False)


def _counts_degrees(conv: Any) -> bool:
    return isinstance(conv, GCNConv) and conv.normalize


def _loops_of(conv: GCNConv) -> tuple[bool, bool]:
    """The settings that degrees depend on."""
    return conv.add_self_loops, conv.improved


def _inverse_roots(run: Inference, conv: GCNConv) -> Tensor:
    """One over the square root of each node's degree, as ``gcn_norm`` has it for the whole graph."""
    roots = np.zeros(run.dataset.num_nodes(), dtype=np.float32)
    first = 0
    for batch in run.batches(run.dataset.node_type(), features=False):
        (_, destinations), weights = _with_loops(conv, batch)
        degrees = torch.zeros(batch.num_nodes).index_add_(0, destinations, weights)[: batch.batch_size]
        inverse = degrees.pow(-0.5)
        roots[first : first + batch.batch_size] = inverse.masked_fill_(inverse == torch.inf, 0).numpy()
        first += batch.batch_size
    return torch.from_numpy(roots)


def _gcn_norm(conv: GCNConv, roots: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
    """The edges of a batch and their weights in the whole graph."""
    edge_index, weights = _with_loops(conv, batch)
    own = roots[batch.n_id.to(roots.device)].to(edge_index.device)
    return edge_index, own[edge_index[0]] * weights * own[edge_index[1]]


def _with_loops(conv: GCNConv, batch: Any) -> tuple[Tensor, Tensor]:
    """The edges of a batch with the loops that a layer adds, and their weights before normalization."""
    edge_index, weights = batch.edge_index, None
    if conv.add_self_loops:
        fill = 2.0 if conv.improved else 1.0
        edge_index, weights = add_remaining_self_loops(edge_index, None, fill, batch.num_nodes)
    if weights is None:
        weights = torch.ones(edge_index.shape[1], device=edge_index.device)
    return edge_index, weights


def refuse_own_degrees(module: torch.nn.Module) -> None:
    """Refuses layers given one by one that count the degrees of a batch."""
    if any(_counts_degrees(part) for part in module.modules()):
        hint = "compute gcn_norm of the graph once, keep it as edge_weight, and use GCNConv(normalize=False)"
        raise UsageError("GCNConv counts the edges of a batch, not those of its sources in the graph", hint)


def refuse_norms_of_all(module: torch.nn.Module) -> None:
    """Refuses normalization by the rows of all nodes, which a batch does not have."""
    for part in module.modules():
        over_all = (
            isinstance(part, (GraphNorm, GraphSizeNorm, MeanSubtractionNorm, PairNorm))
            or (isinstance(part, LayerNorm) and part.mode == "graph")
            or (isinstance(part, InstanceNorm) and not part.track_running_stats)
        )
        if over_all:
            hint = "LayerNorm(mode='node') and BatchNorm do not; norm_kwargs={'mode': 'node'} sets the mode"
            raise UsageError(f"{type(part).__name__} normalizes by the rows of all nodes, not of one", hint)
