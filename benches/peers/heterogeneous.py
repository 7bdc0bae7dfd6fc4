#!/usr/bin/env python3
"""Seconds of a mini-batch epoch of R-GCN on a graph with types, on two threads: gnarl and DGL.

    cargo build --profile dist
    target/dist/gnarl generate typed --nodes 500000 --edges 5000000 --relations 40 --out typed-5m
    benches/peers/heterogeneous.py target/dist/gnarl typed-5m > table.md

Two layers, 64 wide, a matrix for each relation, fan-outs 5, 5 for each edge type, batches of 1,024 training
nodes, Adam; node types without features have learnt rows of 64 with Adam for the rows of a batch. DGL's is what its
examples do: `HeteroGraphConv` of a `GraphConv` (mean) for each edge type, a matrix for each node itself, and
`SparseAdam`. Runs with a Python that has dgl 2.1. Systems take turns; a figure is the median over all epochs of all
turns, first epochs left out. DGL runs a part of an epoch, which counts for the whole. `floor` is the time
that the operations of gnarl's kernels take at the rate of products that its profile measures.
"""

import json
import sys
import time
from pathlib import Path

import epochs

THREADS, TURNS, EPOCHS, BATCH, BATCHES = 2, 3, 2, 1024, 20
FANOUTS, HIDDEN, RATE, TARGET = [5, 5], 64, 0.003, "paper"


def read(dataset):
    """The graph, features by type, labels, training nodes and classes, as DGL takes them."""
    import dgl
    import numpy as np
    import torch

    folder = Path(dataset)
    described = json.loads((folder / "dataset.json").read_text())

    def columns(of):
        return {each["name"]: np.load(folder / each["file"], mmap_mode="r") for each in of["columns"]}

    def ids(array):
        return torch.from_numpy(np.asarray(array).astype(np.int64))

    edges = {}
    for each in described["edge_types"]:
        found = columns(each)
        edges[tuple(each["type"].split(":"))] = (ids(found["src"]), ids(found["dst"]))
    nodes = {each["name"]: each["count"] for each in described["node_types"]}
    graph = dgl.heterograph(edges, num_nodes_dict=nodes).formats("csc")
    features = {}
    for each in described["node_types"]:
        found = columns(each)
        if "features" in found:
            features[each["name"]] = torch.from_numpy(np.array(found["features"]))
        if each["name"] == TARGET:
            labels, train, classes = ids(found["label"]), ids(found["split.train"]), each["classes"]
    return graph, features, labels, train, classes


def network(graph, features, classes):
    """R-GCN by DGL's own convolutions."""
    import dgl.nn.pytorch as layers
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, outputs):
            super().__init__()
            convolution = {e: layers.GraphConv(HIDDEN, outputs, norm="right", bias=False, allow_zero_in_degree=True)
                           for e in graph.canonical_etypes}
            self.heard = layers.HeteroGraphConv(convolution, aggregate="sum")
            self.own = nn.Linear(HIDDEN, outputs)

        def forward(self, block, rows):
            heard = self.heard(block, rows)
            own = {t: self.own(rows[t][: block.num_dst_nodes(t)]) for t in rows}
            return {t: own[t] + heard[t] if t in heard else own[t] for t in own}

    class Rgcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.ModuleDict({t: nn.Linear(x.shape[1], HIDDEN) for t, x in features.items()})
            learnt = [t for t in graph.ntypes if t not in features]
            self.learnt = nn.ModuleDict({t: nn.Embedding(graph.num_nodes(t), HIDDEN, sparse=True) for t in learnt})
            self.first, self.last = Layer(HIDDEN), Layer(classes)

        def forward(self, blocks, ids):
            rows = {t: self.project[t](torch.index_select(features[t], 0, ids[t])) for t in features}
            rows |= {t: self.learnt[t](ids[t]) for t in self.learnt}
            rows = {t: x.relu() for t, x in self.first(blocks[0], rows).items()}
            return self.last(blocks[1], rows)[TARGET]

    return Rgcn()


def measure(dataset):
    """In a process of its own: seconds of DGL's epochs."""
    import dgl
    import torch
    from torch.nn import functional

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    graph, features, labels, train, classes = read(dataset)
    net = network(graph, features, classes)
    learnt = list(net.learnt.parameters())
    dense = [p for p in net.parameters() if all(p is not other for other in learnt)]
    optimizers = [torch.optim.Adam(dense, lr=RATE), torch.optim.SparseAdam(learnt, lr=RATE)]
    sampler = dgl.dataloading.NeighborSampler(FANOUTS[::-1])
    loader = dgl.dataloading.DataLoader(graph, {TARGET: train}, sampler, batch_size=BATCH, shuffle=True)

    def epoch(batches):
        start = time.perf_counter()
        for _, (ids, seeds, blocks) in zip(range(batches), loader):
            loss = functional.cross_entropy(net(blocks, ids), labels[seeds[TARGET]])
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        return (time.perf_counter() - start) / batches

    epoch(2)
    steps = -(-len(train) // BATCH)
    print(json.dumps([epoch(min(BATCHES, steps - 1)) * steps for _ in range(EPOCHS)]))


def tables(dataset):
    """The run file for the same."""
    return {
        "dataset": {"path": str(Path(dataset).resolve())},
        "task": {"node_type": TARGET},
        "model": {"name": "rgcn", "layers": len(FANOUTS), "hidden": HIDDEN, "dropout": 0.0},
        "sample": {"fanouts": FANOUTS, "batch_size": BATCH},
        "train": {"epochs": EPOCHS + 1, "threads": THREADS, "workers": 1, "lr": RATE, "eval_every": 0},
    }


def main():
    gnarl, dataset = sys.argv[1:]
    found = {"gnarl": [], "DGL": []}
    for _ in range(TURNS):
        found["gnarl"] += epochs.gnarl(gnarl, tables(dataset))
        found["DGL"] += epochs.peer(__file__, THREADS, dataset)
    print("| system | seconds an epoch | of them the fastest, the slowest | gnarl's share |\n|---|---:|---:|---:|")
    found["floor"] = [epochs.floor(gnarl, tables(dataset))]
    epochs.rows(found)


if sys.argv[1] == "--measure":
    measure(sys.argv[2])
else:
    main()
