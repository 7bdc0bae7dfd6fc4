#!/usr/bin/env python3
"""Seconds of a training epoch on two threads, sampling and gathering included: gnarl, DGL and GraphBolt.

    cargo build --profile dist
    benches/peers/epoch.py target/dist/gnarl [--before EARLIER_GNARL] DATASET... > table.md

DATASET is a directory of gnarl's with features, labels and a split `train`. All systems train the same model
with Adam, batches of 1,024 seeds and no dropout: GraphSAGE (mean) of three layers, 256 wide, fan-outs 15, 10, 5;
GAT of two layers, four heads of 64, fan-outs 25, 10. Runs with a Python that has dgl 2.1. Systems take turns;
a figure is the median over all epochs of all turns, first epochs left out. Peers run a part of an epoch
(`--batches`), which counts for the whole; the loader has no processes of its own, since there are no cores left.
An earlier build of gnarl takes its turns with them. Systems with "bf16" in their names multiply matrices of bf16: gnarl by
`train.precision`, DGL in torch's autocast or, where its attention refuses that, with the whole model in bf16.
`floor` is the time that the operations of gnarl's kernels take at the rate of f32 products that its profile measures.
For DGL's best, preload tcmalloc and do not let OPENBLAS_CORETYPE narrow its matrix products.
"""

import json
import sys
import time
from pathlib import Path

import epochs
from dataset import classes, column, lists

THREADS, TURNS, EPOCHS, BATCH, BATCHES = 2, 3, 3, 1024, 12
MODELS = {"sage": ([15, 10, 5], 1, "GraphSAGE"), "gat": ([25, 10], 4, "GAT")}
HIDDEN, RATE = 256, 0.003


def network(model, inputs, outputs):
    """The same layers by DGL's own convolutions."""
    import dgl.nn.pytorch as layers
    import torch
    from torch.nn import functional

    class Sage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            widths = [inputs, HIDDEN, HIDDEN, outputs]
            pairs = zip(widths, widths[1:])
            self.layers = torch.nn.ModuleList(layers.SAGEConv(i, o, "mean") for i, o in pairs)

        def forward(self, blocks, rows):
            for layer, block in zip(self.layers[:-1], blocks[:-1]):
                rows = functional.relu(layer(block, rows))
            return self.layers[-1](blocks[-1], rows)

    class Gat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            heads = MODELS["gat"][1]
            self.first = layers.GATConv(inputs, HIDDEN // heads, heads, allow_zero_in_degree=True)
            self.last = layers.GATConv(HIDDEN, outputs, heads, allow_zero_in_degree=True)

        def forward(self, blocks, rows):
            rows = functional.elu(self.first(blocks[0], rows).flatten(1))
            return self.last(blocks[1], rows).mean(1)

    return Sage() if model == "sage" else Gat()


BF16 = " bf16"


def loader(system, dataset, fanouts, seeds):
    """A function that gives an epoch's batches: blocks, nodes read, seeds."""
    import dgl
    import torch

    indptr, indices = map(torch.from_numpy, lists(dataset))
    if system == "DGL":
        graph = dgl.graph(("csc", (indptr, indices, [])), num_nodes=len(indptr) - 1).formats("csc")
        sampler = dgl.dataloading.NeighborSampler(fanouts[::-1])
        batches = dgl.dataloading.DataLoader(graph, seeds, sampler, batch_size=BATCH, shuffle=True)
        return lambda: ((blocks, read, out) for read, out, blocks in batches)

    import dgl.graphbolt as gb

    graph = gb.fused_csc_sampling_graph(indptr, indices)

    def epoch():
        items = gb.ItemSampler(gb.ItemSet(seeds, names="seed_nodes"), batch_size=BATCH, shuffle=True)
        pipe = gb.DataLoader(items.sample_neighbor(graph, fanouts[::-1]), num_workers=0)
        return ((batch.blocks, batch.input_nodes, batch.seed_nodes) for batch in pipe)

    return epoch


def measure(system, model, dataset):
    """In a process of its own: seconds of an epoch, as many times as there are epochs."""
    import numpy as np
    import torch
    from torch.nn import functional

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    features = torch.from_numpy(np.array(column(dataset, "node_types", "features")))
    labels = torch.from_numpy(column(dataset, "node_types", "label").astype(np.int64))
    seeds = torch.from_numpy(column(dataset, "node_types", "split.train").astype(np.int64))
    is_bf16 = system.endswith(BF16)
    epoch = loader(system.removesuffix(BF16), dataset, MODELS[model][0], seeds)
    net = network(model, features.shape[1], classes(dataset))
    is_cast = is_bf16 and model == "gat"
    if is_cast:
        net, features = net.bfloat16(), features.bfloat16()
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)

    def train(batches):
        start = time.perf_counter()
        for _, (blocks, read, out) in zip(range(batches), epoch()):
            rows = torch.index_select(features, 0, read)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_bf16 and not is_cast):
                outputs = net(blocks, rows)
            loss = functional.cross_entropy(outputs.float(), labels[out])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        return (time.perf_counter() - start) / batches

    train(2)
    steps = -(-len(seeds) // BATCH)
    print(json.dumps([train(min(BATCHES, steps - 1)) * steps for _ in range(EPOCHS)]))


def tables(model, dataset, precision):
    """The run file for the same."""
    fanouts, heads, _ = MODELS[model]
    return {
        "dataset": {"path": str(Path(dataset).resolve())},
        "model": {"name": model, "layers": len(fanouts), "hidden": HIDDEN, "heads": heads, "dropout": 0.0},
        "sample": {"fanouts": fanouts, "batch_size": BATCH},
        "train": {"epochs": EPOCHS + 1, "threads": THREADS, "workers": 1, "lr": RATE, "precision": precision,
                  "eval_every": 0},
    }


def main():
    programs, datasets = epochs.programs(sys.argv[1:])
    print("| graph | model | system | seconds an epoch | of them the fastest, the slowest | gnarl's share |")
    print("|---|---|---|---:|---:|---:|")
    for dataset in datasets:
        for model in MODELS:
            peers = ("DGL", "GraphBolt", "DGL" + BF16)
            found = {system: [] for system in (*programs, "gnarl" + BF16, *peers)}
            for _ in range(TURNS):
                for system, program in programs.items():
                    found[system] += epochs.gnarl(program, tables(model, dataset, "f32"))
                found["gnarl" + BF16] += epochs.gnarl(programs["gnarl"], tables(model, dataset, "bf16"))
                for system in peers:
                    found[system] += epochs.peer(__file__, THREADS, system, model, dataset)
            found["floor"] = [epochs.floor(programs["gnarl"], tables(model, dataset, "f32"))]
            epochs.rows(found, (Path(dataset).name, MODELS[model][2]))


if sys.argv[1] == "--measure":
    measure(*sys.argv[2:5])
else:
    main()
