#!/usr/bin/env python3
"""Seconds and memory of an epoch over the whole graph on two threads: gnarl's strategy `tensor`, DGL and PyG.

    cargo build --profile dist
    benches/peers/full.py target/dist/gnarl [--before EARLIER_GNARL] gcn DATASET... gat DATASET... > table.md

DATASET is a directory of gnarl's with dense features, labels, a split `train` and edges in both directions. All
systems train the same model of two layers with Adam: GCN, 256 wide, to which gnarl alone adds self loops; GAT with four
heads of 64, the last layer's averaged; without dropout, or, as `gcn+dropout` and `gat+dropout`, with 0.5 of the input
and of what is between the layers. The peers compute outputs of all nodes, as their examples do, gnarl those that the
loss reads where they are much fewer. Runs with a Python that has dgl 2.1 and torch_geometric
2.8. Systems take turns; seconds are the median over all epochs of all turns, first epochs left out; memory is the
largest resident set of a process that did nothing else; `floor` is the time of the operations of gnarl's kernels at the
rate of products that its profile measures. An earlier build of gnarl takes its turns with them. PyG has
the graph as a sparse CSR tensor for GCN, which is its fastest form, and as a list of edges for GAT. For the peers'
best, preload tcmalloc and do not let OPENBLAS_CORETYPE narrow their products.
"""

import json
import resource
import statistics
import sys
import time
from pathlib import Path

import epochs
from dataset import classes, column, lists

THREADS, TURNS, EPOCHS = 2, 3, 5
HIDDEN, HEADS, RATE, DROPOUT = 256, 4, 0.01, 0.5
MODELS = "gcn", "gat", "gcn+dropout", "gat+dropout"


def dgl_network(model, dataset, inputs, outputs):
    """DGL's convolutions, and its graph."""
    import dgl
    import dgl.nn.pytorch as layers
    import torch

    indptr, indices = map(torch.from_numpy, lists(dataset))
    nodes = len(indptr) - 1
    # Attention needs the numbers of edges, which lists alone do not have.
    graph = dgl.graph((indices, torch.repeat_interleave(torch.arange(nodes), indptr.diff())), num_nodes=nodes)
    free = {"allow_zero_in_degree": True}
    if model == "gcn":
        return graph, layers.GraphConv(inputs, HIDDEN, **free), layers.GraphConv(HIDDEN, outputs, **free)
    heads = (HIDDEN // HEADS, HEADS), (outputs, HEADS)
    first, last = layers.GATConv(inputs, *heads[0], **free), layers.GATConv(HIDDEN, *heads[1], **free)
    return graph, lambda g, x: first(g, x).flatten(1), lambda g, x: last(g, x).mean(1), first, last


def pyg_network(model, dataset, inputs, outputs):
    """PyG's convolutions, and its graph."""
    import numpy as np
    import torch
    from torch_geometric.nn import GATConv, GCNConv

    indptr, indices = lists(dataset)
    nodes, degrees = len(indptr) - 1, np.diff(indptr)
    if model == "gcn":
        root = 1 / np.sqrt(np.maximum(degrees, 1))
        weights = (root[indices] * np.repeat(root, degrees)).astype(np.float32)
        parts = map(torch.from_numpy, (indptr, indices, weights))
        graph = torch.sparse_csr_tensor(*parts, size=(nodes, nodes))
        plain = {"normalize": False, "add_self_loops": False}
        first, last = GCNConv(inputs, HIDDEN, **plain), GCNConv(HIDDEN, outputs, **plain)
    else:
        graph = torch.from_numpy(np.stack([indices, np.repeat(np.arange(nodes), degrees)]))
        first = GATConv(inputs, HIDDEN // HEADS, HEADS, add_self_loops=False)
        last = GATConv(HIDDEN, outputs, HEADS, concat=False, add_self_loops=False)
    return graph, lambda g, x: first(x, g), lambda g, x: last(x, g), first, last


def kind(model):
    """The network of a model, and whether it drops values."""
    name, *drops = model.split("+")
    return name, bool(drops)


def measure(system, model, dataset):
    """In a process of its own: seconds of each epoch but the first, and the most memory there was."""
    import numpy as np
    import torch
    from torch.nn import functional

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    features = torch.from_numpy(np.array(column(dataset, "node_types", "features")))
    labels = torch.from_numpy(column(dataset, "node_types", "label").astype(np.int64))
    train = torch.from_numpy(column(dataset, "node_types", "split.train").astype(np.int64))
    build = dgl_network if system == "DGL" else pyg_network
    model, drops = kind(model)
    graph, first, last, *parts = build(model, dataset, features.shape[1], classes(dataset))
    weights = [weight for layer in parts or (first, last) for weight in layer.parameters()]
    optimizer = torch.optim.Adam(weights, lr=RATE)
    bend = functional.relu if model == "gcn" else functional.elu
    seconds = []
    for _ in range(EPOCHS + 1):
        start = time.perf_counter()
        inputs = functional.dropout(features, DROPOUT) if drops else features
        between = bend(first(graph, inputs))
        logits = last(graph, functional.dropout(between, DROPOUT) if drops else between)
        loss = functional.cross_entropy(logits[train], labels[train])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps([seconds[1:], 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))


def tables(model, dataset):
    """The run file for the same."""
    name, drops = kind(model)
    dropout = DROPOUT if drops else 0.0
    network = {"name": name, "layers": 2, "hidden": HIDDEN, "heads": HEADS, "out_heads": HEADS}
    train = {"strategy": "tensor", "epochs": EPOCHS + 1, "threads": THREADS, "workers": 1, "lr": RATE}
    return {
        "dataset": {"path": str(Path(dataset).resolve())},
        "model": {**network, "dropout": dropout, "input_dropout": dropout, "self_loops": False},
        "train": {**train, "eval_every": 0},
    }


def compare(programs, model, dataset):
    found = {system: ([], []) for system in (*programs, "DGL", "PyG")}
    for _ in range(TURNS):
        for system, (times, peaks) in found.items():
            if system in programs:
                seconds, peak = epochs.gnarl_with_peak(programs[system], tables(model, dataset))
            else:
                seconds, peak = epochs.peer(__file__, THREADS, system, model, dataset)
            times += seconds
            peaks.append(peak)
    own = [statistics.median(each) for each in found["gnarl"]]
    for system, (times, peaks) in found.items():
        middle, peak = statistics.median(times), statistics.median(peaks)
        seconds = [f"{middle:.3f}", f"{min(times):.3f}, {max(times):.3f}", f"{own[0] / middle:.2f}"]
        cells = [Path(dataset).name, model, system, *seconds, f"{peak / 1e9:.2f}", f"{own[1] / peak:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    floor = epochs.floor(programs["gnarl"], tables(model, dataset))
    print(f"| {Path(dataset).name} | {model} | floor | {floor:.3f} | | {own[0] / floor:.2f} | | |", flush=True)


def main():
    programs, (model, *words) = epochs.programs(sys.argv[1:])
    print("| graph | model | system | seconds | fastest, slowest | gnarl's share | GB | gnarl's share |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for word in words:
        if word in MODELS:
            model = word
        else:
            compare(programs, model, word)


if sys.argv[1] == "--measure":
    measure(*sys.argv[2:5])
else:
    main()
