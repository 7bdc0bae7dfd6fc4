"""Epochs of gnarl and of a peer, each in a process of its own."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def programs(words):
    """The builds of gnarl that a command line names, and what follows: `GNARL [--before EARLIER_GNARL] ...`."""
    current, *others = words
    if others[:1] != ["--before"]:
        return {"gnarl": current}, others
    return {"gnarl": current, "gnarl before": others[1]}, others[2:]


def gnarl(program, tables):
    """Seconds of each epoch but the first of a run file with these tables."""
    return gnarl_with_peak(program, tables)[0]


def gnarl_with_peak(program, tables):
    """The same, and the most memory the process had, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        told = train(program, tables, folder)
        return seconds(folder), json.loads(told)["peak_rss_bytes"]


def floor(program, tables):
    """Seconds of an epoch if all operations of its kernels ran at the rate of products that the profile measures."""
    # Kernels of an evaluation would count. The highest of three rates: others are of a machine that did something else.
    tables = {**tables, "train": {**tables["train"], "epochs": 1}, "evaluate": {"splits": []}}
    return min(floor_of_run(program, tables) for _ in range(3))


def floor_of_run(program, tables):
    """The same of one epoch alone."""
    with tempfile.TemporaryDirectory() as folder:
        train(program, tables, folder, "--profile")
        profile = json.loads((Path(folder) / "run" / "profile.json").read_text())
        operations = sum(span["seconds"] * span["gflops"] for span in profile["spans"])
        return operations / profile["rates"]["gflops"]


def train(program, tables, folder, *options):
    """Trains by a run file with these tables in a folder, and returns the last line printed."""
    tables = {**tables, "output": {"dir": f"{folder}/run"}}
    run = Path(folder) / "run.toml"
    lines = (f"[{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in t.items()) for name, t in tables.items())
    run.write_text("\n".join(lines))
    words = [Path(program).resolve(), "train", run, *options]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.splitlines()[-1]


def seconds(folder):
    """Seconds of each epoch but the first of the run in a folder."""
    told = [json.loads(line) for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()]
    return [epoch["seconds"] for epoch in told if "seconds" in epoch][1:]


def peer(script, threads, *words):
    """What `script --measure WORDS` prints in its last line."""
    words = [sys.executable, script, "--measure", *words]
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment = {**os.environ, **limits, "DGLBACKEND": "pytorch"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def rows(found, before=()):
    """Rows of a table in Markdown: the seconds of each system, and gnarl's share of them."""
    own = statistics.median(found["gnarl"])
    for system, times in found.items():
        middle = statistics.median(times)
        cells = [*before, system, f"{middle:.2f}", f"{min(times):.2f}, {max(times):.2f}", f"{own / middle:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
