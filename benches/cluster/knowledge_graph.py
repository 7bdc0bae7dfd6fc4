#!/usr/bin/env python3
"""A knowledge graph larger than memory: embeddings of entities in files, trained, killed, resumed and ranked.

    benches/cluster/knowledge_graph.py generate FOLDER [ENTITIES TRIPLES]

writes train.npy, valid.npy and test.npy: 50 relations, heads by a power law, and tails that depend on head and relation, so that
there is something to learn: an entity has a type, a relation joins two types, and most tails are near the head's place in the
type.

    benches/cluster/knowledge_graph.py run GNARL FOLDER LIMIT HOSTS LIMITED [EPOCHS]

imports and partitions these, and trains DistMult of 100 numbers an entity for EPOCHS (2) on one host (HOSTS = 1) or on three
network namespaces with their own parts only, each within a memory control group of LIMIT, page cache included; LIMITED is a
command that runs another one in such a group (`LIMITED 6G COMMAND…`) and tells its peak. The run is killed 20 seconds after its first epoch, so in the
second one or in ranking, resumed, and ranked on the 10,000 test triples. Root; for hosts a build with the feature `mpi`.

    benches/cluster/knowledge_graph.py compare GNARL FOLDER LIMITED [EPOCHS]

trains DistMult and ComplEx for EPOCHS (2) with everything in memory, edges in random order, and with embeddings in files by
`sample.buckets`, two and six classes in memory, within a quarter of the memory that took at its peak, page cache included; from the dataset itself, without
ranking or checkpoints.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from launch import hosts, own_parts

RELATIONS, TYPES, HELD_OUT, PIECE = 50, 20, 10_000, 10_000_000


def triples(rng, count, entities, types):
    """`count` triples of entities, which are numbered at random."""
    relation = rng.integers(0, RELATIONS, count, dtype=np.uint32)
    each = entities // TYPES
    # Ranks in a type by a power law: a few heads have many triples.
    rank = (each * rng.random(count) ** 3).astype(np.int64)
    near = rng.integers(-50, 51, count)
    far = rng.random(count) < 0.2
    tail = np.where(far, (each * rng.random(count)).astype(np.int64), (rank + near) % each)
    head = types[relation, 0] * each + rank
    tail = types[relation, 1] * each + tail
    return np.stack([head, relation.astype(np.int64), tail], axis=1)


def generate(folder, entities, count):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    types = rng.integers(0, TYPES, (RELATIONS, 2))
    number = rng.permutation(entities).astype(np.int64)
    np.save(folder / "entities.npy", entities)
    for name, size in [("valid", HELD_OUT), ("test", HELD_OUT), ("train", count)]:
        out = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.int32, (size, 3))
        for first in range(0, size, PIECE):
            piece = triples(rng, min(PIECE, size - first), entities, types)
            piece[:, 0], piece[:, 2] = number[piece[:, 0]], number[piece[:, 2]]
            out[first : first + len(piece)] = piece


RUN = """
[task]
kind = "link-prediction"
[model]
name = "none"
[decoder]
name = "distmult"
[loss]
name = "cross-entropy"
[embedding]
dim = 100
optimizer = "row-adagrad"
lr = 0.1
store = "file"
[sample]
batch_size = 16384
buckets = 16
[negatives]
kind = "joint"
count = 256
[train]
epochs = 2
eval_every = 0
checkpoint_seconds = 0
deadline_seconds = 1800
[evaluate]
splits = ["test"]
"""


def prepare(gnarl, folder):
    """The graph in three parts, and a copy for each host with its own part."""
    data, parts = folder / "data", folder / "parts"
    (folder / "run.toml").write_text(RUN)
    if not data.exists():
        files = [f"--{name}={folder / name}.npy" for name in ("train", "valid", "test")]
        count = f"--num-entities={int(np.load(folder / 'entities.npy'))}"
        subprocess.run([gnarl, "import", "triples", *files, count, "--out", data], check=True)
    if not parts.exists():
        how = ["--algorithm", "spring", "--parts", "3", "--hops", "0", "--task", folder / "run.toml"]
        subprocess.run([gnarl, "partition", data, *how, "--set", f"dataset.path={data}", "--out", parts], check=True)
    for host in range(3):
        own_parts(parts, folder / f"parts-{host}", host, 3)


def train(gnarl, folder, limit, count, limited, how):
    """Starts a run; within LIMIT each host."""
    command = f"{limited} {limit} {gnarl} train {folder}/run.toml --set output.dir={folder}/run-{count} {how}"
    sets = f"--set partition.path={folder}/parts"
    launcher = []
    if count > 1:
        launcher = hosts(count, folder)
        sets = f"--set partition.path={folder}/parts-$OMPI_COMM_WORLD_RANK --set train.engine=mpi"
    log = open(folder / f"log-{count}.txt", "a")
    words = [*launcher, "sh", "-c", f"exec {command} {sets} --set partition.servers=ranks --set cache.memory=16MiB"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)


def killed(process, gnarl, folder, checkpoint, begun):
    """Kills the run some time after its first checkpoint."""
    while not checkpoint.exists():
        if process.poll() is not None:
            sys.exit(f"the run ended: see the logs in {folder}")
        time.sleep(1)
    print(f"first epoch with its checkpoint: {time.time() - begun:.0f} s", flush=True)
    time.sleep(20)
    os.killpg(process.pid, signal.SIGKILL)
    subprocess.run(["pkill", "-9", "-f", f"{folder}/run.toml"])
    process.wait()
    # A process of many mapped files takes seconds to end, and holds the folder until then, when only its name is left.
    while subprocess.run(["pgrep", "-x", gnarl.name], stdout=subprocess.DEVNULL).returncode == 0:
        time.sleep(1)


def run(gnarl, folder, limit, count, limited, epochs=2):
    prepare(gnarl, folder)
    here = Path(__file__).parent
    out = folder / f"run-{count}"
    shutil.rmtree(out, ignore_errors=True)
    (folder / f"log-{count}.txt").unlink(missing_ok=True)
    if count > 1:
        subprocess.run([here / "hosts", "up", str(count)], check=True)
    try:
        more = f"--set train.epochs={epochs}"
        process, begun = train(gnarl, folder, limit, count, limited, more), time.time()
        killed(process, gnarl, folder, out / "checkpoint.safetensors", begun)
        process, begun = train(gnarl, folder, limit, count, limited, f"{more} --resume"), time.time()
        result, _ = process.communicate()
        print(f"to the end: {time.time() - begun:.0f} s", flush=True)
    finally:
        if count > 1:
            subprocess.run([here / "hosts", "down"])
    summary = json.loads([line for line in result.splitlines() if line.startswith("{")][-1])
    for line in (out / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        stages = {name: round(seconds, 1) for name, seconds in record["stages"].items()}
        print(f"epoch {record['epoch']}: {record['seconds']:.0f} s, loss {record['loss']}, stages {stages}")
    print(f"test {summary['test']}, peak of the first rank {summary['peak_rss_bytes'] / 1e9:.2f} GB")
    for line in (folder / f"log-{count}.txt").read_text().splitlines():
        if line.startswith("limited:"):
            print(line)


PEAK = re.compile(r"limited: exit 0, peak (\d+)")


def timed(gnarl, folder, name, limit, limited, sets):
    """Seconds of each epoch of a run, its losses, and its peak with the page cache."""
    out = folder / f"run-{name}"
    shutil.rmtree(out, ignore_errors=True)
    pairs = {"dataset.path": folder / "data", "output.dir": out, "evaluate.splits": "[]", "train.checkpoint_seconds": 1e6}
    words = [word for key, value in (pairs | sets).items() for word in ("--set", f"{key}={value}")]
    command = [limited, limit, gnarl, "train", folder / "run.toml", *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    peak = PEAK.search(done.stderr)
    if done.returncode != 0 or not peak:
        sys.exit(done.stderr)
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    # Several gigabytes each.
    shutil.rmtree(out)
    return [record["seconds"] for record in records], [record["loss"] for record in records], int(peak[1])


def compare(gnarl, folder, limited, epochs=2):
    data = folder / "data"
    (folder / "run.toml").write_text(RUN)
    if not data.exists():
        files = [f"--{name}={folder / name}.npy" for name in ("train", "valid", "test")]
        count = f"--num-entities={int(np.load(folder / 'entities.npy'))}"
        subprocess.run([gnarl, "import", "triples", *files, count, "--out", data], check=True)
    print("| | embeddings | peak, GB | seconds by epoch | losses |\n|---|---|---|---|---|", flush=True)
    for model in ("distmult", "complex"):
        whole = {"decoder.name": model, "train.epochs": epochs, "embedding.store": "memory", "sample.buckets": 0}
        limit = "1000G"
        files = whole | {"embedding.store": "file", "sample.buckets": 16}
        cases = [("in memory", whole)]
        cases += [(f"in files, {held} of 16 classes", files | {"sample.buckets_in_memory": held}) for held in (2, 6)]
        quarter = None
        for name, sets in cases:
            seconds, losses, peak = timed(gnarl, folder, model, limit, limited, sets)
            shown = [", ".join(f"{value:.{digits}f}" for value in values) for values, digits in ((seconds, 0), (losses, 4))]
            print(f"| {model} | {name} | {peak / 1e9:.2f} | {shown[0]} | {shown[1]} |", flush=True)
            quarter = quarter or peak // 4
            limit = quarter


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["generate", folder, *sizes]:
            generate(Path(folder), *([int(size) for size in sizes] or [20_000_000, 200_000_000]))
        case ["run", gnarl, folder, limit, count, limited, *epochs]:
            epochs = [int(number) for number in epochs]
            run(Path(gnarl).resolve(), Path(folder).resolve(), limit, int(count), limited, *epochs)
        case ["compare", gnarl, folder, limited, *epochs]:
            epochs = [int(number) for number in epochs]
            compare(Path(gnarl).resolve(), Path(folder).resolve(), Path(limited).resolve(), *epochs)
        case _:
            sys.exit(__doc__)
