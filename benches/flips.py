#!/usr/bin/env python3
"""Flips single random bits in the files that gnarl wrote, and runs the command that reads them.

    cargo build --release
    python3 benches/flips.py target/release/gnarl --flips 1000 --seed 1

Flips are spread over datasets, parts of each layout, a run with its checkpoint, its weights, embeddings in files, and the rows
of an interrupted inference. After each the command must end with code 1 or 2 and an error that is no panic and names the file
(a manifest by its folder), or have the result that it has without the flip. Prints a table, every flip that did harm, and ends
with code 1 if there is one. Only the standard library is needed; Linux only.
"""

import argparse
import collections
import json
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile

#: Seconds after which a command is taken for one that hangs.
LIMIT = 300
#: Results of training that depend on no clock and no place.
TRAINED = ["losses", "test", "valid", "best_epoch", "epochs"]
EVALUATED = ["test", "valid"]

RUN = """[model]
name = 'sage'
hidden = 4
[sample]
fanouts = [4, 3]
batch_size = 200
[train]
threads = 1
checkpoint_seconds = 0
"""
TYPED = ["task.node_type=paper", "model.name=rgcn"]
IN_FILES = [
    "task.kind=link-prediction",
    "model.name=none",
    "embedding.dim=4",
    "embedding.store=file",
    "negatives.count=8",
    "sample.batch_size=1000",
    "sample.buckets=4",
]


class Kind:
    """Files of one kind, and the command that reads them."""

    def __init__(self, name, folder, words, result, copy=None):
        self.name, self.folder, self.words, self.result = name, folder, words, result
        # Of a folder that the command changes there is a copy to go back to.
        self.copy = copy
        self.counts = collections.Counter()

    def restore(self):
        """Brings the folder back to what it was."""
        if self.copy is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.copytree(self.copy, self.folder)

    def run(self):
        """How the command ended, and its result if it succeeded."""
        words = [str(word) for word in self.words]
        done = subprocess.run(words, capture_output=True, check=False, timeout=LIMIT)
        return done, self.result(done) if done.returncode == 0 else None


def numbers(keys):
    """Some values of the last line."""

    def found(done):
        last = json.loads(done.stdout.decode().splitlines()[-1])
        return {key: last.get(key) for key in keys}

    return found


def run(words, **more):
    """The last line of a command that must succeed, as JSON."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise SystemExit(f"{words} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def kinds(gnarl, base):
    """All kinds of files, made in the folder `base`."""
    graph, typed = base / "graph", base / "typed"
    community = ["--communities", "4", "--classes", "16", "--features", "8", "--average-degree", "8"]
    run([gnarl, "generate", "community", "--nodes", "1500", "--seed", "1", *community, "--out", graph])
    sizes = ["--nodes", "1200", "--edges", "6000", "--communities", "4", "--features", "4"]
    run([gnarl, "generate", "typed", "--seed", "1", *sizes, "--out", typed])
    file = base / "run.toml"
    file.write_text(RUN)

    def train(out, dataset, *sets, how="--restart"):
        given = [f"dataset.path={dataset}", f"output.dir={base / out}", *sets]
        return [gnarl, "train", file, how, *(word for one in given for word in ("--set", one))]

    def trained_on(folder, name, dataset, *sets):
        """Training anew on the files in a folder."""
        words = train(f"run-{name}", dataset, "train.epochs=1", *sets)
        return Kind(name, folder, words, numbers(TRAINED))

    def parts(name, dataset, *words):
        out = base / name
        run([gnarl, "partition", dataset, "--out", out, *words])
        return out

    edge_cut = parts("edge-cut", graph, "--parts", "2")
    vertex_cut = parts("vertex-cut", typed, "--parts", "2", "--layout", "vertex-cut", "--algorithm", "adadne")
    buckets = parts("buckets", graph, "--parts", "4", "--layout", "storage")

    yield trained_on(graph, "dataset", graph)
    yield trained_on(typed, "typed-dataset", typed, *TYPED)
    averaged = ["train.workers=2", "train.strategy=average", f"partition.path={edge_cut}"]
    yield trained_on(edge_cut, "edge-cut", graph, *averaged)
    shared = ["train.workers=2", f"partition.path={vertex_cut}", *TYPED, "sample.method=exact"]
    # Workers that have parts only, where the build has servers: else they read which worker has which node.
    served = [*shared, "partition.servers=ranks"]
    attempt = trained_on(vertex_cut, "vertex-cut", typed, *served)
    done, _ = attempt.run()
    if b"not supported by this build" in done.stderr:
        attempt = trained_on(vertex_cut, "vertex-cut", typed, *shared)
    yield attempt
    stored = ["train.strategy=disaggregated", "disaggregated.resident=2", f"partition.path={buckets}"]
    yield trained_on(buckets, "buckets", graph, *stored)

    def resumed(name, *sets):
        """A run that goes on from its checkpoint."""
        run(train(name, graph, "train.epochs=2", *sets))
        shutil.copytree(base / name, base / f"{name}-copy")
        words = train(name, graph, "train.epochs=3", *sets, how="--resume")
        return Kind(name, base / name, words, numbers(TRAINED), base / f"{name}-copy")

    yield resumed("resumed-run")
    yield resumed("resumed-embeddings", *IN_FILES)

    trained = base / "trained"
    run(train("trained", graph, "train.epochs=2"))
    yield Kind("evaluated-run", trained, [gnarl, "eval", trained], numbers(EVALUATED))
    out, layers = base / "out.csv", base / "layers"
    words = [gnarl, "infer", trained, "--what", "logits", "--out", out, "--force"]
    yield Kind("inferred-run", trained, words, lambda _: out.read_bytes())

    words = [*words, "--layers", layers]
    interrupt(words, layers)
    shutil.copytree(layers, base / "layers-copy")
    yield Kind("layers", layers, words, lambda _: out.read_bytes(), base / "layers-copy")


def interrupt(words, layers):
    """Ends an inference in its last layer, whose rows are wider than those before it and than files may be."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    subprocess.run([*map(str, words)], capture_output=True, check=False, preexec_fn=limit)
    if not list(layers.rglob("layer-1.*.rows")) or not list(layers.rglob("rank-0.json")):
        raise SystemExit("the inference was not interrupted in its last layer")


def flip(kind, expected, numbers_of):
    """Flips a bit, and says what came of it."""
    files = sorted(path for path in kind.folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = numbers_of.choice(files)
    whole = path.read_bytes()
    place, bit = numbers_of.randrange(len(whole)), numbers_of.randrange(8)
    flipped = bytearray(whole)
    flipped[place] ^= 1 << bit
    path.write_bytes(flipped)
    try:
        done, found = kind.run()
        verdict, why = judge(kind, path, done, found == expected)
    except subprocess.TimeoutExpired:
        verdict, why = "harmful", f"no end after {LIMIT} seconds"
    if kind.copy is None:
        path.write_bytes(whole)
    if verdict == "harmful":
        where = path.relative_to(kind.folder)
        print(f"{kind.name}: bit {bit} of byte {place} of {where}: {why}", file=sys.stderr, flush=True)
    return verdict


def judge(kind, path, done, is_equal):
    """What a flip in the file at `path` came to, and why."""
    text = done.stderr.decode(errors="replace")
    if "panicked" in text:
        return "harmful", f"a panic: {text[-600:]}"
    if done.returncode == 0:
        return ("without effect", "") if is_equal else ("harmful", "another result")
    if done.returncode not in (1, 2):
        return "harmful", f"code {done.returncode}: {text[-600:]}"
    names = [path.name]
    if path.suffix == ".json":
        names.append(str(path.parent))
    if not any(name in text for name in names):
        return "harmful", f"not named: {text[-600:]}"
    return "named", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gnarl")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", help="some kinds by name, in place of all")
    given = parser.parse_args()
    gnarl = str(pathlib.Path(given.gnarl).resolve())
    numbers_of = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        every = list(kinds(gnarl, pathlib.Path(name).resolve()))
        chosen = [kind for kind in every if not given.kinds or kind.name in given.kinds]
        expected = {}
        for kind in chosen:
            kind.restore()
            done, expected[kind.name] = kind.run()
            if done.returncode != 0:
                raise SystemExit(f"{kind.name}, without a flip:\n{done.stderr.decode()}")
        for number in range(given.flips):
            kind = chosen[number % len(chosen)]
            kind.restore()
            kind.counts[flip(kind, expected[kind.name], numbers_of)] += 1
    print("| files | flips | named | without effect | harmful |")
    print("|---|---|---|---|---|")
    total = collections.Counter()
    for kind in chosen:
        total.update(kind.counts)
        print(row(kind.name, kind.counts))
    print(row("all", total))
    sys.exit(1 if total["harmful"] else 0)


def row(name, counts):
    """A row of the table."""
    cells = [counts["named"], counts["without effect"], counts["harmful"]]
    return f"| {name} | {sum(cells)} | {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
