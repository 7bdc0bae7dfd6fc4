"""Batches a second, features and labels included: gnarl's NeighborLoader against DGL's DataLoader and GraphBolt's, and
epochs of one GraphSAGE in PyTorch fed by each.

    loaders.py DATA GRAPH [--turns N] [--systems a,b] [--train]

DATA has folders of arrays as the peers' scripts make them: src.npy, dst.npy, indptr.npy, feat.npy, label.npy,
train_idx.npy. Needs PyTorch, PyTorch Geometric, DGL and the package `gnarl` in one environment. Each measurement is a
process of its own with two threads, in turns; batches are of 1024 seeds with the fan-outs 15, 10, 5. DGL and GraphBolt
run as fast as they can: with their own worker processes and without, and with the allocator that is preloaded.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

FANOUTS = [15, 10, 5]
SIZE = 1024
THREADS = 2
SYSTEMS = ["gnarl", "dgl", "dgl-1", "dgl-2", "graphbolt", "graphbolt-1", "graphbolt-2"]


def arrays(folder):
    import numpy as np

    names = ["src", "dst", "indptr", "feat", "label", "train_idx"]
    return {name: np.load(folder / f"{name}.npy") for name in names}


def gnarl_batches(folder):
    """The loader, and what to take of a batch: input rows, labels, edges of all layers."""
    import gnarl
    from gnarl.pyg import NeighborLoader

    place = folder / "gnarl"
    if not place.exists():
        import numpy as np

        found = arrays(folder)
        edges = np.stack([found["src"], found["dst"]])
        gnarl.from_arrays(
            place,
            edges,
            num_nodes=len(found["feat"]),
            features=found["feat"],
            labels=found["label"],
            splits={"train": found["train_idx"]},
        )
    loader = NeighborLoader(place, FANOUTS, "train", batch_size=SIZE, shuffle=True, threads=THREADS)
    return lambda: ((batch, batch.x, batch.y[: batch.batch_size]) for batch in loader)


def dgl_batches(folder, workers):
    import dgl
    import torch

    found = {name: torch.from_numpy(values) for name, values in arrays(folder).items()}
    graph = dgl.graph(("csc", (found["indptr"], found["src"], [])), num_nodes=len(found["feat"])).formats("csc")
    sampler = dgl.dataloading.NeighborSampler(FANOUTS[::-1])
    loader = dgl.dataloading.DataLoader(
        graph, found["train_idx"], sampler, batch_size=SIZE, shuffle=True, drop_last=False, num_workers=workers
    )
    features, labels = found["feat"], found["label"]
    return lambda: ((blocks, features[inputs], labels[seeds]) for inputs, seeds, blocks in loader)


def graphbolt_batches(folder, workers):
    import dgl.graphbolt as gb
    import torch

    found = {name: torch.from_numpy(values) for name, values in arrays(folder).items()}
    graph = gb.fused_csc_sampling_graph(found["indptr"], found["src"])
    items = gb.ItemSet((found["train_idx"], found["label"][found["train_idx"]]), names=("seed_nodes", "labels"))
    store = gb.BasicFeatureStore({("node", None, "feat"): gb.TorchBasedFeature(found["feat"])})

    def epoch():
        pipe = gb.ItemSampler(items, batch_size=SIZE, shuffle=True)
        pipe = pipe.sample_neighbor(graph, FANOUTS[::-1]).fetch_feature(store, node_feature_keys=["feat"])
        for batch in gb.DataLoader(pipe, num_workers=workers):
            yield batch.blocks, batch.node_features["feat"], batch.labels

    return epoch


def batches_of(system, folder):
    if system == "gnarl":
        return gnarl_batches(folder)
    name, _, workers = system.partition("-")
    return {"dgl": dgl_batches, "graphbolt": graphbolt_batches}[name](folder, int(workers or 0))


def sage(inputs, outputs):
    """GraphSAGE of three layers with means, over blocks and over one edge list alike."""
    import torch
    from torch import nn

    class Sage(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [inputs, 256, 256, outputs]
            pairs = list(itertools.pairwise(widths))
            self.own = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
            self.neighbors = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairs)

        def forward(self, layers, rows):
            for number, (count, edges) in enumerate(layers):
                matrix, degrees = edges
                summed = torch.sparse.mm(matrix, rows) / degrees
                rows = self.own[number](rows[:count]) + self.neighbors[number](summed)
                if number < 2:
                    rows = torch.relu(rows)
            return rows

    return Sage()


def layers_of(batch):
    """For each layer its destinations, a sparse matrix of destinations × sources, and their numbers of edges."""
    import torch

    def layer(indptr, indices, sources):
        count = len(indptr) - 1
        degrees = (indptr[1:] - indptr[:-1]).clamp(min=1).unsqueeze(1)
        values = torch.ones(len(indices))
        return count, (torch.sparse_csr_tensor(indptr, indices, values, (count, sources)), degrees)

    if isinstance(batch, list):
        for block in batch:
            indptr, indices, _ = block.adj_tensors("csc")
            yield layer(indptr, indices, block.num_src_nodes())
        return
    nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
    for number in range(3):
        # The last layer needs the edges of the first hop alone.
        count, drawn = sum(nodes[: 3 - number]), sum(edges[: 3 - number])
        sources = sum(nodes[: 4 - number])
        ends = batch.edge_index[:, :drawn]
        indptr = torch.zeros(count + 1, dtype=torch.int64)
        indptr[1:] = torch.bincount(ends[1], minlength=count).cumsum(0)
        yield layer(indptr, ends[0], sources)


def measure(system, folder, train):
    import torch

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    batches = batches_of(system, folder)
    model = optimizer = None
    edges = rows = 0

    def epoch(limit=None):
        nonlocal model, optimizer, edges, rows
        edges = rows = count = 0
        loss_sum = 0.0
        for batch, inputs, labels in batches():
            rows += len(inputs)
            edges += sum(block.num_edges() for block in batch) if isinstance(batch, list) else batch.num_edges
            count += 1
            if train:
                if model is None:
                    model = sage(inputs.shape[1], 64)
                    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
                loss = torch.nn.functional.cross_entropy(model(layers_of(batch), inputs), labels)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                loss_sum += loss.item()
            if count == limit:
                break
        return count, loss_sum / max(count, 1)

    epoch()
    start = time.perf_counter()
    count, loss = epoch()
    seconds = time.perf_counter() - start
    return {
        "system": system,
        "seconds": seconds,
        "batches_per_second": count / seconds,
        "edges_per_batch": edges / count,
        "input_nodes_per_batch": rows / count,
        "loss": loss,
    }


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("graph")
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--systems", default=",".join(SYSTEMS))
    options.add_argument("--train", action="store_true")
    options.add_argument("--one", help=argparse.SUPPRESS)
    given = options.parse_args()
    folder = given.data / given.graph
    if given.one:
        print(json.dumps(measure(given.one, folder, given.train)))
        return
    systems = given.systems.split(",")
    found = {system: [] for system in systems}
    environment = os.environ | {
        "OMP_NUM_THREADS": str(THREADS),
        "MKL_NUM_THREADS": str(THREADS),
        "DGLBACKEND": "pytorch",
    }
    if "gnarl" in systems:
        gnarl_batches(folder)
    for _ in range(given.turns):
        for system in systems:
            command = [sys.executable, __file__, given.data, given.graph, "--one", system]
            command += ["--train"] if given.train else []
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                print(f"{system}: {ran.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            found[system].append(json.loads(ran.stdout.splitlines()[-1]))
    for runs in found.values():
        if runs:
            rates = sorted(run["batches_per_second"] for run in runs)
            print(json.dumps({**runs[0], "batches_per_second": statistics.median(rates), "all": rates}))


if __name__ == "__main__":
    main()
