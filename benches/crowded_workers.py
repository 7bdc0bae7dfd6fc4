#!/usr/bin/env python3
"""Latency and memory of a batch worker beside silent and greedy clients, with few descriptors.

    cargo build --release -p gnarl-cli --features serve
    python benches/crowded_workers.py target/release/gnarl        # requires pyarrow and numpy

A coordinator and a batch worker of one thread and 64 descriptors prepare the batches of a graph of 20,000 nodes in four parts. A run
asks for one batch after the other: alone, beside 500 connections to each of the two that send nothing, and beside 200 clients that
send the worker 100,000 ids for a run that it does not know, again and again. Prints the mean time a batch takes to arrive: in the
first epoch, in which the run waits for a place among the connections, in all others, and in the slowest of them; and the most memory
of both. The losses of all runs must be equal.
"""

import argparse
import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import pyarrow as pa
from crowded import peak
from pyarrow import flight

RUN = """
[dataset]
path = "graph"
[partition]
path = "parts"
[model]
name = "sage"
layers = 2
hidden = 16
[sample]
fanouts = [5, 5]
batch_size = 256
[train]
strategy = "disaggregated"
pipeline = "off"
epochs = 5
threads = 1
eval_every = 0
[disaggregated]
batch_workers = 1
[output]
dir = "run"
"""


def be_greedy(address, clients):
    """Sends many ids by so many threads until a line is read; prints how many calls were refused, and by what."""
    counts = {}
    nodes = pa.table({"node": pa.array(range(100_000), pa.uint64())})
    command = json.dumps({"op": "rows", "run": 7, "era": 0, "reached": 0}).encode()

    def ask():
        while True:
            client = flight.connect(address)
            try:
                options = flight.FlightCallOptions(timeout=60)
                writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(command), options)
                writer.begin(nodes.schema)
                writer.write_table(nodes)
                writer.done_writing()
                for _ in reader:
                    pass
                answer = "answered"
            except (flight.FlightError, pa.ArrowException) as error:
                answer = type(error).__name__
                time.sleep(0.1)
            counts[answer] = counts.get(answer, 0) + 1
            client.close()

    for _ in range(clients):
        threading.Thread(target=ask, daemon=True).start()
    print("begun", flush=True)
    sys.stdin.readline()
    print(json.dumps({"greedy": counts}), flush=True)


@contextlib.contextmanager
def started(folder, *command):
    """A server with few descriptors, and its address."""
    limited = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *command]
    server = subprocess.Popen(limited, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=folder)
    try:
        marks = (" coordinating at http://", " prepares batches for ")
        line = next(line for line in server.stderr if any(mark in line for mark in marks))
        host = line.split("http://")[1].split()[0]
        # What it logs from now on is not read by anybody else.
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield server, host
    finally:
        server.kill()


def train(gnarl, folder, coordinator):
    """Seconds that a batch took to arrive on average, of each epoch, and the losses."""
    command = [gnarl, "train", "run.toml", "--restart", "--set", f"disaggregated.join=http://{coordinator}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    lines = pathlib.Path(folder, "run/metrics.jsonl").read_text().splitlines()
    epochs = [line for line in map(json.loads, lines) if "stages" in line]
    batches = -(-epochs[0]["seeds"] // 256)
    return [epoch["stages"]["receive"] / batches for epoch in epochs], [epoch["loss"] for epoch in epochs]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("gnarl")
    arguments.add_argument("--greedy", help="used by the benchmark itself: an address to ask")
    given = arguments.parse_args()
    if given.greedy:
        be_greedy(given.greedy, 200)
        return
    gnarl = str(pathlib.Path(given.gnarl).resolve())
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        make = [gnarl, "generate", "community", "--nodes", "20000", "--out", "graph"]
        cut = [gnarl, "partition", "graph", "--parts", "4", "--layout", "storage", "--out", "parts"]
        for command in (make, cut):
            subprocess.run(command, check=True, capture_output=True, cwd=folder)
        pathlib.Path(folder, "run.toml").write_text(RUN)
        work = [gnarl, "work", "run.toml", "--role"]
        coordinator, where = stack.enter_context(started(folder, *work, "coordinator"))
        batch = [*work, "batch", "--threads", "1", "--join", f"http://{where}"]
        worker, at = stack.enter_context(started(folder, *batch))
        expected = None

        def report(name):
            nonlocal expected
            taken, losses = train(gnarl, folder, where)
            expected = expected or losses
            if losses != expected:
                sys.exit(f"{name}: losses {losses}, alone {expected}")
            figures = {
                "clients": name,
                "first_epoch_ms": round(1e3 * taken[0], 1),
                "mean_ms": round(1e3 * statistics.mean(taken[1:]), 1),
                "slowest_ms": round(1e3 * max(taken[1:]), 1),
                "worker_mib": peak(worker) >> 20,
                "coordinator_mib": peak(coordinator) >> 20,
            }
            print(json.dumps(figures), flush=True)

        report("alone")
        hosts = [tuple(host.split(":")) for host in (where, at)]
        silent = [socket.create_connection((name, int(port))) for name, port in hosts for _ in range(500)]
        report("500 silent")
        for connection in silent:
            connection.close()
        greedy = subprocess.Popen(
            [sys.executable, __file__, gnarl, "--greedy", f"grpc://{at}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Arrow tells of every refused call.
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            greedy.stdout.readline()
            report("200 greedy")
            greedy.stdin.write("\n")
            greedy.stdin.flush()
            print(greedy.stdout.readline().strip())
        finally:
            greedy.kill()


if __name__ == "__main__":
    main()
