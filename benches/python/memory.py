"""Anonymous memory of training on a graph whose features take 2.05 GB: by gnarl's loader, and by DGL's with the graph in
memory beside it.

    memory.py DATA [--batches N] [--systems gnarl,dgl]

Needs PyTorch, PyTorch Geometric, DGL and the package `gnarl` in one environment. Each runs in a process of its own, whose
peak of anonymous memory is told, and that before the first batch. Run it in a control group to see what a limit does.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

NODES, EDGES, WIDTH, CLASSES = 1_000_000, 19_000_000, 512, 32
FANOUTS, SIZE = [10, 5], 512


def make(folder):
    import numpy as np

    import gnarl

    made = folder / "wide.npy"
    if not made.exists():
        draw = np.random.default_rng(0)
        rows = np.lib.format.open_memmap(made, mode="w+", dtype=np.float32, shape=(NODES, WIDTH))
        for first in range(0, NODES, 50_000):
            rows[first : first + 50_000] = draw.standard_normal((50_000, WIDTH), dtype=np.float32)
        rows.flush()
    if not (folder / "wide").exists():
        draw = np.random.default_rng(1)
        gnarl.from_arrays(
            folder / "wide",
            draw.integers(0, NODES, (2, EDGES)),
            features=np.load(made, mmap_mode="r"),
            labels=draw.integers(0, CLASSES, NODES),
            splits={"train": draw.choice(NODES, 100_000, replace=False)},
        )


def peak():
    """Bytes of anonymous memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def batches(system, folder):
    import numpy as np
    import torch

    if system == "gnarl":
        from gnarl.pyg import NeighborLoader

        loader = NeighborLoader(folder / "wide", FANOUTS, "train", batch_size=SIZE, shuffle=True, threads=2)
        for batch in loader:
            yield batch.x, batch.edge_index, batch.y[: batch.batch_size]
        return
    import dgl

    import gnarl

    dataset = gnarl.open(folder / "wide")
    source, destination = (torch.from_numpy(ends) for ends in dataset.edges())
    graph = dgl.graph((source, destination), num_nodes=NODES)
    features = torch.from_numpy(np.load(folder / "wide.npy"))
    labels = torch.from_numpy(dataset.labels())
    train = torch.from_numpy(dataset.split("train"))
    sampler = dgl.dataloading.NeighborSampler(FANOUTS[::-1])
    loader = dgl.dataloading.DataLoader(graph, train, sampler, batch_size=SIZE, shuffle=True)
    for inputs, seeds, blocks in loader:
        ends = torch.stack(blocks[0].edges())
        yield features[inputs], ends, labels[seeds]


def run(system, folder, count):
    import torch
    from torch_geometric.nn import GraphSAGE

    torch.set_num_threads(2)
    model = GraphSAGE(WIDTH, 64, 2, CLASSES)
    optimizer = torch.optim.Adam(model.parameters())
    most = before = peak()
    start = time.perf_counter()
    for number, (x, edge_index, y) in enumerate(batches(system, folder)):
        loss = torch.nn.functional.cross_entropy(model(x, edge_index)[: len(y)], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        most = max(most, peak())
        if number + 1 == count:
            break
    print(
        json.dumps(
            {
                "system": system,
                "batches": number + 1,
                "anonymous": most,
                "before": before,
                "loss": loss.item(),
                "seconds": time.perf_counter() - start,
            }
        )
    )


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("--batches", type=int, default=100)
    options.add_argument("--systems", default="gnarl,dgl")
    options.add_argument("--one", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        run(given.one, given.data, given.batches)
        return
    make(given.data)
    for system in given.systems.split(","):
        command = [sys.executable, __file__, given.data, "--one", system, "--batches", str(given.batches)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        print(ran.stdout.strip() or f"{system} ended with {ran.returncode}: {ran.stderr.strip()[-300:]}")


if __name__ == "__main__":
    main()
