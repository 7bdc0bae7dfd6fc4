#!/usr/bin/env python3
"""Latency and memory of `gnarl serve` beside silent and greedy clients, with few descriptors.

    cargo build --release -p gnarl-cli --features serve
    python benches/crowded.py target/release/gnarl            # requires pyarrow and numpy

Serves a graph of 100,000 nodes within 256 MiB for calls and 64 descriptors. A valid client asks for the features of ten
nodes 50 times: alone, beside 500 connections that send nothing, and beside 200 clients that ask for 100,000 rows again and
again. New clients do so beside the silent ones, too. Prints the median and the longest time of a call, and the server's
most memory.
"""

import argparse
import json
import pathlib
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa
from pyarrow import flight


def exchange(client, nodes):
    """Asks for the features of nodes; the number of rows."""
    command = json.dumps({"op": "gather", "part": 0, "column": "features"}).encode()
    options = flight.FlightCallOptions(timeout=60)
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(command), options)
    table = pa.table({"node": pa.array(nodes, pa.uint64())})
    writer.begin(table.schema)
    writer.write_table(table)
    writer.done_writing()
    return sum(chunk.data.num_rows for chunk in reader)


def be_greedy(address, clients):
    """Asks for many rows by so many threads until a line is read; prints how many calls were answered."""
    counts = {"greedy_answered": 0, "greedy_refused": 0}
    nodes = np.arange(100_000, dtype=np.uint64)

    def ask():
        while True:
            client = flight.connect(address)
            try:
                exchange(client, nodes)
                counts["greedy_answered"] += 1
            except (flight.FlightError, pa.ArrowException):
                counts["greedy_refused"] += 1
                time.sleep(0.1)
            client.close()

    for _ in range(clients):
        threading.Thread(target=ask, daemon=True).start()
    print("begun", flush=True)
    sys.stdin.readline()
    print(json.dumps(counts), flush=True)


def calls(address, times, anew, client=None):
    """The seconds of each of some calls, by one client or by new ones."""
    nodes = np.arange(10, dtype=np.uint64)
    taken = []
    client = client or flight.connect(address)
    exchange(client, nodes)
    for _ in range(times):
        time.sleep(0.05)
        start = time.time()
        if anew:
            client.close()
            client = flight.connect(address)
        exchange(client, nodes)
        taken.append(time.time() - start)
    return taken


def peak(process):
    """Most bytes of memory of a process so far."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("gnarl")
    arguments.add_argument("--times", type=int, default=50)
    arguments.add_argument("--greedy", help="used by the benchmark itself: an address to ask")
    given = arguments.parse_args()
    if given.greedy:
        be_greedy(given.greedy, 200)
        return
    with tempfile.TemporaryDirectory() as folder:
        graph, parts = f"{folder}/graph", f"{folder}/parts"
        make = [given.gnarl, "generate", "community", "--nodes", "100000", "--out", graph]
        cut = [given.gnarl, "partition", graph, "--parts", "1", "--out", parts]
        for command in (make, cut):
            subprocess.run(command, check=True, capture_output=True)
        limited = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", given.gnarl, "serve", parts]
        server = subprocess.Popen(
            [*limited, "--listen", "127.0.0.1:0", "--memory", "256MiB"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        line = next(line for line in server.stderr if " at http://" in line)
        host = line.split(" at http://")[1].strip()
        address = f"grpc://{host}"
        before = peak(server)

        def report(name, taken):
            figures = {
                "clients": name,
                "median_ms": round(1e3 * statistics.median(taken), 1),
                "longest_ms": round(1e3 * max(taken), 1),
                "server_mib": peak(server) >> 20,
            }
            print(json.dumps(figures), flush=True)

        try:
            print(json.dumps({"server_mib_before": before >> 20}))
            report("alone", calls(address, given.times, False))
            where = host.split(":")
            silent = [socket.create_connection((where[0], int(where[1]))) for _ in range(500)]
            report("500 silent", calls(address, given.times, False))
            report("500 silent, each call by a new client", calls(address, given.times, True))
            for connection in silent:
                connection.close()
            # A client that is there already; new ones wait for those before them.
            client = flight.connect(address)
            exchange(client, np.arange(10, dtype=np.uint64))
            greedy = subprocess.Popen(
                [sys.executable, __file__, given.gnarl, "--greedy", address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                # A client that rests gives its place up.
                while not select.select([greedy.stdout], [], [], 0.5)[0]:
                    exchange(client, np.arange(10, dtype=np.uint64))
                greedy.stdout.readline()
                report("200 greedy", calls(address, given.times, False, client))
                greedy.stdin.write("\n")
                greedy.stdin.flush()
                print(greedy.stdout.readline().strip())
            finally:
                greedy.kill()
        finally:
            server.kill()


if __name__ == "__main__":
    main()
