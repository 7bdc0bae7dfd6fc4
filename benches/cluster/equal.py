#!/usr/bin/env python3
"""The same run by threads, by processes, and by machines: are losses and accuracy the same?

    cargo build --profile dist --features mpi,serve
    sudo GNARL_DATA=... benches/cluster/equal.py target/dist/gnarl WORK_FOLDER

Machines are network namespaces (see `hosts` beside this file), so it needs root, and Open MPI. `of parts`: no
rank reads the dataset, each has its parts and asks the others for the rest. Prints a table in Markdown.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from launch import hosts, mpirun

HERE = Path(__file__).resolve().parent
GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
DEADLINE = 120

RUN = """
[model]
name = 'sage'
hidden = {hidden}
dropout = 0.5
[sample]
fanouts = [10, 10]
batch_size = {batch}
[partition]
algorithm = 'spring'
parts = 4
[train]
epochs = {epochs}
lr = 0.003
threads = 2
deadline_seconds = {deadline}
[dataset]
path = '{path}'
"""
SPLIT = "[dataset.split]\ntrain = 0.7\nvalid = 0.15\ntest = 0.15\n"

GRAPHS = {
    "pubmed": dict(hidden=64, batch=1000, epochs=20),
    "coauthor_physics": dict(hidden=64, batch=2000, epochs=5),
    "community-1m": dict(hidden=32, batch=10000, epochs=3),
}


def call(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def dataset(name):
    """The graph's dataset, made if it is not there."""
    out = WORK / name
    if out.exists():
        return out
    if name == "community-1m":
        call(GNARL, "generate", "community", "--nodes", 1_000_000, "--out", out)
        return out
    data = Path(os.environ["GNARL_DATA"]) / name
    features = next(f for f in ("features_csr.npz", "features.npy") if (data / f).exists())
    words = ["--edges", data / "edges.npy", "--features", data / features, "--labels", data / "labels.npy"]
    call(GNARL, "import", "npy", *words, "--out", out)
    return out


WAYS = {
    "1 worker": lambda: ([], ["train.workers=1"]),
    "2 workers": lambda: ([], ["train.workers=2"]),
    "4 workers": lambda: ([], ["train.workers=4"]),
    "2 processes": lambda: (mpirun(2), ["train.engine=mpi"]),
    "4 processes": lambda: (mpirun(4), ["train.engine=mpi"]),
    "3 machines": lambda: (hosts(3, WORK), ["train.engine=mpi"]),
    "3 machines, of parts": lambda: (hosts(3, WORK), ["train.engine=mpi", "partition.servers=ranks", "cache.memory=16MiB"]),
}


def train(name, run, way):
    launcher, sets = WAYS[way]()
    if way.endswith("of parts"):
        parts = WORK / f"{name}-parts"
        if not parts.exists():
            call(GNARL, "partition", dataset(name), "--algorithm", "spring", "--parts", 4, "--out", parts)
        sets = [*sets, f"partition.path={parts}"]
    words = [w for s in [f"output.dir={WORK / 'run'}", *sets] for w in ("--set", s)]
    out = call(*launcher, GNARL, "train", run, *words, "--restart", timeout=3600)
    return json.loads(out.strip().splitlines()[-1])


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    call(HERE / "hosts", "up", 3)
    print("| graph | carried by | test accuracy | largest difference of losses | last loss |")
    print("|---|---|---:|---:|---:|", flush=True)
    try:
        for name, figures in GRAPHS.items():
            run = WORK / f"{name}.toml"
            split = "" if name == "community-1m" else SPLIT
            run.write_text(RUN.format(path=dataset(name), deadline=DEADLINE, **figures) + split)
            first = None
            for way in WAYS:
                summary = train(name, run, way)
                losses = summary["losses"]
                first = first or losses
                apart = max(abs(a - b) for a, b in zip(losses, first, strict=True))
                accuracy = summary["test"]["accuracy"]
                print(f"| {name} | {way} | {accuracy:.4f} | {apart:.1e} | {losses[-1]:.4f} |", flush=True)
    finally:
        call(HERE / "hosts", "down")


main()
