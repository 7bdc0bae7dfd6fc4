"""Batches of :mod:`gnarl.pyg` as blocks of DGL."""

from __future__ import annotations

from typing import Any

import dgl
from torch_geometric.data import HeteroData

from gnarl._errors import UsageError

#: Names of columns in blocks, by those in batches.
_OF_NODES = {"x": "feat", "y": "label", "n_id": dgl.NID}
_OF_EDGES = {"edge_attr": "feat", "edge_weight": "weight", "e_id": dgl.EID}


def to_blocks(batch: Any) -> list[Any]:
    """The blocks of a batch of :class:`gnarl.pyg.NeighborLoader`, one for each hop, that of the features first.

    A block is a ``DGLBlock`` of the edges into the nodes that the layers after it need: the last has those into the seeds.
    The first has the features of its sources as ``srcdata["feat"]``, the last the labels of the seeds as
    ``dstdata["label"]``; all have numbers of nodes and edges (``dgl.NID``, ``dgl.EID``), and ``edata["weight"]`` and
    ``edata["feat"]`` if edges have some. Tensors share the memory of the batch.

    Raises:
        UsageError: If the batch does not tell its hops, as one that is around edges does not tell its seeds.
    """
    if isinstance(batch, HeteroData):
        nodes = {of: batch[of] for of in batch.node_types}
        edges = {of: batch[of] for of in batch.edge_types}
        seeds = [of for of in batch.node_types if "batch_size" in batch[of]]
    else:
        nodes = {"_N": batch}
        edges = {("_N", "_E", "_N"): batch}
        seeds = ["_N"] if "batch_size" in batch else []
    if not seeds or any("num_sampled_edges" not in store for store in edges.values()):
        raise UsageError(
            "the batch does not tell its hops",
            "batches of gnarl.pyg.NeighborLoader do with subgraph_type='directional'",
        )
    hops = max(len(store.num_sampled_edges) for store in edges.values())
    blocks = [_block(nodes, edges, hops - number) for number in range(hops)]
    for of, store in nodes.items():
        for name in ("x", "n_id"):
            if name in store:
                blocks[0].srcnodes[of].data[_OF_NODES[name]] = store[name]
        for block, hop in zip(blocks, range(hops, 0, -1), strict=True):
            count = sum(store.num_sampled_nodes[:hop])
            block.dstnodes[of].data[dgl.NID] = store.n_id[:count]
            block.srcnodes[of].data[dgl.NID] = store.n_id[: block.num_src_nodes(of)]
    for of in seeds:
        if "y" in nodes[of]:
            blocks[-1].dstnodes[of].data["label"] = nodes[of].y[: blocks[-1].num_dst_nodes(of)]
    return blocks


def _block(nodes: dict[str, Any], edges: dict[Any, Any], hops: int) -> Any:
    """The block of the edges of the first hops."""
    lists = {}
    kept = {}
    for of, store in edges.items():
        kept[of] = sum(store.num_sampled_edges[:hops])
        sources, destinations = store.edge_index[:, : kept[of]]
        lists[of] = (sources, destinations)
    block = dgl.create_block(
        lists,
        num_src_nodes={of: sum(store.num_sampled_nodes[: hops + 1]) for of, store in nodes.items()},
        num_dst_nodes={of: sum(store.num_sampled_nodes[:hops]) for of, store in nodes.items()},
    )
    for of, store in edges.items():
        for name, known in _OF_EDGES.items():
            if name in store:
                block.edges[of].data[known] = store[name][: kept[of]]
    return block
