#!/usr/bin/env python3
"""Training on features larger than memory, from a cold disk, beside the reads a second that the disk serves to fio.

    cargo build --release -p gnarl-cli
    benches/larger_than_memory.py target/release/gnarl WORK_FOLDER [--before BIN] [OPTIONS]

Needs root, for control groups of memory (page cache included) and to drop the system's cache, and fio. Generates an R-MAT
graph, and trains GraphSAGE by strategy `gradient` in a half and a quarter of the bytes of its features: without a cache of
rows, where every row comes from the disk, and as by default. BIN is another build of gnarl, run as by default. Prints a table
in Markdown: seconds of the first epoch and of the last one, reads from the disk and their number a second in the last one,
its share of fio's (512 bytes at random past the cache, depth 32, before and after each run), and rows that batches got a
second. Losses must be equal.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

RUN = """
[dataset]
path = "{dataset}"
[model]
name = "sage"
hidden = 128
layers = 2
dropout = 0.0
[sample]
fanouts = [10, 10]
batch_size = 1024
[train]
threads = {threads}
epochs = {epochs}
[evaluate]
splits = []
[output]
dir = "{run}"
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--before", type=Path, help="another build of gnarl")
    parser.add_argument("--nodes", type=int, default=8_000_000)
    parser.add_argument("--edges", type=int, default=60_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--train", type=float, default=0.025, help="share of the nodes that are trained on")
    parser.add_argument("--shares", type=lambda text: [float(word) for word in text.split(",")], default=[0.5, 0.25])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("at least two epochs: the first one begins with empty caches")
    if os.geteuid() != 0 or not shutil.which("fio"):
        parser.error("root and fio are needed")
    return args


def disk_of(path):
    """The name of the disk of a folder in /proc/diskstats."""
    device = os.stat(path).st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    return name


def reads_of(disk):
    """Reads that the disk has served so far."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2] == disk:
            return int(fields[3])
    sys.exit(f"/proc/diskstats has no {disk}")


class Group:
    """A control group of so many bytes of memory."""

    def __init__(self, limit):
        first = Path("/sys/fs/cgroup/memory")
        if first.is_dir():
            self.path, file = first / f"gnarl.{os.getpid()}", "memory.limit_in_bytes"
        else:
            Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+memory")
            self.path, file = Path(f"/sys/fs/cgroup/gnarl.{os.getpid()}"), "memory.max"
        self.path.mkdir()
        (self.path / file).write_text(str(limit))

    def join(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def end(self):
        for _ in range(50):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.1)


class Bench:
    def __init__(self, args):
        self.args = args
        args.work.mkdir(parents=True, exist_ok=True)
        self.disk = disk_of(args.work)
        shape = [args.nodes, args.edges, args.features]
        self.dataset = args.work / "-".join(["rmat", *map(str, shape), args.dtype, str(args.train)])
        if not self.dataset.exists():
            words = ["generate", "rmat", "--nodes", args.nodes, "--edges", args.edges, "--features", args.features]
            words += ["--dtype", args.dtype, "--classes", 16, "--split", args.train, 0.001, 0.001, "--out", self.dataset]
            subprocess.run([str(word) for word in [args.gnarl, *words]], check=True, stdout=subprocess.DEVNULL)
        self.features = self.dataset / "_N.features.npy"

    def fio(self):
        """Reads a second of 512 bytes at random, past the cache, at depth 32."""
        words = ["fio", "--name=a", f"--filename={self.features}", "--readonly", "--rw=randread", "--direct=1", "--bs=512"]
        words += ["--ioengine=io_uring", "--iodepth=32", "--runtime=5", "--time_based", "--output-format=json"]
        found = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return json.loads(found[found.index("{") :])["jobs"][0]["read"]["iops"]

    def train(self, gnarl, limit, sets):
        """Seconds, reads from the disk and the losses of each epoch, cold."""
        run, file = self.args.work / "run", self.args.work / "run.toml"
        shutil.rmtree(run, ignore_errors=True)
        names = {"threads": self.args.threads, "epochs": self.args.epochs}
        file.write_text(RUN.format(dataset=self.dataset.resolve(), run=run.resolve(), **names))
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        group = Group(limit)
        words = [gnarl, "train", file, *(word for pair in sets for word in ("--set", pair))]
        log = open(self.args.work / "log", "w")
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, preexec_fn=group.join)
        metrics, reads = run / "metrics.jsonl", []
        before = reads_of(self.disk)
        while process.poll() is None:
            time.sleep(0.02)
            lines = metrics.read_text().count('"epoch":') if metrics.exists() else 0
            if lines > len(reads):
                now = reads_of(self.disk)
                reads.append(now - before)
                before = now
        group.end()
        if process.returncode != 0:
            sys.exit(f"{words}\n{(self.args.work / 'log').read_text()}")
        epochs = [json.loads(line) for line in metrics.read_text().splitlines()]
        epochs = [line for line in epochs if "epoch" in line]
        return [line["seconds"] for line in epochs], reads, [line["loss"] for line in epochs]

    def table(self):
        size = self.features.stat().st_size
        print(f"features {size / 1e9:.2f} GB, disk {self.disk}\n")
        print("| memory | build | cache of rows | first epoch, s | last, s | reads | a second | of fio's | rows a second |")
        print("|---|---|---|---:|---:|---:|---:|---:|---:|")
        losses = set()
        for share in self.args.shares * self.args.rounds:
            rows = None
            cases = [(self.args.gnarl, "this", "none", ["dataset.cache_memory=0"]), (self.args.gnarl, "this", "default", [])]
            if self.args.before:
                cases.append((self.args.before, "before", "", []))
            for gnarl, build, cache, sets in cases:
                rate = self.fio()
                seconds, reads, loss = self.train(gnarl, int(size * share), sets)
                rate = (rate + self.fio()) / 2
                losses.add(tuple(loss))
                # Without a cache there is a read for each row, but for those that are near each other.
                rows = rows or reads[-1]
                served, got = reads[-1] / seconds[-1], rows / seconds[-1]
                print(
                    f"| {size * share / 1e9:.2f} GB | {build} | {cache} | {seconds[0]:.1f} | {seconds[-1]:.1f} |"
                    f" {reads[-1]:,} | {served:,.0f} | {served / rate:.2f} of {rate:,.0f} | {got:,.0f} |",
                    flush=True,
                )
        if len(losses) != 1:
            sys.exit(f"losses differ: {losses}")


if __name__ == "__main__":
    Bench(options()).table()
