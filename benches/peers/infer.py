#!/usr/bin/env python3
"""Seconds and memory of the outputs of all nodes, on two threads: `gnarl infer` and DGL.

    cargo build --profile dist
    benches/peers/infer.py target/dist/gnarl DATASET... > table.md

DATASET is a directory of gnarl's with dense features, labels and a split `train`. All systems compute the same model
over all neighbors: GraphSAGE (mean) and GCN of three layers, 256 wide, to which gnarl alone adds self loops; GAT of two
layers, four heads of 64, without. gnarl's seconds are those of the whole command, which opens the files of a run and
writes the logits; DGL's are those of the passes alone, over the whole graph at once, and layer by layer in batches of
4,096 nodes. Memory is the largest resident set of a process that did nothing else, mapped files included. Systems take turns; figures are medians. For DGL's best,
preload tcmalloc and do not let OPENBLAS_CORETYPE narrow its matrix products.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import epochs
from dataset import classes, column, lists

THREADS, TURNS, BATCH = 2, 3, 4096
HIDDEN, HEADS = 256, 4
MODELS = {"sage": 3, "gcn": 3, "gat": 2}
WAYS = {"gnarl": [], "gnarl, 256 MiB": ["--memory", "256MiB"]}


def network(model, inputs, outputs):
    """DGL's convolutions, and the function between them."""
    import dgl.nn.pytorch as layers
    import torch
    from torch.nn import functional

    depth = MODELS[model]
    widths = [inputs, *[HIDDEN] * (depth - 1), outputs]
    pairs = list(zip(widths, widths[1:]))
    free = {"allow_zero_in_degree": True}
    if model == "sage":
        return [layers.SAGEConv(i, o, "mean") for i, o in pairs], functional.relu_
    if model == "gcn":
        return [layers.GraphConv(i, o, **free) for i, o in pairs], functional.relu_

    class Head(torch.nn.Module):
        """Heads side by side, or their mean."""

        def __init__(self, inputs, outputs, last):
            super().__init__()
            self.last = last
            self.layer = layers.GATConv(inputs, outputs if last else outputs // HEADS, HEADS, **free)

        def forward(self, graph, rows):
            found = self.layer(graph, rows)
            return found.mean(1) if self.last else found.flatten(1)

    return [Head(i, o, n + 1 == depth) for n, (i, o) in enumerate(pairs)], functional.elu_


def measure(way, model, dataset):
    """In a process of its own: seconds of the passes, and peak memory."""
    import dgl
    import numpy as np
    import torch

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    features = torch.from_numpy(np.array(column(dataset, "node_types", "features")))
    indptr, indices = map(torch.from_numpy, lists(dataset))
    nodes = len(indptr) - 1
    if model == "sage":
        graph = dgl.graph(("csc", (indptr, indices, [])), num_nodes=nodes).formats("csc")
    else:
        # GCN needs degrees of both ends and GAT numbers of edges, which lists alone do not have.
        graph = dgl.graph((indices, torch.repeat_interleave(torch.arange(nodes), indptr.diff())), num_nodes=nodes)
        graph.create_formats_()
    net, bend = network(model, features.shape[1], classes(dataset))

    @torch.no_grad()
    def whole():
        rows = features
        for number, layer in enumerate(net):
            rows = layer(graph, rows)
            rows = bend(rows) if number + 1 < len(net) else rows
        return rows

    @torch.no_grad()
    def by_batches():
        rows = features
        sampler = dgl.dataloading.MultiLayerFullNeighborSampler(1)
        order = torch.arange(nodes)
        for number, layer in enumerate(net):
            made = None
            for read, out, blocks in dgl.dataloading.DataLoader(graph, order, sampler, batch_size=BATCH):
                found = layer(blocks[0], rows[read])
                found = bend(found) if number + 1 < len(net) else found
                made = torch.empty(nodes, found.shape[1]) if made is None else made
                made[out[0] : out[-1] + 1] = found
            rows = made
        return rows

    start = time.perf_counter()
    whole() if way == "whole" else by_batches()
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))


def trained(gnarl, model, dataset, folder):
    """A run whose weights are those of an epoch."""
    depth = MODELS[model]
    words = [gnarl, "train", Path(folder) / "run.toml"]
    tables = {
        "dataset": {"path": str(Path(dataset).resolve())},
        "model": {"name": model, "layers": depth, "hidden": HIDDEN, "heads": HEADS, "out_heads": HEADS, "self_loops": False},
        "sample": {"fanouts": [3] * depth, "batch_size": 8192},
        "train": {"epochs": 1, "threads": THREADS, "eval_every": 0},
        "evaluate": {"splits": []},
        "output": {"dir": f"{folder}/run"},
    }
    lines = (f"[{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in t.items()) for name, t in tables.items())
    words[2].write_text("\n".join(lines))
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(done.stderr)


def ours(gnarl, folder, more):
    words = [gnarl, "infer", f"{folder}/run", "--what", "logits", "--out", f"{folder}/logits.npy", "--force", *more]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(done.stderr)
    return seconds, json.loads(done.stdout.splitlines()[-1])["peak_rss_bytes"]


def main():
    gnarl, *datasets = sys.argv[1:]
    gnarl = Path(gnarl).resolve()
    print("| graph | model | system | seconds | fastest, slowest | gnarl's share | GB | gnarl's share |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for dataset in datasets:
        for model in MODELS:
            found = {system: [] for system in (*WAYS, "DGL, whole", "DGL, batches")}
            with tempfile.TemporaryDirectory() as folder:
                trained(gnarl, model, dataset, folder)
                for _ in range(TURNS):
                    for system, more in WAYS.items():
                        found[system].append(ours(gnarl, folder, more))
                    for way in ("whole", "batches"):
                        found[f"DGL, {way}"].append(epochs.peer(__file__, THREADS, way, model, dataset))
            rows(found, (Path(dataset).name, model))


def rows(found, before):
    """A row in Markdown for each system: gnarl's first way beside it."""
    own = [statistics.median(each) for each in zip(*found["gnarl"])]
    for system, turns in found.items():
        times = [seconds for seconds, _ in turns]
        middle, peak = (statistics.median(each) for each in zip(*turns))
        cells = [*before, system, f"{middle:.2f}", f"{min(times):.2f}, {max(times):.2f}", f"{own[0] / middle:.2f}"]
        print("| " + " | ".join([*cells, f"{peak / 1e9:.2f}", f"{own[1] / peak:.2f}"]) + " |", flush=True)


if sys.argv[1] == "--measure":
    measure(*sys.argv[2:5])
else:
    main()
