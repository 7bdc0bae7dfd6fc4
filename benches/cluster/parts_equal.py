#!/usr/bin/env python3
"""The same run with parts in memory, whoever prepares its batches and whoever trains: are losses the same?

    cargo build --release -p gnarl-cli --features serve,mpi
    sudo GNARL_DATA=... benches/cluster/parts_equal.py target/release/gnarl WORK_FOLDER [CASE ...]

`whole`: all parts in memory, against strategy `gradient` on the same parts. `few`: 4 slots of 16 parts with one in memory
each, against the run of one rank that prepares its own batches. Batch workers are processes; ranks are threads, processes under
MPI, or machines, which are network namespaces (see `hosts` beside this file; root, and Open MPI). Prints a table in Markdown
with the largest relative difference of a loss.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from launch import hosts, mpirun

HERE = Path(__file__).resolve().parent
GNARL, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
PORT = 7181
MACHINES = 3

SPLIT = {"dataset.split": "{ train = 0.6, valid = 0.2, test = 0.2 }"}
SAGE = {"model.name": "sage", "model.hidden": 32, "sample.fanouts": [10, 10], "train.epochs": 3}
LINKS = {"task.kind": "link-prediction", "task.valid": 0.1, "task.test": 0.1, "embedding.dim": 16, "negatives.count": 16,
         "train.epochs": 2}
TYPED = {"model.name": "rgcn", "model.hidden": 32, "sample.fanouts": [5, 5], "train.epochs": 2}
COMMUNITY = ["community", "--nodes", 1_000_000, "--communities", 100, "--features", 32]
KINDS = ["typed", "--nodes", 200_000, "--edges", 2_000_000, "--features", 16]
# Dataset, and settings.
CASES = {
    "cora": ("cora", {**SAGE, **SPLIT, "sample.batch_size": 100}),
    "pubmed": ("pubmed", {**SAGE, **SPLIT, "sample.batch_size": 1000}),
    "community-1m": (COMMUNITY, {**SAGE, "sample.batch_size": 10_000}),
    "pubmed, links": ("pubmed", {**SAGE, **LINKS, "sample.batch_size": 4000}),
    "typed": (KINDS, {**TYPED, "task.node_type": "paper", "sample.batch_size": 4000}),
    "typed, links": (KINDS, {**TYPED, **LINKS, "task.edge_type": "paper:r0:author", "sample.batch_size": 20_000}),
}
WAYS = {
    "1 rank": ([], ["train.workers=1"]),
    "2 ranks": ([], ["train.workers=2"]),
    "4 ranks": ([], ["train.workers=4"]),
    "2 processes": (lambda: mpirun(2), ["train.engine=mpi"]),
    "3 machines": (lambda: hosts(MACHINES, WORK), ["train.engine=mpi"]),
}


def call(*words, **more):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr[-3000:]}")
    return done.stdout


def flags(sets):
    return [word for setting in sets for word in ("--set", setting)]


def dataset(source):
    """The dataset's folder, made if it is not there."""
    name = source if isinstance(source, str) else "-".join(map(str, source)).replace("--", "")
    out = WORK / "data" / name
    if out.exists():
        return out
    if not isinstance(source, str):
        call(GNARL, "generate", *source, "--seed", 1, "--split", 0.1, 0.02, 0.02, "--out", out)
        return out
    graph = Path(os.environ["GNARL_DATA"]) / source
    features = next(file for file in ("features_csr.npz", "features.npy") if (graph / file).exists())
    call(GNARL, "import", "npy", "--edges", graph / "edges.npy", "--features", graph / features, "--labels",
         graph / "labels.npy", "--symmetrize", "--out", out)
    return out


class Case:
    def __init__(self, name):
        self.name = name
        source, sets = CASES[name]
        self.sets = [f"{key}={value}" for key, value in sets.items()]
        self.sets += [f"dataset.path={dataset(source)}", "train.threads=2", "train.deadline_seconds=120"]
        self.file = WORK / "run.toml"
        self.file.write_text("")
        self.parts = WORK / "parts" / name.replace(", ", "-")
        if not self.parts.exists():
            task = ["--task", self.file, *flags(self.sets)] if "links" in name else []
            call(GNARL, "partition", dataset(source), "--parts", 16, "--layout", "storage", "--out", self.parts, *task)
        self.sets.append(f"partition.path={self.parts}")

    def losses(self, launcher, sets):
        words = [*launcher, GNARL, "train", self.file, *flags([*self.sets, f"output.dir={WORK}/run", *sets]), "--restart"]
        return json.loads(call(*words, timeout=1800).strip().splitlines()[-1])["losses"]

    def found(self, way, shape, batch_workers):
        launcher, sets = WAYS[way]
        launcher = launcher() if callable(launcher) else launcher
        sets = [*sets, "train.strategy=disaggregated", *shape]
        if not batch_workers:
            return self.losses(launcher, sets)
        # Machines reach the coordinator at the first rank's address; loopback is that of each alone.
        started = []
        machines = "machines" in way
        address = f"10.77.0.1:{PORT}" if machines else f"127.0.0.1:{PORT}"
        access = self.access() if machines else []
        try:
            for number in range(batch_workers):
                host = f"10.77.0.{number % MACHINES + 1}"
                scheme = "https" if machines else "http"
                listen = ["--listen", f"{host}:{PORT + 1 + number}", *access[0]] if machines else []
                command = [GNARL, "work", self.file, "--role", "batch", "--join", f"{scheme}://{address}", "--threads", 1,
                           *listen, *flags([*self.sets, "train.strategy=disaggregated", *shape])]
                command = [str(word) for word in command]
                if machines:
                    command = [str(HERE / "hosts"), "agent", host, shlex.join(command)]
                log = (WORK / f"worker-{number}.log").open("w")
                started.append(subprocess.Popen(command, stdout=log, stderr=log))
            more = [f"disaggregated.batch_workers={batch_workers}", f"disaggregated.listen={address}"]
            return self.losses(launcher, [*sets, *more, *(access[1] if machines else [])])
        finally:
            for worker in started:
                worker.kill()
                worker.wait()

    def access(self):
        """Flags of batch workers, and settings of the run: a token, and a certificate for all machines."""
        token, certificate, key = (WORK / name for name in ("token", "certificate.pem", "key.pem"))
        if not certificate.exists():
            token.write_text("token-of-these-runs\n")
            token.chmod(0o600)
            names = ",".join(f"IP:10.77.0.{number + 1}" for number in range(MACHINES))
            call("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", "/CN=gnarl", "-addext",
                 f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate)
        words = ["--token-file", token, "--tls-cert", certificate, "--tls-key", key]
        return words, [f"disaggregated.token_file={token}", f"disaggregated.certificate={certificate}",
                       f"disaggregated.key={key}"]


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    call(HERE / "hosts", "up", MACHINES)
    print("| case | parts in memory | ranks | batch workers | largest difference |")
    print("|---|---|---|---|---:|", flush=True)
    try:
        for name in sys.argv[3:] or CASES:
            case = Case(name)
            pairs = "links" in name
            shapes = {"whole": ["disaggregated.slots=1", "disaggregated.resident=16"],
                      "few": ["disaggregated.slots=4", f"disaggregated.resident={2 if pairs else 1}"]}
            for shape, sets in shapes.items():
                alone = case.losses([], ["train.strategy=gradient"]) if shape == "whole" else case.found("1 rank", sets, 0)
                for way in WAYS:
                    for count in (0, 1, 2, 4):
                        found = case.found(way, sets, count)
                        apart = max(abs(a - b) / abs(b) for a, b in zip(found, alone, strict=True))
                        print(f"| {name} | {shape} | {way} | {count or 'none'} | {apart:.1e} |", flush=True)
    finally:
        call(HERE / "hosts", "down")


main()
