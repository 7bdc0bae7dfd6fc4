#!/usr/bin/env python3
"""Epochs by the number of preparation threads, over parts on two servers whose replies are delayed, losses compared.

    cargo build --release -p gnarl-cli --features serve
    benches/preparation.py target/release/gnarl WORK_FOLDER [OPTIONS]

Two servers of one thread each have two parts of an R-MAT graph; a proxy before each of them holds back every byte by half of
the delay, both ways. Prints a table in Markdown of the median seconds of an epoch after the first; losses must be equal.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from statistics import median

RUN = """
[partition]
path = "{parts}"
servers = {servers}
[model]
name = "sage"
hidden = 32
layers = 2
dropout = 0.0
[sample]
fanouts = [5, 5]
batch_size = 256
[train]
threads = 2
epochs = {epochs}
[evaluate]
splits = []
"""


def options():
    numbers = lambda kind: lambda text: [kind(word) for word in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--threads", type=numbers(int), default=[1, 2, 4, 8])
    parser.add_argument("--delays", type=numbers(float), default=[0, 1, 10], help="milliseconds from request to reply")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=1 << 20)
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("at least two epochs, of which the first is not counted")
    return args


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


async def carry(reader, writer, delay):
    """Carries bytes from a reader to a writer, each `delay` seconds later."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    async def hand_over():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                return writer.close()
            writer.write(data)
            await writer.drain()

    task = asyncio.create_task(hand_over())
    while data := await reader.read(1 << 20):
        queue.put_nowait((loop.time() + delay, data))
    queue.put_nowait((loop.time() + delay, b""))
    await task


def delayed(port, milliseconds):
    """The port of a proxy before `port`."""
    ready, found = threading.Event(), []

    async def both_ways(reader, writer):
        to = await asyncio.open_connection("127.0.0.1", port)
        delay = milliseconds / 2000
        await asyncio.gather(carry(reader, to[1], delay), carry(to[0], writer, delay), return_exceptions=True)

    async def listen():
        server = await asyncio.start_server(both_ways, "127.0.0.1", 0)
        found.append(server.sockets[0].getsockname()[1])
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(listen()), daemon=True).start()
    ready.wait()
    return found[0]


def main():
    args = options()
    graph, parts, names = args.work / "graph", args.work / "parts", args.work / "names"
    args.work.mkdir(parents=True, exist_ok=True)
    if not graph.exists():
        sizes = ["--nodes", args.nodes, "--edges", 16 * args.nodes, "--features", 100, "--classes", 47]
        call(args.gnarl, "generate", "rmat", *sizes, "--split", 0.1, 0.05, 0.05, "--out", graph)
    if not parts.exists():
        call(args.gnarl, "partition", graph, "--parts", 2, "--algorithm", "random", "--out", parts)
        # A host without parts of its own.
        names.mkdir()
        for file in parts.iterdir():
            if file.is_file():
                (names / file.name).write_bytes(file.read_bytes())
            elif file.name == "nodes":
                call("cp", "-r", file, names)
    servers, ports, losses = [], [], []
    try:
        for part in range(2):
            words = [args.gnarl, "serve", parts, "--part", part, "--listen", "127.0.0.1:0", "--threads", 1]
            server = subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            servers.append(server)
            line = next(line for line in server.stderr if "http://127.0.0.1:" in line)
            ports.append(int(line.split("http://127.0.0.1:")[1].split()[0].rstrip(".,")))
            threading.Thread(target=server.stderr.read, daemon=True).start()
        print(f"| | {' | '.join(f'{count} threads' for count in args.threads)} |")
        print("|---|" + "---|" * len(args.threads))
        for delay in args.delays:
            near = [delayed(port, delay) for port in ports] if delay else ports
            addresses = json.dumps([f"http://127.0.0.1:{port}" for port in near])
            file = args.work / "run.toml"
            file.write_text(RUN.format(parts=names.resolve(), servers=addresses, epochs=args.epochs))
            seconds = {count: [] for count in args.threads}
            for _ in range(args.rounds):
                for count in args.threads:
                    out = args.work / "run"
                    sets = ["--set", f"output.dir={out}", "--set", f"train.preparation_threads={count}"]
                    call(args.gnarl, "train", file, "--restart", *sets)
                    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
                    seconds[count].append(median(record["seconds"] for record in records[1:]))
                    losses.append([record["loss"] for record in records])
            cells = [f"{median(seconds[count]):.2f}" for count in args.threads]
            print(f"| {delay:g} ms | {' | '.join(cells)} |", flush=True)
    finally:
        for server in servers:
            server.kill()
    print("losses equal" if all(found == losses[0] for found in losses) else "LOSSES DIFFER")


if __name__ == "__main__":
    main()
