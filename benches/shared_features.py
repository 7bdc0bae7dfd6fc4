#!/usr/bin/env python3
"""Bytes that batch workers send for the ranks of one process, which share features, and by the size of their cache.

    cargo build --release -p gnarl-cli --features serve,mpi
    benches/shared_features.py target/release/gnarl DATASET PARTS [OPTIONS]

PARTS are of layout `storage`. Every rank a process of its own (`--engine mpi`, whose ranks share nothing) is what ranks that
are threads of one process are compared with (mini-batch grouping, Armada §5), and these without a cache what others with one
are. Prints a table in Markdown: megabytes sent in all epochs, features and blocks, how many times less that is, the share of
features that were not asked for in the last epoch, and the median seconds of an epoch after the first; losses must be equal.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("parts", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/shared-features"))
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--cache", default="10%", help="memory, or a share of all nodes' features")
    parser.add_argument("--policy", type=lambda text: text.split(","), default=["clockpro", "lru"])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--port", type=int, default=7272)
    parser.add_argument("--set", action="append", default=[], help="a further setting of all runs")
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("at least two epochs, of which the first is not counted in seconds")
    return args


class Bench:
    def __init__(self, args):
        self.args = args
        args.work.mkdir(parents=True, exist_ok=True)
        self.file = args.work / "run.toml"
        self.file.write_text(
            f'[dataset]\npath = "{args.dataset.resolve()}"\n[partition]\npath = "{args.parts.resolve()}"\n'
            "[model]\nlayers = 2\nhidden = 16\ndropout = 0.0\n[sample]\nfanouts = [10, 10]\nbatch_size = 8192\n"
            '[train]\nstrategy = "disaggregated"\nlr = 0.001\n[evaluate]\nsplits = []\n'
        )

    def run(self, name, ranks, engine="local", **more):
        """A run with one batch worker: bytes that this one sent, share of features not asked for, seconds, losses."""
        args = self.args
        address, out = f"127.0.0.1:{args.port}", args.work / name
        sets = {"train.epochs": args.epochs, "disaggregated.batch_workers": 1, "disaggregated.listen": address}
        sets |= {"train.workers": ranks} if engine == "local" else {}
        pairs = [f"{key}={value}" for key, value in (sets | more | {"output.dir": out}).items()] + args.set
        settings = [word for setting in pairs for word in ("--set", setting)]
        train = [args.gnarl, "train", self.file, "--restart", *settings]
        if engine == "mpi":
            train = ["mpirun", "--oversubscribe", "-n", ranks, *train, "--engine", "mpi"]
        work = [args.gnarl, "work", self.file, "--role", "batch", "--join", f"http://{address}", "--threads", 1]
        work += [word for setting in args.set for word in ("--set", setting)]
        environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        log = args.work / "worker.log"
        worker = subprocess.Popen([str(word) for word in work], stdout=subprocess.PIPE, stderr=log.open("w"))
        try:
            words = [str(word) for word in train]
            done = subprocess.run(words, capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                sys.exit(done.stderr)
            out_of_worker, _ = worker.communicate(timeout=120)
            if worker.returncode != 0:
                sys.exit(log.read_text())
            sent = json.loads(out_of_worker.splitlines()[-1])["sent_bytes"]
        finally:
            worker.kill()
        records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        seconds = median(record["seconds"] for record in records[1:])
        losses = [record["loss"] for record in records]
        return sent, records[-1].get("cache_hit_rate"), seconds, losses


def main():
    args = options()
    bench = Bench(args)
    manifest = json.loads((args.dataset / "dataset.json").read_text())
    memory = args.cache
    if memory.endswith("%"):
        (nodes,) = manifest["node_types"]
        width = next(column["shape"][1] for column in nodes["columns"] if column["name"] == "features")
        memory = f"{int(float(memory[:-1]) / 100 * nodes['count'] * (4 * width + 16))} B"
    runs = [
        ("a process per rank", args.ranks, "mpi", {}),
        ("one process", args.ranks, "local", {}),
        ("one rank", 1, "local", {}),
    ]
    for policy in args.policy:
        cache = {"cache.memory": memory, "cache.policy": policy}
        runs.append((f"one process, cache {args.cache} {policy}", args.ranks, "local", cache))
        runs.append((f"one rank, cache {args.cache} {policy}", 1, "local", cache))
    print(f"{args.ranks} ranks; cache of {memory}\n")
    print("| | MB sent | against a process per rank | not asked for | seconds |")
    print("|---|---|---|---|---|")
    first = None
    for number, (name, ranks, engine, more) in enumerate(runs):
        sent, rate, seconds, losses = bench.run(f"run-{number}", ranks, engine, **more)
        first = first or (sent, losses)
        shown = "–" if rate is None else f"{100 * rate:.0f} %"
        less = f"{first[0] / sent:.2f} times less" if ranks == args.ranks and number else "–"
        print(f"| {name} | {sent / 1e6:.0f} | {less} | {shown} | {seconds:.2f} |", flush=True)
        if any(abs(a - b) > 1e-4 * abs(b) for a, b in zip(losses, first[1])):
            sys.exit(f"losses differ: {losses} and {first[1]}")
    print("losses equal up to rounding")


if __name__ == "__main__":
    main()
