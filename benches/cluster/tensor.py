#!/usr/bin/env python3
"""What each part of NeutronTP's design is worth over a slow link (its Figures 11, 13 and 14).

    cargo build --profile dist --features mpi,serve
    sudo benches/cluster/tensor.py target/dist/gnarl WORK_FOLDER [BITS_A_SECOND DELAY_SECONDS]

Four machines of one rank each, as network namespaces (see `hosts` beside this file) whose links are shaped to
1 Gbit/s and 1 ms each way, train GCN on all of a community graph in each step: by data parallelism, where a rank
has a part of the graph and fetches the rows of its neighborhoods, and by tensor parallelism. Prints tables in
Markdown. Needs root, and Open MPI.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
RATE, DELAY = sys.argv[3:5] if len(sys.argv) > 4 else ("1e9", "0.001")
HOSTS = 4
WIDTHS = [128, 256, 512, 1024]
LAYERS = [2, 3, 4]

RUN = """
[model]
name = 'gcn'
layers = 2
hidden = 128
[train]
workers = 4
threads = 2
epochs = 5
eval_every = 0
deadline_seconds = 300
"""

DATA = ["train.strategy=gradient", "sample.method=full", "sample.batch_size=0", "partition.servers=ranks"]
NAIVE = ["train.strategy=tensor"]
DECOUPLED = [*NAIVE, "model.decoupled=true"]
CHUNKS = ["tensor.chunks=8", "tensor.overlap=false"]
PIPELINE = ["tensor.chunks=8", "tensor.overlap=true"]

STEPS = [
    ("data parallelism (`gradient`)", DATA),
    ("tensor parallelism", NAIVE),
    ("chunks", [*NAIVE, *CHUNKS]),
    ("decoupling", [*DECOUPLED, *CHUNKS]),
    ("pipeline", [*DECOUPLED, *PIPELINE]),
]
KINDS = [
    ("data parallel", DATA),
    ("naive", NAIVE),
    ("naive, pipeline", [*NAIVE, *PIPELINE]),
    ("decoupled, pipeline", [*DECOUPLED, *PIPELINE]),
]


def call(*words):
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None


def prepare():
    WORK.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        graph, parts = WORK / f"graph-{width}", WORK / f"parts-{width}"
        if not graph.exists():
            call(GNARL, "generate", "community", "--nodes", 100_000, "--communities", 64, "--classes", 16,
                 "--features", width, "--average-degree", 15, "--out", graph)
        if not parts.exists():
            call(GNARL, "partition", graph, "--algorithm", "knot", "--parts", HOSTS, "--out", parts)
        (WORK / f"run-{width}.toml").write_text(f"[dataset]\npath = '{graph}'\n{RUN}")


def train(width, sets):
    run = WORK / "run"
    hosts = ",".join(f"10.77.0.{host + 1}:1" for host in range(HOSTS))
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--map-by", "slot", "--bind-to", "none", "-n", HOSTS,
             "--host", hosts, "--mca", "plm_rsh_agent", f"{HERE}/hosts agent",
             "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "10.77.0.0/24",
             "--mca", "oob_tcp_if_include", "10.77.0.0/24",
             GNARL, "train", WORK / f"run-{width}.toml", "--engine", "mpi", "--restart"]
    parts = [f"partition.path={WORK}/parts-{width}"] if "partition.servers=ranks" in sets else []
    for key in [f"output.dir={run}", *sets, *parts]:
        words += ["--set", key]
    result = call(*words)
    epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    # The first epoch reads files and connects; the last one also evaluates.
    seconds = sorted(epoch["seconds"] for epoch in epochs[1:-1])
    return seconds[len(seconds) // 2], epochs[-2], result


def steps():
    print("| | epoch, s | gain | all gains | MB exchanged | peak of a rank, MB | loss |")
    print("|---|---|---|---|---|---|---|")
    first = last = None
    for name, sets in STEPS:
        seconds, epoch, result = train(256, sets)
        first, last = first or seconds, last or seconds
        exchanged = sum((epoch.get("exchanged_bytes") or {}).values()) / 1e6
        print(f"| {name} | {seconds:.2f} | {last / seconds:.2f} | {first / seconds:.2f} | {exchanged:.0f} "
              f"| {result['peak_rss_bytes'] / 1e6:.0f} | {result['losses'][-1]:.4f} |", flush=True)
        last = seconds


def costs(title, runs):
    print(f"\n| {title} | " + " | ".join(name for name, _ in KINDS) + " |")
    print("|---" * (len(KINDS) + 1) + "|")
    for name, width, more in runs:
        seconds = [train(width, [*sets, *more])[0] for _, sets in KINDS]
        print(f"| {name} | " + " | ".join(f"{s:.2f}" for s in seconds) + " |", flush=True)


def main():
    prepare()
    subprocess.run([HERE / "hosts", "up", str(HOSTS), RATE, DELAY], check=True)
    try:
        print(f"{float(RATE) / 1e9:g} Gbit/s, {1000 * float(DELAY):g} ms each way; {os.cpu_count()} cores for all "
              "four ranks. Seconds of an epoch, the median of epochs 2 to 4.\n")
        steps()
        costs("layers", [(layers, 256, [f"model.layers={layers}"]) for layers in LAYERS])
        costs("width of features", [(width, width, []) for width in WIDTHS])
    finally:
        subprocess.run([HERE / "hosts", "down"], check=True)


main()
