"""Writes a dataset from a data frame of Polars with ``from_tables``, and tells its memory beside the frame.

    python benches/python/tables.py [EDGES] [--strings] [--memory BYTES]

Of this process it is the growth of the resident peak, of the import's process its resident peak, mapped files included.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import gnarl


def peak() -> int:
    """The resident peak of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise RuntimeError("no VmHWM")


def frame(edges: int, strings: bool) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    nodes = max(1, edges // 20)
    columns = {name: draw.integers(0, nodes, edges) for name in ("src", "dst")}
    made = pl.DataFrame(columns | {"weight": draw.random(edges, dtype=np.float32)})
    if strings:
        made = made.with_columns(pl.format("n{}", name).alias(name) for name in columns)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("edges", nargs="?", type=int, default=50_000_000)
    parser.add_argument("--strings", action="store_true")
    parser.add_argument("--memory", type=int, default=1 << 30)
    parser.add_argument("--dir", default=None)
    args = parser.parse_args()
    table = frame(args.edges, args.strings)
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        Path("/proc/self/clear_refs").write_text("5")
        before = peak()
        start = time.perf_counter()
        graph = gnarl.from_tables(Path(folder) / "graph", table, memory=args.memory, quiet=True)
        seconds = time.perf_counter() - start
        known = graph.user_ids(np.arange(3))
        result = {
            "edges": graph.num_edges(),
            "nodes": graph.num_nodes(),
            "table_bytes": table.estimated_size(),
            "seconds": round(seconds, 1),
            "growth_bytes": peak() - before,
            "import_peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
            "first_ids": [str(id) for id in known],
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
