"""The layers of models of PyTorch Geometric that are known."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm
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

from gnarl._dataset import edge_name
from gnarl._errors import UsageError

if TYPE_CHECKING:
    from gnarl.pyg._infer._run import Inference

#: Layers that take the rows of sources and of destinations apart: what they do for destinations is done for these alone.
_PAIRS = (SAGEConv, GINConv, GATConv, GATv2Conv, EdgeConv)
#: Layers that normalize by the degrees of sources, and those that go several hops.
_DEGREES = {"GCNConv", "LGConv", "GCN2Conv", "FAConv", "ClusterGCNConv"}
_HOPS = {"SGConv", "TAGConv", "SSGConv", "APPNP", "ARMAConv", "ChebConv", "MixHopConv", "PANConv"}
#: Layers that multiply by a sparse matrix where they can.
_PRODUCTS = (SAGEConv, GINConv)


def known_layers(module: torch.nn.Module, run: Inference, edge_weight: bool) -> list[Any]:
    """The layers of a ``BasicGNN``, as functions of rows and a batch.

    Raises:
        UsageError: If the module is none, or its layers need more than the rows of their neighbors.
    """
    # A class with a forward of its own does more than its layers.
    known = isinstance(module, BasicGNN) and type(module).forward is BasicGNN.forward
    if run.dataset.is_heterogeneous or not known:
        kind = " over a heterogeneous graph" if run.dataset.is_heterogeneous else ""
        hint = "give its layers: layers=[lambda x, batch: …, …]"
        raise UsageError(f"the layers of {type(module).__name__}{kind} are not known", hint)
    if module.jk_mode not in (None, "last"):
        raise UsageError(f"jk={module.jk_mode!r} needs the rows of all layers", "None and 'last' are supported")
    convs = list(module.convs)[: module.num_layers]
    columns = run.dataset._graph.edge_facts(edge_name(run.dataset.edge_type()))["columns"]
    if edge_weight and not module.supports_edge_weight:
        raise UsageError(f"{type(module).__name__} takes no weights of edges", "leave edge_weight out")
    for needed, name in ((edge_weight, "weight"), (any(_has_edge_dim(conv) for conv in convs), "features")):
        if needed and columns is not None and name not in columns:
            raise UsageError(f"the model reads {name} of edges, which {run.dataset.path} has not")
    roots: dict[tuple[bool, bool], Tensor] = {}
    for conv in convs:
        if _counts_degrees(conv) and _loops_of(conv) not in roots:
            roots[_loops_of(conv)] = _inverse_roots(run, conv, edge_weight)
    return [_layer(module, number, conv, roots, edge_weight) for number, conv in enumerate(convs)]


def _layer(module: Any, number: int, conv: Any, roots: dict[tuple[bool, bool], Tensor], edge_weight: bool) -> Any:
    if _counts_degrees(conv):

        def normalized(x: Tensor, batch: Any) -> Tensor:
            edge_index, weights = _gcn_norm(conv, roots[_loops_of(conv)], batch, edge_weight)
            weights = weights.to(x.dtype)
            conv.normalize = False
            try:
                out = conv(x, edge_index, weights)[: batch.batch_size]
            finally:
                conv.normalize = True
            return _after(module, number, out)

        return normalized
    if _has_edge_dim(conv) or edge_weight:
        has_pairs = type(conv) in _PAIRS

        def with_columns(x: Tensor, batch: Any) -> Tensor:
            size = batch.batch_size
            given = {"edge_attr": batch.edge_attr} if _has_edge_dim(conv) else {"edge_weight": batch.edge_weight}
            out = conv((x, x[:size]) if has_pairs else x, batch.edge_index, **given)[:size]
            return _after(module, number, out)

        return with_columns
    if type(conv) not in _PAIRS:
        return lambda x, batch: module.inference_per_layer(number, x, batch.edge_index, batch.batch_size)
    products = type(conv) in _PRODUCTS and conv.aggr in ("mean", "sum", "add")

    def paired(x: Tensor, batch: Any) -> Tensor:
        size = batch.batch_size
        sparse = products and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
        edges = _adjacency(batch, x.dtype) if sparse else batch.edge_index
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


def _adjacency(batch: Any, dtype: torch.dtype) -> Tensor:
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
        return torch.sparse_csr_tensor(
            starts, sources, torch.ones(len(sources), dtype=dtype), shape, check_invariants=False
        )


def _counts_degrees(conv: Any) -> bool:
    return isinstance(conv, GCNConv) and conv.normalize


def _loops_of(conv: GCNConv) -> tuple[bool, bool]:
    """The settings that degrees depend on."""
    return conv.add_self_loops, conv.improved


def _has_edge_dim(conv: Any) -> bool:
    return getattr(conv, "edge_dim", None) is not None


def _inverse_roots(run: Inference, conv: GCNConv, edge_weight: bool) -> Tensor:
    """One over the square root of each node's degree, as ``gcn_norm`` has it for the whole graph."""
    roots = np.zeros(run.dataset.num_nodes(), dtype=np.float32)
    first = 0
    for batch in run.batches(run.dataset.node_type(), features=False):
        (_, destinations), weights = _with_loops(conv, batch, edge_weight)
        degrees = torch.zeros(batch.num_nodes).index_add_(0, destinations, weights)[: batch.batch_size]
        inverse = degrees.pow(-0.5)
        roots[first : first + batch.batch_size] = inverse.masked_fill_(inverse == torch.inf, 0).numpy()
        first += batch.batch_size
    return torch.from_numpy(roots)


def _gcn_norm(conv: GCNConv, roots: Tensor, batch: Any, edge_weight: bool) -> tuple[Tensor, Tensor]:
    """The edges of a batch and their weights in the whole graph."""
    edge_index, weights = _with_loops(conv, batch, edge_weight)
    own = roots[batch.n_id.to(roots.device)].to(edge_index.device)
    return edge_index, own[edge_index[0]] * weights * own[edge_index[1]]


def _with_loops(conv: GCNConv, batch: Any, edge_weight: bool) -> tuple[Tensor, Tensor]:
    """The edges of a batch with the loops that a layer adds, and their weights before normalization."""
    edge_index = batch.edge_index
    weights = batch.edge_weight.float() if edge_weight else None
    if conv.add_self_loops:
        fill = 2.0 if conv.improved else 1.0
        edge_index, weights = add_remaining_self_loops(edge_index, weights, fill, batch.num_nodes)
    if weights is None:
        weights = torch.ones(edge_index.shape[1], device=edge_index.device)
    return edge_index, weights


def refuse_own_degrees(module: torch.nn.Module) -> None:
    """Refuses layers given one by one that count the degrees of a batch, or go several hops."""
    for part in module.modules():
        name = type(part).__name__
        if name in _DEGREES and getattr(part, "normalize", True):
            hint = f"compute gcn_norm of the graph once, keep it as edge_weight, and use {name}(normalize=False)"
            raise UsageError(f"{name} counts the edges of a batch, not those of its sources in the graph", hint)
        if name in _HOPS:
            raise UsageError(f"{name} goes several hops in one layer", "a layer reads the rows of neighbors alone")


def refuse_norms_of_all(module: torch.nn.Module) -> None:
    """Refuses normalization by the rows of all nodes, which a batch does not have."""
    for part in module.modules():
        over_all = (
            isinstance(part, (GraphNorm, GraphSizeNorm, MeanSubtractionNorm, PairNorm))
            or (isinstance(part, LayerNorm) and part.mode == "graph")
            or (isinstance(part, (InstanceNorm, _BatchNorm)) and not part.track_running_stats)
        )
        if over_all:
            hint = "LayerNorm(mode='node') and BatchNorm do not; norm_kwargs={'mode': 'node'} sets the mode"
            raise UsageError(f"{type(part).__name__} normalizes by the rows of all nodes, not of one", hint)
