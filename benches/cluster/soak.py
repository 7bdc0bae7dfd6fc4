#!/usr/bin/env python3
"""Does a long run leak? Two machines train on parts of their own for very many short epochs.

    cargo build --release --features mpi,serve
    benches/cluster/soak.py target/release/gnarl WORK_FOLDER [MINUTES=10]

Machines are processes with names of their own, started by Open MPI, that serve their parts to each other,
with a cache and with metrics. Reads the resident memory and the open file descriptors of both from their
metrics, every few seconds, into WORK_FOLDER/soak.csv. Prints a table in Markdown; ends with 1 if the least
of the last third is above that of the first, the warm-up left out: for memory by more than 2 %, for
descriptors at all. An epoch takes some hundredths of a second: ten minutes have as many as eight hours of
ordinary ones. Figures of all epochs are kept in memory by design; what they take is not counted as growth.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SECONDS = 60 * float(sys.argv[3] if len(sys.argv) > 3 else 10)
RANKS, WARM, GROWTH = 2, 0.25, 0.02
# Bytes of an epoch's figures, with room for a list that doubles.
FIGURES = 512
PAUSE = min(5, SECONDS / 60)

RUN = """
[dataset]
path = '{graph}'
[model]
name = 'sage'
hidden = 64
dropout = 0.5
[sample]
fanouts = [10, 10]
batch_size = 500
[partition]
path = '{parts}'
servers = 'ranks'
[cache]
memory = '1MiB'
[train]
epochs = 100000000
eval_every = 20
engine = 'mpi'
threads = 2
deadline_seconds = 60
[output]
dir = '{run}'
metrics_listen = {port}
"""


def call(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def prepared():
    """The graph and its parts, made if they are not there."""
    graph, parts = WORK / "graph", WORK / "parts"
    if not graph.exists():
        call(GNARL, "generate", "community", "--nodes", 10_000, "--features", 64, "--out", graph)
    if not parts.exists():
        call(GNARL, "partition", graph, "--parts", RANKS, "--out", parts)
    return graph, parts


def free_ports():
    """The first of as many free ports as there are ranks."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
        try:
            for rank in range(RANKS):
                with socket.socket() as other:
                    other.bind(("127.0.0.1", port + rank))
            return port
        except OSError:
            pass


def metrics(port):
    """Memory in bytes, descriptors, and epochs of the process there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    values = {name.split("{")[0]: value for name, value in pairs}
    names = ("process_resident_memory_bytes", "process_open_fds", "gnarl_epoch")
    return [float(values[name]) for name in names]


def watched(run, port):
    """What each rank said, as lists of seconds, memory, descriptors and epochs."""
    said = [[] for _ in range(RANKS)]
    samples = (WORK / "soak.csv").open("w")
    print("rank,seconds,bytes,files,epochs", file=samples)
    start = time.monotonic()
    while time.monotonic() - start < SECONDS:
        time.sleep(PAUSE)
        if run.poll() is not None:
            sys.exit(f"the run ended with {run.returncode} before its time")
        try:
            now = [metrics(port + rank) for rank in range(RANKS)]
        except (OSError, KeyError) as error:
            # Until it trains, nobody listens and nothing is counted.
            if any(said) or time.monotonic() - start > 60:
                sys.exit(f"the run does not tell its metrics: {error!r}")
            start += PAUSE
            continue
        for rank, values in enumerate(now):
            said[rank].append((time.monotonic() - start, *values))
            row = ",".join(f"{value:.0f}" for value in (rank, *said[rank][-1]))
            print(row, file=samples, flush=True)
    return said


def judged(rank, samples):
    """Prints a rank's row; whether it is well."""
    samples = samples[int(WARM * len(samples)) :]
    times, memory, files, epochs = map(list, zip(*samples, strict=True))
    slope = statistics.linear_regression(times, memory).slope
    # What batches under way take comes and goes, as do descriptors of connections made anew: a leak
    # raises the least there is.
    third = len(times) // 3
    ends = (slice(third), slice(-third, None))
    low, high = (min(memory[end]) for end in ends)
    first, last = (min(files[end]) for end in ends)
    grown = (high - low - FIGURES * (epochs[-1] - epochs[0])) / low
    count = f"{epochs[0]:.0f} to {epochs[-1]:.0f}"
    mib, hourly = 2**20, 3600 * slope / 2**20
    print(
        f"| {rank} | {count} | {low / mib:.1f} | {high / mib:.1f} | {hourly:+.1f} "
        f"| {100 * grown:+.2f} % | {first:.0f} | {last:.0f} |"
    )
    return grown <= GROWTH and last <= first


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    graph, parts = prepared()
    port = free_ports()
    file = WORK / "soak.toml"
    file.write_text(RUN.format(graph=graph, parts=parts, run=WORK / "run", port=port))
    command = f"GNARL_HOST=m$OMPI_COMM_WORLD_RANK exec '{GNARL}' train '{file}' --restart"
    user = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mpirun = ["mpirun", "--oversubscribe", "-n", str(RANKS), "sh", "-c", command]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": (WORK / "soak.log").open("w")}
    run = subprocess.Popen(mpirun, env=os.environ | user, **quiet)
    try:
        said = watched(run, port)
    finally:
        run.terminate()
        run.wait()
    print("| rank | epochs | MiB first | MiB last | slope, MiB an hour | growth | files first | files last |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    well = [judged(rank, samples) for rank, samples in enumerate(said)]
    minutes = SECONDS / 60
    print(f"\n{'no leak' if all(well) else 'LEAK'} in {minutes:.0f} minutes on {os.cpu_count()} cores")
    sys.exit(0 if all(well) else 1)


main()
