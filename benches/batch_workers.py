#!/usr/bin/env python3
"""Epochs by the number of batch workers, each held to a share of a core, beside what `gnarl plan` predicts.

    cargo build --release -p gnarl-cli --features serve
    benches/batch_workers.py target/release/gnarl DATASET PARTS [OPTIONS]

A simulation where cores lack: compute is held to --compute of a core and every batch worker to --each, by control groups of the
CPU (root, Linux, version 1 or 2 of control groups), so that eight batch workers beside compute need no more than two cores.
PARTS are of layout `storage`. Two probes of one worker run first, held to the same share as compute: one stage after the other
(`train.pipeline = "off"`, from which `gnarl plan --from` predicts), and as by default, in which compute prepares its batches
itself: aggregated preparation. Prints a table in Markdown: median seconds of an epoch after the first, throughput against one batch
worker, seconds predicted, and the ratio; the losses of all runs must be equal.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

PERIOD = 10_000
V1 = Path("/sys/fs/cgroup/cpu")
V2 = Path("/sys/fs/cgroup")


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("parts", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/batch-workers"))
    parser.add_argument("--compute", type=float, default=0.4, help="cores of compute")
    parser.add_argument("--each", type=float, default=0.19, help="cores of a batch worker")
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--port", type=int, default=7171)
    parser.add_argument("--set", action="append", default=[], help="a further setting of all runs")
    args = parser.parse_args()
    if args.epochs < 2 or args.workers[0] != 1:
        parser.error("at least two epochs, of which the first is not counted, and one batch worker first, which others are compared with")
    return args


@contextlib.contextmanager
def group(name, cores):
    """A control group of so many cores; yields what puts a process into it."""
    if (V1 / "cpu.cfs_quota_us").exists():
        path = V1 / f"gnarl-{name}-{os.getpid()}"
        path.mkdir()
        (path / "cpu.cfs_period_us").write_text(str(PERIOD))
        (path / "cpu.cfs_quota_us").write_text(str(int(cores * PERIOD)))
    else:
        path = V2 / f"gnarl-{name}-{os.getpid()}"
        (V2 / "cgroup.subtree_control").write_text("+cpu")
        path.mkdir()
        (path / "cpu.max").write_text(f"{int(cores * PERIOD)} {PERIOD}")
    try:
        yield lambda: (path / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        path.rmdir()


class Bench:
    def __init__(self, args):
        self.args = args
        args.work.mkdir(parents=True, exist_ok=True)
        self.file = args.work / "run.toml"
        self.file.write_text(
            f'[dataset]\npath = "{args.dataset.resolve()}"\n'
            f'[partition]\npath = "{args.parts.resolve()}"\n'
            "[model]\nlayers = 3\nhidden = 16\ndropout = 0.0\n[sample]\nfanouts = [15, 10, 5]\nbatch_size = 1024\n"
            '[train]\nstrategy = "disaggregated"\nthreads = 1\nprefetch = 16\n[evaluate]\nsplits = []\n'
        )

    def words(self, **more):
        pairs = {"train.epochs": self.args.epochs, **more}
        sets = [f"{key}={value}" for key, value in pairs.items()] + self.args.set
        return [word for setting in sets for word in ("--set", setting)]

    def train(self, name, enter, **more):
        """A run of compute within a group, and its result."""
        out = self.args.work / name
        command = [self.args.gnarl, "train", self.file, "--restart", *self.words(**{"output.dir": out, **more})]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=enter)
        if done.returncode != 0:
            sys.exit(done.stderr)
        records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        seconds = median(record["seconds"] for record in records[1:])
        return seconds, json.loads(done.stdout.splitlines()[-1])["losses"]

    def served(self, count):
        """A run whose batches `count` batch workers prepare."""
        args = self.args
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context(group("compute", args.compute))
            address = f"127.0.0.1:{args.port}"
            workers = []
            for number in range(count):
                command = [args.gnarl, "work", self.file, "--role", "batch", "--join", f"http://{address}", "--threads", 1]
                command += self.words()
                into = stack.enter_context(group(f"batch-{number}", args.each))
                log = (args.work / f"worker-{number}.log").open("w")
                workers.append(
                    subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, preexec_fn=into)
                )
            try:
                more = {"disaggregated.batch_workers": count, "disaggregated.listen": address}
                found = self.train(f"served-{count}", enter, **more)
                for worker in workers:
                    worker.wait(timeout=120)
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()
            return found

    def alone(self, name, **more):
        with group("compute", self.args.compute) as enter:
            return self.train(name, enter, **more)

    def predicted(self):
        """Seconds by the number of batch workers, as planned from the probe."""
        args = self.args
        share = args.each / args.compute
        words = self.words(**{"plan.batch_threads": share, "plan.threads": 1})
        command = [args.gnarl, "plan", self.file, "--from", args.work / "probe", *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        plan = json.loads(done.stdout.splitlines()[-1])["batch_workers"]
        sides = plan["sides"]

        known = {choice["batch_workers"]: choice["seconds"] for choice in plan["choices"]}

        def of(count):
            # The plan has no rows beyond the number that keeps up.
            if count in known:
                return known[count]
            each = sides["prepare"] / count + sides["lists"]
            return max(sides["compute"], each, sides["link"], sides["disk"])

        return sides, of


def main():
    args = options()
    bench = Bench(args)
    alone, times, losses = [], {count: [] for count in args.workers}, []
    for _ in range(args.rounds):
        _, found = bench.alone("probe", **{"train.pipeline": "off"})
        losses.append(found)
        seconds, found = bench.alone("aggregated")
        alone.append(seconds)
        losses.append(found)
        for count in args.workers:
            seconds, found = bench.served(count)
            times[count].append(seconds)
            losses.append(found)
    sides, of = bench.predicted()
    print(json.dumps(sides))
    print("| batch workers | seconds | throughput | predicted | measured / predicted |")
    print("|---|---|---|---|---|")
    print(f"| none, aggregated | {median(alone):.2f} | – | {sides['alone']:.2f} | {median(alone) / sides['alone']:.2f} |")
    first = median(times[args.workers[0]])
    for count in args.workers:
        seconds = median(times[count])
        print(f"| {count} | {seconds:.2f} | {first / seconds:.2f} | {of(count):.2f} | {seconds / of(count):.2f} |")
    print("losses equal" if all(found == losses[0] for found in losses) else "LOSSES DIFFER")


if __name__ == "__main__":
    main()
