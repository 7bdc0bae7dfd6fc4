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
import random
import shutil
import subprocess
import sys
from pathlib import Path

from launch import hosts, mpirun, own_parts

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

RATINGS = """
[dataset]
path = 'ratings'
[task]
kind = "edge-regression"
edge_type = "user:rates:item"
[model]
name = "rgcn"
hidden = 32
[embedding]
dim = 32
[sample]
fanouts = [5, 5]
batch_size = 500
[output]
dir = 'run'
"""

IN_TIME = RATINGS.replace("edge-regression", "link-prediction").replace("[sample]", """[negatives]
kind = "uniform"
count = 4
[sample]
time = "last\"""")

# Adam divides gradients by their size, so that those of rounding errors alone move weights as others do; models whose losses
# differ by more than 1e-4 for it, whatever the hosts, are compared without.
SGD = ["optimizer.name=sgd", "train.lr=0.1"]

# Run file, and settings that make it short.
TASKS = {
    "generated types, R-GCN": (TYPED, ["model.name=rgcn", "train.epochs=3"]),
    "generated types, R-GAT": (TYPED, ["model.name=rgat", "train.epochs=3", *SGD]),
    "generated types, HGT": (TYPED, ["model.name=hgt", "train.epochs=3"]),
    "AIFB, R-GCN": ("heterogeneous/rgcn-aifb.toml", ["train.epochs=4"]),
    "IMDB, R-GCN": ("heterogeneous/rgcn-imdb.toml", ["train.epochs=4"]),
    "Coauthor Physics, links, GraphSAGE": ("links/coauthor_physics.toml", ["train.epochs=1"]),
    "Coauthor Physics, links, dot product": (
        "links/coauthor_physics.toml",
        ["train.epochs=5", "train.eval_every=0", "model.name=none", "loss.name=cross-entropy", "train.lr=0.05"],
    ),
    "FB15k-237, links, DistMult": ("fb15k237/distmult.toml", ["train.epochs=2"]),
    "FB15k-237, links, DistMult, embeddings in files": (
        "fb15k237/distmult.toml",
        ["train.epochs=2", "embedding.store=file", "embedding.optimizer=row-adagrad", "sample.buckets=8"],
    ),
    "FB15k-237, links, R-GCN": ("fb15k237/rgcn.toml", ["train.epochs=1", "sample.batch_size=16384"]),
    "Kinships, labels of edges, R-GCN": ("edges/kinships.toml", ["train.epochs=4", *SGD]),
    "generated ratings, numbers of edges, R-GCN": (RATINGS, ["train.epochs=4", *SGD]),
    "generated ratings, links in time, R-GCN": (IN_TIME, ["train.epochs=4", *SGD]),
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
        own_parts(whole, own, host, HOSTS)
    shutil.rmtree(whole)


def train(run, sets, launcher=(), place=""):
    words = [w for s in ["output.dir=run", *sets] for w in ("--set", s)]
    command = " ".join(f"'{w}'" for w in [GNARL, "train", run, *words, "--restart"])
    out = call(*launcher, "sh", "-c", f"cd '{WORK}' && exec {command} {place}", timeout=3600)
    return json.loads(out.strip().splitlines()[-1])


def ratings(users=2000, items=500, count=40_000, factors=4):
    """Users rate items that they like by hidden factors, which noisy features tell; edges have times."""
    draw = random.Random(1)

    def table(name, rows):
        hidden = [[draw.gauss(0, 1) for _ in range(factors)] for _ in range(rows)]
        columns = ",".join(f"x{i}" for i in range(factors))
        noisy = [",".join(f"{x + draw.gauss(0, 0.5):.4f}" for x in row) for row in hidden]
        lines = [f"{row},{values}" for row, values in enumerate(noisy)]
        (WORK / f"{name}.csv").write_text("\n".join([f"id,{columns}", *lines]) + "\n")
        return hidden

    (of_users, of_items), lines = (table("users", users), table("items", items)), ["src,dst,stars,time,split"]
    for row in range(count):
        stars = 0
        while stars < 0.3:
            user, item = draw.randrange(users), draw.randrange(items)
            stars = sum(a * b for a, b in zip(of_users[user], of_items[item])) / factors
        split = "train" if row < 0.8 * count else "valid" if row < 0.9 * count else "test"
        lines.append(f"{user},{item},{stars:.4f},{row},{split}")
    (WORK / "ratings.csv").write_text("\n".join(lines) + "\n")
    tables = ["--edges", "user:rates:item=ratings.csv", "--nodes", "user=users.csv", "--nodes", "item=items.csv"]
    columns = ["--edge-value", "stars", "--edge-split", "split", "--features", "x*", "--reverse"]
    call(GNARL, "import", "csv", *tables, *columns, "--out", WORK / "ratings")


def ways(run, sets):
    # Edges are drawn by time from whole lists, which vertex cuts share.
    timed = "\ntime = " in Path(run).read_text()
    layouts = ["edge-cut"] if timed else ["edge-cut", "vertex-cut"]
    sets = [*sets, f"sample.method={'neighbor' if timed else 'exact'}"]
    yield "1 worker", train(run, sets)
    yield "4 threads", train(run, [*sets, "train.workers=4"])
    yield "4 processes", train(run, [*sets, "train.engine=mpi"], mpirun(4))
    place = next(line.split('"')[1] if '"' in line else line.split("'")[1]
                 for line in Path(run).read_text().splitlines() if line.startswith("path = "))
    for layout in layouts:
        parts(place, run, sets, layout)
        served = [*sets, "dataset.path=", "train.engine=mpi", "partition.servers=ranks", "cache.memory=16MiB"]
        where = f'--set "partition.path={WORK}/parts-$OMPI_COMM_WORLD_RANK"'
        yield f"3 hosts, {layout} parts of their own", train(run, served, hosts(HOSTS, WORK), where)


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "ratings").exists():
        ratings()
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
            if run.startswith("\n"):
                (WORK / "run.toml").write_text(run)
                run = str(WORK / "run.toml")
            else:
                run = str(EXAMPLES / run)
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
