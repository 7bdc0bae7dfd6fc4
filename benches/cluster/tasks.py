#!/usr/bin/env python3
"""Typed graphs, links and labels of edges by threads, by processes, and by hosts that have only their own parts: are losses
and scores the same?

    cargo build --profile dist --features mpi,serve
    sudo GNARL_DATA=... benches/cluster/tasks.py target/dist/gnarl WORK_FOLDER [TASK ...]

Hosts are network namespaces (see `hosts` beside this file), so it needs root, and Open MPI. Each host's folder lacks the
files of the others' parts, and the dataset. Vertex cuts and edge cuts; neighbors are drawn by `sample.method = "exact"`, of
which vertex cuts have the same as the whole graph. Prints a table in Markdown.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from launch import hosts, mpirun

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
HOSTS, PARTS = 3, 6

TYPED = """
[dataset]
path = 'typed'
[task]
node_type = 'paper'
[model]
hidden = 32
[sample]
fanouts = [5, 5]
batch_size = 500
[output]
dir = 'run'
"""

# Run file, and settings that make it short.
TASKS = {
    "generated types, R-GCN": (None, ["model.name=rgcn", "train.epochs=3"]),
    "generated types, R-GAT": (None, ["model.name=rgat", "train.epochs=3"]),
    "generated types, HGT": (None, ["model.name=hgt", "train.epochs=3"]),
    "AIFB, R-GCN": ("heterogeneous/rgcn-aifb.toml", ["train.epochs=4"]),
    "IMDB, R-GCN": ("heterogeneous/rgcn-imdb.toml", ["train.epochs=4"]),
    "Coauthor Physics, links, GraphSAGE": ("links/coauthor_physics.toml", ["train.epochs=1"]),
    "FB15k-237, links, DistMult": ("fb15k237/distmult.toml", ["train.epochs=2"]),
    "FB15k-237, links, R-GCN": ("fb15k237/rgcn.toml", ["train.epochs=1", "sample.batch_size=16384"]),
    "Kinships, labels of edges, R-GCN": ("edges/kinships.toml", ["train.epochs=4"]),
}


def call(*words, **more):
    out = subprocess.run([str(w) for w in words], text=True, capture_output=True, cwd=WORK, **more)
    if out.returncode:
        sys.exit(f"{words}\n{out.stderr}")
    return out.stdout


def parts(dataset, run, sets, layout):
    """A folder for each host, with the files of its own parts."""
    whole = WORK / "parts"
    shutil.rmtree(whole, ignore_errors=True)
    algorithm = "adadne" if layout == "vertex-cut" else "spring"
    how = ["--algorithm", algorithm, "--layout", layout, "--parts", PARTS, "--out", whole]
    of_edges = any(f'kind = "{kind}' in Path(run).read_text() for kind in ("link", "edge"))
    task = ["--task", run, *[w for s in sets for w in ("--set", s)]] if of_edges else []
    call(GNARL, "partition", dataset, *how, *task)
    for host in range(HOSTS):
        own = WORK / f"parts-{host}"
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(whole, own)
        for part in range(PARTS):
            if part * HOSTS // PARTS != host:
                shutil.rmtree(own / f"part-{part}")
    shutil.rmtree(whole)


def train(run, sets, launcher=(), place=""):
    words = [w for s in ["output.dir=run", "sample.method=exact", *sets] for w in ("--set", s)]
    command = " ".join(f"'{w}'" for w in [GNARL, "train", run, *words, "--restart"])
    out = call(*launcher, "sh", "-c", f"cd '{WORK}' && exec {command} {place}", timeout=3600)
    return json.loads(out.strip().splitlines()[-1])


def ways(run, sets):
    yield "1 worker", train(run, sets)
    yield "4 threads", train(run, [*sets, "train.workers=4"])
    yield "4 processes", train(run, [*sets, "train.engine=mpi"], mpirun(4))
    place = next(line.split('"')[1] if '"' in line else line.split("'")[1]
                 for line in Path(run).read_text().splitlines() if line.startswith("path = "))
    for layout in ("edge-cut", "vertex-cut"):
        parts(place, run, sets, layout)
        served = [*sets, "dataset.path=", "train.engine=mpi", "partition.servers=ranks", "cache.memory=16MiB"]
        where = f'--set "partition.path={WORK}/parts-$OMPI_COMM_WORLD_RANK"'
        yield f"3 hosts, {layout} parts of their own", train(run, served, hosts(HOSTS, WORK), where)


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    typed = WORK / "typed.toml"
    typed.write_text(TYPED)
    if not (WORK / "typed").exists():
        sizes = ["--nodes", 20_000, "--edges", 200_000, "--communities", 8, "--features", 32]
        call(GNARL, "generate", "typed", *sizes, "--out", WORK / "typed")
    call(HERE / "hosts", "up", HOSTS)
    print("| task | carried by | score | largest difference of losses | last loss |")
    print("|---|---|---:|---:|---:|", flush=True)
    try:
        for name, (run, sets) in TASKS.items():
            if sys.argv[3:] and not any(word in name for word in sys.argv[3:]):
                continue
            run = str(typed if run is None else EXAMPLES / run)
            first = None
            for way, summary in ways(run, sets):
                losses = summary["losses"]
                first = first or losses
                apart = max(abs(a - b) for a, b in zip(losses, first, strict=True))
                score = summary["test"][summary["metric"]]
                row = f"| {name} | {way} | {score:.4f} | {apart:.1e} | {losses[-1]:.4f} |"
                print(row, flush=True)
    finally:
        call(HERE / "hosts", "down")


main()
