#!/usr/bin/env python3
"""What each part of DistDGLv2's design is worth over a slow link (its Figure 14).

    cargo build --profile dist --features mpi,serve
    sudo benches/cluster/ablation.py target/dist/gnarl WORK_FOLDER [BITS_A_SECOND DELAY_SECONDS]

Two machines of two ranks each, as network namespaces (see `hosts` beside this file) whose links are shaped to
1 Gbit/s and 1 ms each way, train GraphSAGE on parts of a community graph of a million nodes; each adds
something to the run before it. Prints a table in Markdown. Needs root, and Open MPI.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
RATE, DELAY = sys.argv[3:5] if len(sys.argv) > 4 else ("1e9", "0.001")
EPOCHS = 8

RUN = f"""
[model]
name = 'sage'
hidden = 16
[sample]
fanouts = [10, 10]
batch_size = 4000
[partition]
servers = 'ranks'
[train]
epochs = {EPOCHS}
eval_every = 0
lr = 0.003
threads = 2
deadline_seconds = 300
"""

# What is added, the partition, and the settings.
STEPS = [
    ("random parts", "random", ["train.pipeline=off"]),
    ("balanced parts (`knot`)", "parts", ["train.pipeline=off"]),
    ("parts of two levels", "levels", ["train.pipeline=off"]),
    ("pipeline", "levels", ["train.pipeline=epoch"]),
    ("non-stop", "levels", ["train.pipeline=non-stop"]),
    ("cache of 256 MiB a rank", "levels", ["cache.memory=256MiB"]),
]
PARTITIONS = {"random": ("random", "2"), "parts": ("knot", "2"), "levels": ("knot", "2x2")}


def call(*words, **more):
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None


def prepare():
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "graph").exists():
        call(GNARL, "generate", "community", "--nodes", 1_000_000, "--communities", 64, "--classes", 16,
             "--features", 256, "--average-degree", 15, "--split", 0.05, 0.02, 0.03, "--out", WORK / "graph")
    for name, (algorithm, parts) in PARTITIONS.items():
        if not (WORK / name).exists():
            call(GNARL, "partition", WORK / "graph", "--algorithm", algorithm, "--parts", parts, "--out", WORK / name)
    (WORK / "run.toml").write_text(RUN)


def train(partition, sets):
    run = WORK / "run"
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--map-by", "slot", "--bind-to", "none", "-n", 4,
             "--host", "10.77.0.1:2,10.77.0.2:2", "--mca", "plm_rsh_agent", f"{HERE}/hosts agent",
             "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "10.77.0.0/24",
             "--mca", "oob_tcp_if_include", "10.77.0.0/24",
             GNARL, "train", WORK / "run.toml", "--engine", "mpi", "--restart"]
    for key in [f"partition.path={WORK / partition}", f"output.dir={run}", *sets]:
        words += ["--set", key]
    result = call(*words)
    epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    # The first epoch fills caches and connections.
    seconds = sorted(epoch["seconds"] for epoch in epochs[1:])
    # The last one also evaluates.
    return seconds[len(seconds) // 2], epochs[-2], result


def sent():
    """Bytes that both machines have sent so far."""
    total = 0
    for host in (1, 2):
        path = "/sys/class/net/gnarl0/statistics/tx_bytes"
        total += int(subprocess.check_output(["ip", "netns", "exec", f"gnarl-{host}", "cat", path]))
    return total


def main():
    prepare()
    subprocess.run([HERE / "hosts", "up", "2", RATE, DELAY], check=True)
    try:
        print(f"{float(RATE) / 1e9:g} Gbit/s, {1000 * float(DELAY):g} ms each way; {os.cpu_count()} cores for all four ranks.\n")
        print("| | epoch, s | gain | all gains | MB sent in the run | cache hits | loss | bound by |")
        print("|---|---|---|---|---|---|---|---|")
        first = last = None
        for name, partition, sets in STEPS:
            before = sent()
            seconds, epoch, result = train(partition, sets)
            megabytes = (sent() - before) / 1e6
            first, last = first or seconds, last or seconds
            hits = epoch.get("cache_hit_rate", 0.0)
            print(f"| {name} | {seconds:.2f} | {last / seconds:.2f} | {first / seconds:.2f} | {megabytes:.0f} "
                  f"| {100 * hits:.0f} % | {result['losses'][-1]:.6f} | {epoch['verdict'].split(':')[0]} |", flush=True)
            last = seconds
    finally:
        subprocess.run([HERE / "hosts", "down"], check=True)


main()
