#!/usr/bin/env python3
"""Epochs and scores of strategy `disaggregated` beside `gradient` on the same dataset, in turns.

    cargo build --release -p gnarl-cli
    benches/disaggregated.py target/release/gnarl DATASET WORK_FOLDER [OPTIONS]

GraphSAGE of two layers of 128 over 10 and 10 neighbors, batches of 1,024. The dataset is cut into parts once per
partitioner, which stay in WORK_FOLDER. Each round trains all settings one after the other with a seed of its own; prints
a table in Markdown: median seconds of an epoch after the first, sampled edges an epoch, megabytes of parts read in an
epoch after the first, seconds an epoch waits for parts, peak memory, and the test score where the dataset has one (--scores
names others). For a limit of memory run the whole script in a control group. --task link-prediction predicts edges, on parts of
its message graph, by each of --deals.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean, median


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--algorithms", type=lambda text: text.split(","), default=["knot"])
    parser.add_argument(
        "--resident",
        type=lambda text: [tuple(map(int, pair.split("x"))) for pair in text.split(",")],
        default=[(1, 4), (2, 2)],
        help="slots and resident parts of each, such as 1x4,2x2",
    )
    parser.add_argument("--task", default="node-classification", help="task.kind")
    parser.add_argument("--deals", type=lambda text: text.split(","), default=[None], help="disaggregated.deal, such as pairs,nodes")
    parser.add_argument("--scores", type=lambda text: text.split(","), help="names of test scores to print")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--split", help="shares of a seeded split, such as 0.7,0.15,0.15; by default the dataset's own")
    parser.add_argument("--no-scores", action="store_true", help="evaluate nothing")
    parser.add_argument("--set", action="append", default=[], help="a further setting of all runs")
    return parser.parse_args()


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, args):
        self.args = args
        args.work.mkdir(parents=True, exist_ok=True)
        self.file = args.work / "run.toml"
        self.file.write_text(f'[dataset]\npath = "{args.dataset.resolve()}"\n[task]\nkind = "{args.task}"\n')

    def parts(self, algorithm):
        args = self.args
        of_edges = not args.task.startswith("node")
        out = args.work / f"{args.dataset.name}-{algorithm}-{args.parts}{'-' + args.task if of_edges else ''}"
        if not out.exists():
            cut = ["partition", args.dataset, "--parts", args.parts, "--algorithm", algorithm]
            given = [word for setting in args.set for word in ("--set", setting)]
            call(args.gnarl, *cut, "--layout", "storage", "--out", out, *(["--task", self.file, *given] if of_edges else []))
        return out

    def settings(self):
        """Names of the settings, with what they set."""
        all_settings = {"gradient": {}}
        for algorithm in self.args.algorithms:
            parts = self.parts(algorithm)
            for slots, resident in self.args.resident:
                for deal in self.args.deals:
                    name = f"{algorithm}, {slots} x {resident} of {self.args.parts}"
                    all_settings[f"{name}, {deal}" if deal else name] = {
                        "train.strategy": "disaggregated",
                        "partition.path": parts,
                        "disaggregated.slots": slots,
                        "disaggregated.resident": resident,
                        **({"disaggregated.deal": deal} if deal else {}),
                    }
        return all_settings

    def train(self, own, seed):
        args = self.args
        run = args.work / "run"
        sets = {
            "output.dir": run,
            "model.name": "sage",
            "model.hidden": 128,
            "sample.fanouts": "[10,10]",
            "sample.batch_size": args.batch,
            "train.lr": args.lr,
            "train.epochs": args.epochs,
            "train.eval_every": 0,
            "train.seed": seed,
            **own,
        }
        if args.no_scores:
            sets["evaluate.splits"] = "[]"
        if args.split:
            train, valid, test = args.split.split(",")
            sets["dataset.split"] = f"{{ train = {train}, valid = {valid}, test = {test}, seed = {seed} }}"
        words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        words += [word for given in args.set for word in ("--set", given)]
        summary = json.loads(call(args.gnarl, "train", self.file, "--restart", *words).splitlines()[-1])
        epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        later = epochs[1:] or epochs
        return {
            "seconds": median(epoch["seconds"] for epoch in later),
            "edges": mean(epoch["sampled_edges"] for epoch in later) / 1e6,
            "read": mean(epoch.get("read_bytes", 0) for epoch in later) / 1e6,
            "load": mean(epoch["stages"]["load"] for epoch in later),
            "memory": summary["peak_rss_bytes"] / 1e6,
            "scores": [summary["test"].get(name) for name in args.scores or [summary["metric"]]],
        }


def main():
    args = options()
    bench = Bench(args)
    settings = bench.settings()
    found = {name: [] for name in settings}
    for seed in range(args.rounds):
        for name, own in settings.items():
            found[name].append(bench.train(own, seed))
    print("| setting | seconds | to gradient | edges, millions | read, MB | wait for parts, s | peak, MB | test |")
    print("|---|---|---|---|---|---|---|---|")
    base = mean(run["seconds"] for run in found["gradient"])
    for name, runs in found.items():
        seconds = ", ".join(f"{run['seconds']:.2f}" for run in runs)
        of = {key: mean(run[key] for run in runs) for key in ["seconds", "edges", "read", "load", "memory"]}
        by_name = [[score for score in scores if score is not None] for scores in zip(*[run["scores"] for run in runs])]
        score = " / ".join(f"{100 * mean(scores):.2f}" if scores else "–" for scores in by_name)
        print(
            f"| {name} | {seconds} | {of['seconds'] / base:.2f} | {of['edges']:.1f} | {of['read']:.0f} "
            f"| {of['load']:.2f} | {of['memory']:.0f} | {score} |"
        )


if __name__ == "__main__":
    main()
