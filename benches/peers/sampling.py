#!/usr/bin/env python3
"""Neighbors sampled a second by one thread, and bytes an edge in memory: gnarl, DGL, GraphBolt and PyG.

    cargo build --profile dist
    benches/peers/sampling.py target/dist/gnarl DATASET... > table.md

DATASET is a directory of gnarl's whose graph all of them read. Runs with a Python that has dgl 2.1 (and its
GraphBolt), or torch_geometric with pyg-lib; a system that is not there is left out. Systems take turns,
three times; the table has medians. Blocks are made (relabelled, destinations first) by all of them.

DGL, GraphBolt and PyG have ids and offsets of 64 bits, which they take by default and their loaders and
examples use. `int32` is the same system with ids and offsets of 32 bits (`graph.int()` of DGL, int32 tensors
for GraphBolt), which a user has to ask for and which ends at 2^31 edges; left out where it fails. Their edge
weights are float32: 16 bits are no type of probabilities for them. gnarl draws by weights of 32 and of 16
bits, and each is compared with the same figures of the others.
"""

import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from dataset import lists

FANOUTS, BATCH, BATCHES, TURNS = [15, 10, 5], 1024, 20, 3


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def arrays(dataset, weighted):
    import numpy as np

    indptr, indices = lists(dataset)
    weights = np.random.default_rng(0).random(len(indices), dtype=np.float32) if weighted else None
    return indptr, indices, weights


def timed(sample, nodes):
    """Edges a second over batches of shuffled nodes."""
    import torch

    torch.set_num_threads(1)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    sample(order[-2 * BATCH:])
    start = time.perf_counter()
    edges = sample(order[:BATCHES * BATCH])
    return edges / (time.perf_counter() - start)


def dgl(indptr, indices, weights, narrow=False):
    import dgl
    import torch

    graph = dgl.graph(("csc", (torch.from_numpy(indptr), torch.from_numpy(indices), [])), num_nodes=len(indptr) - 1)
    graph = graph.formats("csc")
    if weights is not None:
        graph.edata["w"] = torch.from_numpy(weights)
    graph = graph.int() if narrow else graph
    sampler = dgl.dataloading.NeighborSampler(FANOUTS[::-1], prob="w" if weights is not None else None)

    def sample(seeds):
        seeds = seeds.to(graph.idtype)
        batches = (sampler.sample_blocks(graph, batch)[2] for batch in seeds.split(BATCH))
        return sum(block.num_edges() for blocks in batches for block in blocks)

    return graph, sample


def graphbolt(indptr, indices, weights, narrow=False):
    import dgl.graphbolt as gb
    import torch

    ids = torch.int32 if narrow else torch.int64
    attributes = {"w": torch.from_numpy(weights)} if weights is not None else None
    lists = (torch.from_numpy(indptr).to(ids), torch.from_numpy(indices).to(ids))
    graph = gb.fused_csc_sampling_graph(*lists, edge_attributes=attributes)
    name = "w" if weights is not None else None

    def sample(seeds):
        items = gb.ItemSet(seeds.to(ids), names="seed_nodes")
        pipe = gb.ItemSampler(items, batch_size=BATCH)
        pipe = pipe.sample_neighbor(graph, FANOUTS[::-1], prob_name=name)
        return sum(block.num_edges() for batch in gb.DataLoader(pipe, num_workers=0) for block in batch.blocks)

    return graph, sample


def pyg(indptr, indices, weights):
    import pyg_lib  # noqa: F401  (without it PyG has no such sampler of its own)
    import torch

    indptr, indices = torch.from_numpy(indptr), torch.from_numpy(indices)
    weights = torch.from_numpy(weights) if weights is not None else None

    def sample(seeds):
        call = torch.ops.pyg.neighbor_sample
        batches = seeds.split(BATCH)
        return sum(len(call(indptr, indices, batch, FANOUTS, None, None, weights, True)[0]) for batch in batches)

    return (indptr, indices, weights), sample


PEERS = {
    "DGL": dgl,
    "DGL int32": functools.partial(dgl, narrow=True),
    "GraphBolt": graphbolt,
    "GraphBolt int32": functools.partial(graphbolt, narrow=True),
    "PyG": pyg,
}


def measure(what, system, dataset, weighted):
    """In a process of its own: edges a second, or bytes an edge that stay."""
    try:
        # Libraries come first, so that their memory is not counted.
        import numpy as np

        PEERS[system](np.array([0, 1, 1]), np.array([1]), np.ones(1, np.float32) if weighted else None)
    except ImportError:
        print(json.dumps(None))
        return
    before = resident()
    given = arrays(dataset, weighted)
    nodes, edges = len(given[0]) - 1, len(given[1])
    graph, sample = PEERS[system](*given)
    del given
    if what == "speed":
        print(json.dumps(timed(sample, nodes)))
    else:
        gc.collect()
        print(json.dumps((resident() - before) / edges))
    del graph


def peer(system, dataset, weighted):
    def found(what, **more):
        words = [sys.executable, __file__, "--measure", what, system, dataset, str(int(weighted))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch", **more}
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        if done.returncode != 0 and "int32" in system:
            print(f"{system}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return None
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    speed = found("speed")
    # Some allocators keep what was freed.
    size = speed and found("memory", LD_PRELOAD="")
    return size and (speed, size)


def ours(gnarl, dataset, rule, weights):
    words = [gnarl, "bench", "sample", dataset, "--rule", rule, "--weight-type", weights]
    words += ["--batches", str(BATCHES), "--batch-size", str(BATCH)]
    result = json.loads(subprocess.check_output(words, stderr=subprocess.DEVNULL, text=True).splitlines()[-1])
    return result["edges_per_second"], result["bytes_per_edge"]


def main():
    gnarl, *datasets = sys.argv[1:]
    print("| graph | draw | system | million edges a second | gnarl's times | bytes an edge | gnarl's share |")
    print("|---|---|---|---:|---:|---:|---:|")
    for dataset in datasets:
        for rule, types in {"uniform": ["f32"], "weighted": ["f32", "f16"]}.items():
            found = {}
            for _ in range(TURNS):
                turn = {weights: ours(gnarl, dataset, rule, weights) for weights in types}
                turn |= {system: peer(system, dataset, rule == "weighted") for system in PEERS}
                for system, figures in turn.items():
                    if figures:
                        found.setdefault(system, []).append(figures)
            middle = {s: [statistics.median(column) for column in zip(*all)] for s, all in found.items()}
            for weights in types:
                draw = f"{rule} by {weights}" if rule == "weighted" else rule
                rows = {"gnarl": middle[weights], **{s: middle[s] for s in PEERS if s in middle}}
                table(Path(dataset).name, draw, rows)


def table(graph, draw, rows):
    """Prints the figures of all systems, and gnarl's beside them."""
    speed, size = rows["gnarl"]
    for system, (theirs, bytes_an_edge) in rows.items():
        print(f"| {graph} | {draw} | {system} | {theirs / 1e6:.1f} | {speed / theirs:.2f} "
              f"| {bytes_an_edge:.1f} | {size / bytes_an_edge:.2f} |", flush=True)


if sys.argv[1] == "--measure":
    measure(*sys.argv[2:5], sys.argv[5] == "1")
else:
    main()
