#!/usr/bin/env python3
"""Accuracy with some parts of the graph in memory beside that of the whole graph (MariusGNN and Armada, §3).

    cargo build --release -p gnarl-cli
    GNARL_DATA=DATA_FOLDER benches/parts_accuracy.py target/release/gnarl WORK_FOLDER [OPTIONS]

Each case is trained by strategy `gradient`, and by `disaggregated` with 4 of 16 parts in memory, in parts of each of
--algorithms; tasks of edges by pairs of parts and, with `nodes` among --deals, with each part once an epoch. Test
scores are those of the weights best in validation, after equal numbers of epochs. Every finished run is kept in
WORK_FOLDER/runs.jsonl by its case and seed: a study can be made in several goes. Prints a table in Markdown.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GNARL_DATA", "data")).resolve()
os.environ["GNARL_DATA"] = str(DATA)

SAGE = {"model.name": "sage", "model.hidden": 128, "sample.fanouts": [10, 10], "sample.batch_size": 1024}
LINKS = {
    "task.kind": "link-prediction", "task.valid": 0.05, "task.test": 0.05, "embedding.dim": 64, "decoder.name": "dot",
    "loss.name": "bce", "negatives.kind": "joint", "negatives.count": 256, "train.metric": "roc_auc",
    "dataset.normalize": "row", "model.dropout": 0.2, "train.lr": 0.003, "sample.batch_size": 2048,
}
COMMUNITIES = ["community", "--communities", 100, "--classes", 10, "--average-degree", 12, "--mixing", 0.2,
               "--features", 64, "--noise", 4]
# Run file below examples/ or none, settings, epochs, the dataset, and the score.
CASES = {
    "physics": (None, {**SAGE, "dataset.split": "physics"}, 8, "coauthor_physics", "accuracy"),
    "physics-links": (None, {**SAGE, **LINKS}, 10, "coauthor_physics", "roc_auc"),
    "communities-300k": (None, SAGE, 5, [*COMMUNITIES, "--nodes", 300_000], "accuracy"),
    "communities-1m": (None, SAGE, 3, [*COMMUNITIES, "--nodes", 1_000_000], "accuracy"),
    "fb15k237-rgcn": ("fb15k237/rgcn.toml", {}, 5, None, "mrr"),
    "imdb-rgcn": ("heterogeneous/rgcn-imdb.toml", {}, 0, None, "accuracy"),
    "acm-rgcn": ("heterogeneous/rgcn-acm.toml", {}, 0, None, "accuracy"),
    "typed": (None, {"model.name": "rgcn", "model.hidden": 64, "task.node_type": "paper", "sample.fanouts": [10, 10],
                     "sample.batch_size": 1024}, 5,
              ["typed", "--nodes", 200_000, "--edges", 3_000_000, "--communities", 50, "--features", 32, "--noise", 4],
              "accuracy"),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--cases", type=words, default=list(CASES))
    parser.add_argument("--algorithms", type=words, default=["knot", "random"])
    parser.add_argument("--deals", type=words, default=["default"])
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--resident", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=0, help="in place of those of the cases")
    return parser.parse_args()


class Study:
    def __init__(self, args):
        self.args = args
        self.gnarl = args.gnarl.resolve()
        self.work = args.work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.kept = self.work / "runs.jsonl"
        lines = self.kept.read_text().splitlines() if self.kept.exists() else []
        self.runs = {run["key"]: run["score"] for run in map(json.loads, lines)}

    def call(self, *words):
        done = subprocess.run([str(word) for word in (self.gnarl, *words)], capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else {}

    def dataset(self, name, source):
        """The settings that name a case's dataset, which is made if it is not there."""
        if source is None:
            return {"dataset.path": self.work / "data" / name}
        path = self.work / "data" / ("-".join(map(str, source)).replace("--", "") if isinstance(source, list) else source)
        if not path.exists():
            if isinstance(source, list):
                self.call("generate", *source, "--seed", 1, "--out", path)
            else:
                graph = DATA / source
                self.call("import", "npy", "--edges", graph / "edges.npy", "--features", graph / "features_csr.npz",
                          "--labels", graph / "labels.npy", "--symmetrize", "--out", path)
        return {"dataset.path": path}

    def settings(self, name, seed):
        base, sets, epochs, source, _ = CASES[name]
        sets = {**sets, **self.dataset(name, source), "train.seed": seed, "train.eval_every": 1}
        if self.args.epochs or epochs:
            sets["train.epochs"] = self.args.epochs or epochs
        if sets.pop("dataset.split", None):
            sets["dataset.split"] = f"{{ train = 0.6, valid = 0.2, test = 0.2, seed = {seed} }}"
        run = ROOT / "examples" / base if base else self.work / "empty.toml"
        if not base:
            run.write_text("")
        return run, sets

    def score(self, name, seed, algorithm, deal):
        shape = f"{self.args.parts}/{self.args.resident}/{self.args.epochs}"
        key = f"{name} {algorithm} {deal} {shape} {seed}"
        if key not in self.runs:
            run, sets = self.settings(name, seed)
            if algorithm:
                sets.update({"train.strategy": "disaggregated", "partition.parts": self.args.parts,
                             "partition.algorithm": algorithm, "disaggregated.resident": self.args.resident})
            if deal != "default":
                sets["disaggregated.deal"] = deal
            sets["output.dir"] = self.work / "run"
            words = [word for key_, value in sets.items() for word in ("--set", f"{key_}={value}")]
            result = self.call("train", run, *words, "--restart")
            self.runs[key] = result["test"][CASES[name][-1]]
            with self.kept.open("a") as kept:
                kept.write(json.dumps({"key": key, "score": self.runs[key]}) + "\n")
        return self.runs[key]


def main():
    study = Study(options())
    args = study.args
    columns = [("", "default")] + [(algorithm, deal) for algorithm in args.algorithms for deal in args.deals]
    print("| case | score |", " | ".join(f"`{a}`, {d}" if a else "`gradient`" for a, d in columns), "|")
    print("|" + "---|" * (len(columns) + 2))
    for name in args.cases:
        cells = []
        whole = None
        for algorithm, deal in columns:
            scores = [100 * study.score(name, seed, algorithm, deal) for seed in range(args.seeds)]
            whole = whole or mean(scores)
            difference = f" ({mean(scores) - whole:+.2f})" if algorithm else ""
            cells.append(f"{mean(scores):.2f}{difference}: " + ", ".join(f"{score:.2f}" for score in scores))
        print(f"| {name} | {CASES[name][-1]} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
