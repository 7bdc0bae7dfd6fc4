#!/usr/bin/env python3
"""Seconds of an epoch of knowledge-graph embedding on two threads: gnarl and PyKEEN.

    cargo build --profile dist
    GNARL_DATA=... benches/peers/kge.py target/dist/gnarl > table.md

DistMult and ComplEx on FB15k-237 (272,115 training triples), 200 numbers an entity (complex ones for ComplEx),
batches of 1,024, Adagrad, the softmax of each true triple against its negatives. Three ways to draw them:

- own: 256 negatives of each triple, of which half change its head and half its tail: the same work for both. PyKEEN
  (sLCWA) draws the side by chance, gnarl takes 128 for each (negatives.kind = "uniform").
- shared: gnarl's default, 256 heads and 256 tails that a batch shares: twice as many scores, of far fewer rows.
  PyKEEN has no such negatives, and its own are the row to compare with.
- PyKEEN's other way, to score all entities for the pairs of a batch (LCWA), holds batch x entities x width numbers
  and more: over 16 GB here.

Runs with a Python that has pykeen. Systems take turns; a figure is the median over all epochs of all turns, first
epochs left out. PyKEEN runs a part of an epoch, which counts for the whole. For its best, preload tcmalloc: else most
of its time goes to asking for memory. Shares are those of gnarl with own negatives.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import epochs

THREADS, TURNS, EPOCHS, BATCH, BATCHES, NEGATIVES, WIDTH = 2, 2, 2, 1024, 6, 256, 200
MODELS = {"distmult": "DistMult", "complex": "ComplEx"}
TRAIN, ENTITIES, RELATIONS = Path(os.environ["GNARL_DATA"]) / "fb15k_237" / "train.npy", 14541, 237

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


def tables(model, few, kind, count):
    """The run file with `count` negatives a side; ranking is not what is timed: some triples are enough."""
    return {
        "dataset": {"path": "data"},
        "dataset.import": {"format": "triples"},
        "dataset.import.options": {"train": str(TRAIN), "valid": few, "test": few, "num_entities": ENTITIES},
        "task": {"kind": "link-prediction"},
        "model": {"name": "none"},
        "embedding": {"dim": WIDTH, "optimizer": "adagrad", "lr": 0.1},
        "decoder": {"name": model},
        "loss": {"name": "cross-entropy"},
        "negatives": {"kind": kind, "count": count},
        "sample": {"batch_size": BATCH},
        "train": {"epochs": EPOCHS + 1, "threads": THREADS, "eval_every": 0},
    }


def main():
    import numpy as np

    print("| decoder | system | seconds an epoch | of them the fastest, the slowest | share of gnarl with own negatives |")
    print("|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        few = f"{folder}/few.npy"
        np.save(few, np.load(TRAIN.with_name("valid.npy"))[:100])
        for model, name in MODELS.items():
            found = {"gnarl": [], "gnarl, shared": [], "PyKEEN": []}
            for _ in range(TURNS):
                found["gnarl"] += epochs.gnarl(sys.argv[1], tables(model, few, "uniform", NEGATIVES // 2))
                found["gnarl, shared"] += epochs.gnarl(sys.argv[1], tables(model, few, "joint", NEGATIVES))
                found["PyKEEN"] += epochs.peer(__file__, THREADS, model)
            epochs.rows(found, (name,))


if sys.argv[1] == "--measure":
    measure(sys.argv[2])
else:
    main()
