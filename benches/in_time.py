#!/usr/bin/env python3
"""Link prediction as of times against link prediction at no time: microseconds for each sampled edge.

    cargo build --profile dist
    pip install numpy
    benches/in_time.py target/dist/gnarl WORK_FOLDER

Users rate items, popular ones more often. Times are drawn by positions in lists (`neighbor`) and by random numbers of edges
(`exact`), as the parts of vertex cuts draw. R-GCN with fan-outs 10 and 5 is trained on a fifth of the edges, and the message
graph has all or a fifth of them; so times are given for each sampled edge. Prints a table in Markdown.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
USERS, ITEMS, EDGES, WIDTH = 100_000, 20_000, 2_000_000, 64
TYPE = "user:rates:item"

RUN = f"""
[dataset]
path = "ratings"
[task]
kind = "link-prediction"
edge_type = "{TYPE}"
valid = 0.4
test = 0.4
split_by = "endpoints"
[model]
name = "rgcn"
hidden = 64
[embedding]
dim = 64
[negatives]
kind = "uniform"
count = 1
[sample]
fanouts = [10, 5]
batch_size = 4096
[train]
epochs = 1
threads = 2
[evaluate]
splits = []
[output]
dir = "run"
"""


def call(*words):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, cwd=WORK)
    if done.returncode:
        sys.exit(f"{words}\n{done.stderr}")
    return done.stdout


def dataset():
    draw = np.random.default_rng(1)
    ends = [(draw.random(EDGES) ** power * count).astype(np.uint32) for power, count in ((2, USERS), (3, ITEMS))]
    np.save(WORK / "edges.npy", np.stack(ends))
    np.save(WORK / "times.npy", np.arange(EDGES, dtype=np.int64) * 7)
    for name, count in ("users", USERS), ("items", ITEMS):
        np.save(WORK / f"{name}.npy", draw.normal(size=(count, WIDTH)).astype(np.float16))
    edges = ["--edges", f"{TYPE}=edges.npy", "--edge-times", f"{TYPE}=times.npy", "--reverse"]
    nodes = ["--features", "user=users.npy", "--features", "item=items.npy"]
    call(GNARL, "import", "npy", *edges, *nodes, "--out", "ratings")


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "ratings").exists():
        dataset()
    (WORK / "run.toml").write_text(RUN)
    print("| `sample.time` | `sample.method` | sampled edges | sampling | features | computing, 2 threads | epoch |")
    print("|---|---|---:|---:|---:|---:|---:|", flush=True)
    for rule, method in [(None, "neighbor"), *((rule, way) for rule in ("last", "uniform") for way in ("neighbor", "exact"))]:
        sets = ["--set", f"sample.method={method}", *(["--set", f"sample.time={rule}"] if rule else [])]
        call(GNARL, "train", "run.toml", "--restart", *sets)
        epoch = json.loads((WORK / "run" / "metrics.jsonl").read_text().splitlines()[-1])
        edges = epoch["sampled_edges"]
        each = [f"{1e6 * epoch['stages'][stage] / edges:.3f} µs" for stage in ("sample", "fetch", "compute")]
        print(f"| {rule or '–'} | {method} | {edges / 1e6:.1f} M | {' | '.join(each)} | {epoch['seconds']:.1f} s |", flush=True)


main()
