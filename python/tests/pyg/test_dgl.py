"""Blocks of DGL from batches."""

from __future__ import annotations

import warnings

import pytest
import torch

import gnarl
from gnarl.pyg import LinkNeighborLoader, NeighborLoader

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dgl = pytest.importorskip("dgl")
    from dgl.nn import HeteroGraphConv, SAGEConv

from gnarl.dgl import to_blocks


def test_blocks_have_the_edges_that_layers_need(dataset):
    whole = torch.from_numpy(dataset.edges())
    batch = next(iter(NeighborLoader(dataset, [4, 3], "train", batch_size=20)))
    first, last = to_blocks(batch)
    assert last.num_dst_nodes() == 20 and last.num_src_nodes() == first.num_dst_nodes()
    assert first.num_src_nodes() == batch.num_nodes and first.num_edges() == batch.num_edges
    assert torch.equal(first.srcdata["feat"], batch.x) and torch.equal(last.dstdata["label"], batch.y[:20])
    for block in (first, last):
        sources, destinations = block.edges()
        ends = torch.stack([block.srcdata[dgl.NID][sources], block.dstdata[dgl.NID][destinations]])
        assert torch.equal(ends, whole[:, block.edata[dgl.EID]])
        # Destinations are the first of the sources, as DGL has them.
        assert torch.equal(block.srcdata[dgl.NID][: block.num_dst_nodes()], block.dstdata[dgl.NID])
        assert torch.equal(block.edata["weight"], torch.from_numpy(dataset.edge_weights())[block.edata[dgl.EID]])


def test_models_of_dgl_give_what_they_give_over_the_graph(dataset):
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([SAGEConv(6, 8, "mean"), SAGEConv(8, 3, "mean")])
    sources, destinations = torch.from_numpy(dataset.edges())
    graph = dgl.graph((sources, destinations), num_nodes=300)
    rows = torch.from_numpy(dataset.features())
    whole = layers[1](graph, layers[0](graph, rows).relu())
    for batch in NeighborLoader(dataset, [-1, -1], batch_size=64):
        first, last = to_blocks(batch)
        out = layers[1](last, layers[0](first, first.srcdata["feat"]).relu())
        torch.testing.assert_close(out, whole[batch.n_id[: batch.batch_size]], rtol=1e-5, atol=1e-5)


def test_blocks_of_several_types(typed):
    batch = next(iter(NeighborLoader(typed, [4, 3], ("paper", "train"), batch_size=8)))
    first, last = to_blocks(batch)
    assert last.num_dst_nodes("paper") == 8 and first.num_src_nodes("author") == batch["author"].num_nodes
    rows = {"venue": torch.zeros(batch["venue"].num_nodes, 4), **{of: batch[of].x for of in ("paper", "author")}}
    widths = {of: rows[of].shape[1] for of in rows}
    conv = HeteroGraphConv({rel: SAGEConv((widths[src], widths[dst]), 5, "mean") for src, rel, dst in typed.edge_types})
    out = conv(first, rows)
    assert out["paper"].shape == (first.num_dst_nodes("paper"), 5)
    assert torch.equal(last.dstnodes["paper"].data["label"], batch["paper"].y[:8])


def test_batches_without_seeds_are_refused(dataset):
    batch = next(iter(LinkNeighborLoader(dataset, [3], batch_size=4)))
    with pytest.raises(gnarl.UsageError, match="does not tell its hops"):
        to_blocks(batch)
