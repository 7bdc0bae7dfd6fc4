"""Anonymous memory and seconds of a GraphSAGE of PyTorch Geometric over all nodes: layer by layer by `gnarl.pyg.infer`, and
over the whole graph in memory, whose sums are products with a sparse matrix.

    infer.py DATA GRAPH [--batch-size N]

DATA has folders of arrays as for loaders.py. Needs PyTorch, PyTorch Geometric and the package `gnarl`. Each runs in a process
of its own; the largest difference of their outputs is told at the end.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path


def anonymous():
    """Bytes of anonymous memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


class Peak(threading.Thread):
    """The most anonymous memory while it runs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = self.before = anonymous()
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.01):
            self.most = max(self.most, anonymous())


def run(form, folder, batch_size):
    import numpy as np
    import torch
    from torch_geometric.nn import GraphSAGE

    import gnarl
    from gnarl.pyg import infer

    torch.set_num_threads(2)
    torch.manual_seed(0)
    dataset = gnarl.open(folder / "gnarl")
    model = GraphSAGE(dataset.num_features(), 256, 3, 47).eval()
    out = folder / f"{form}.npy"
    peak = Peak()
    peak.start()
    start = time.perf_counter()
    if form == "layers":
        infer(model, dataset, out, batch_size=batch_size, force=True)
    else:
        with torch.no_grad():
            x = torch.from_numpy(dataset.features())
            source, destination = torch.from_numpy(dataset.edges())
            order = destination.argsort(stable=True)
            indptr = torch.zeros(len(x) + 1, dtype=torch.int64)
            indptr[1:] = torch.bincount(destination, minlength=len(x)).cumsum(0)
            adjacency = torch.sparse_csr_tensor(indptr, source[order], torch.ones(len(order)), (len(x), len(x)))
            np.save(out, model(x, adjacency).numpy())
    seconds = time.perf_counter() - start
    peak.is_over.set()
    peak.join()
    print(json.dumps({"form": form, "seconds": seconds, "anonymous": peak.most, "before": peak.before}))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("graph")
    options.add_argument("--batch-size", type=int, default=1024)
    options.add_argument("--one", help=argparse.SUPPRESS)
    given = options.parse_args()
    folder = given.data / given.graph
    if given.one:
        run(given.one, folder, given.batch_size)
        return
    import numpy as np
    from loaders import gnarl_batches

    gnarl_batches(folder)
    for form in ("layers", "whole"):
        command = [sys.executable, __file__, given.data, given.graph, "--one", form]
        command += ["--batch-size", str(given.batch_size)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        print(ran.stdout.strip() or f"{form} ended with {ran.returncode}: {ran.stderr.strip()[-300:]}")
    layers, whole = (np.load(folder / f"{form}.npy", mmap_mode="r") for form in ("layers", "whole"))
    print(json.dumps({"largest difference": float(np.abs(layers - whole).max()), "largest": float(np.abs(whole).max())}))


if __name__ == "__main__":
    main()
