#!/usr/bin/env python3
"""Seconds of an epoch of knowledge-graph embedding on two threads: gnarl and PyKEEN.

    cargo build --profile dist
    GNARL_DATA=... benches/peers/kge.py target/dist/gnarl > table.md

DistMult and ComplEx on FB15k-237 (272,115 training triples), 200 numbers an entity (complex ones for ComplEx),
batches of 1,024, Adagrad, the softmax of each true triple against its negatives. gnarl draws 256 negatives that a
batch shares, for heads and for tails. PyKEEN has no shared negatives: each triple has 256 of its own, which change
its head or its tail (sLCWA). Its other way, to score all entities for the pairs of a batch (LCWA), holds batch x
entities x width numbers and more: over 16 GB here. Runs with a Python that has pykeen. Systems take turns; a
figure is the median over all epochs of all turns, first epochs left out. PyKEEN runs a part of an epoch, which
counts for the whole. For its best, preload tcmalloc: else most of its time goes to asking for memory.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS, TURNS, EPOCHS, BATCH, BATCHES, NEGATIVES, WIDTH = 2, 2, 2, 1024, 6, 256, 200
MODELS = {"distmult": "DistMult", "complex": "ComplEx"}
TRAIN, ENTITIES, RELATIONS = Path(os.environ["GNARL_DATA"]) / "fb15k_237" / "train.npy", 14541, 237

RUN = """
[dataset]
path = "{folder}/data"
[dataset.import]
format = "triples"
[dataset.import.options]
train = "{train}"
valid = "{folder}/few.npy"
test = "{folder}/few.npy"
num_entities = {entities}
[task]
kind = "link-prediction"
[model]
name = "none"
[embedding]
dim = {width}
optimizer = "adagrad"
lr = 0.1
[decoder]
name = "{model}"
[loss]
name = "cross-entropy"
[negatives]
kind = "joint"
count = {negatives}
[sample]
batch_size = {batch}
[train]
epochs = {epochs}
threads = {threads}
eval_every = 0
[output]
dir = "{folder}/run"
"""


def measure(model):
    """In a process of its own: seconds of PyKEEN's epochs."""
    import numpy as np
    import torch
    from pykeen.models import ComplEx, DistMult
    from pykeen.training import SLCWATrainingLoop, TrainingCallback
    from pykeen.triples import CoreTriplesFactory

    torch.set_num_threads(THREADS)
    triples = torch.from_numpy(np.load(TRAIN).astype(np.int64))
    steps = -(-len(triples) // BATCH)
    factory = CoreTriplesFactory(triples[: BATCH * BATCHES], num_entities=ENTITIES, num_relations=RELATIONS)
    kind = {"distmult": DistMult, "complex": ComplEx}[model]
    network = kind(triples_factory=factory, embedding_dim=WIDTH, loss="infonce", random_seed=0)
    optimizer = torch.optim.Adagrad(network.parameters(), lr=0.1)
    loop = SLCWATrainingLoop(model=network, triples_factory=factory, optimizer=optimizer, negative_sampler="basic",
                             negative_sampler_kwargs={"num_negs_per_pos": NEGATIVES})
    ends = []

    class Clock(TrainingCallback):
        def post_epoch(self, epoch, epoch_loss, **rest):
            ends.append(time.perf_counter())

    loop.train(factory, num_epochs=EPOCHS + 1, batch_size=BATCH, use_tqdm=False, callbacks=Clock())
    print(json.dumps([(after - before) / BATCHES * steps for before, after in zip(ends, ends[1:])]))


def peer(model):
    words = [sys.executable, __file__, "--measure", model]
    threads = {name: str(THREADS) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode != 0:
        sys.exit(f"PyKEEN, {model}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(gnarl, model):
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        # Ranking is not what is timed: some triples are enough.
        np.save(f"{folder}/few.npy", np.load(TRAIN.with_name("valid.npy"))[:100])
        run = Path(folder) / "run.toml"
        run.write_text(RUN.format(folder=folder, train=TRAIN, entities=ENTITIES, width=WIDTH, model=model,
                                  negatives=NEGATIVES, batch=BATCH, epochs=EPOCHS + 1, threads=THREADS))
        done = subprocess.run([gnarl, "train", str(run)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        epochs = [json.loads(line) for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()]
    return [epoch["seconds"] for epoch in epochs if "seconds" in epoch][1:]


def main():
    gnarl = str(Path(sys.argv[1]).resolve())
    print("| decoder | system | seconds an epoch | of them the fastest, the slowest | gnarl's share |")
    print("|---|---|---:|---:|---:|")
    for model, name in MODELS.items():
        found = {"gnarl": [], "PyKEEN": []}
        for _ in range(TURNS):
            found["gnarl"] += ours(gnarl, model)
            found["PyKEEN"] += peer(model)
        own = statistics.median(found["gnarl"])
        for system, times in found.items():
            middle = statistics.median(times)
            print(f"| {name} | {system} | {middle:.2f} | {min(times):.2f}, {max(times):.2f} | {own / middle:.2f} |", flush=True)


if sys.argv[1] == "--measure":
    measure(sys.argv[2])
else:
    main()
