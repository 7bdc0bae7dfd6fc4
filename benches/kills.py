#!/usr/bin/env python3
"""Ends `gnarl import`, `partition` and `train` at random moments, by each of SIGKILL, SIGTERM and SIGINT.

    cargo build --release
    python3 benches/kills.py target/release/gnarl --times 30

After each kill the output must be whole or not there; after the next start nothing temporary may be left;
a resumed run must have the numbers, and the weights byte by byte, of one that was left alone. Prints a table
and ends with code 1 if any of that fails. Only the standard library is needed.
"""

import argparse
import hashlib
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]


def run(gnarl, *words):
    """The result of a command that must succeed."""
    done = subprocess.run([gnarl, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"gnarl {words} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def end(gnarl, words, number, delay):
    """Starts a command and sends it a signal; its exit code, None where it ended before."""
    child = subprocess.Popen(
        [gnarl, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(delay)
    child.send_signal(number)
    code = child.wait()
    return None if code == 0 else code


def temporary(folder):
    """What no finished command leaves."""
    names = [path.name for path in folder.iterdir()]
    return [name for name in names if ".tmp-" in name or name.endswith(".lock")]


def seconds(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def outputs(gnarl, folder, times, title, words, out):
    """Kills a command that makes a folder."""
    run(gnarl, *words)
    reference = contents(out)
    failures = 0
    for number in SIGNALS:
        killed = left = broken = 0
        remove(out)
        # Anew for each signal: the speed of machines drifts.
        undisturbed = seconds(lambda: run(gnarl, *words))
        for _ in range(times):
            remove(out)
            if end(gnarl, words, number, random.uniform(0, undisturbed)) is not None:
                killed += 1
            # A signal that can be handled leaves nothing; what SIGKILL leaves goes with the next start.
            if number != signal.SIGKILL:
                left += bool(temporary(folder))
            if out.exists():
                broken += contents(out) != reference
                remove(out)
            run(gnarl, *words)
            left += bool(temporary(folder))
            broken += contents(out) != reference
        failures += left + broken
        print(f"| {title} | {number.name} | {times} | {killed} | {broken} | {left} |", flush=True)
    return failures


def contents(folder):
    """Checksums of the columns; manifests and reports have times in them."""
    files = sorted(path for path in folder.rglob("*.npy"))
    return [(str(path.relative_to(folder)), digest(path)) for path in files]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def remove(folder):
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def training(gnarl, folder, times, graph):
    """Kills a run, resumes it, and compares it with one left alone."""
    out = folder / "run"
    words = [
        "train", folder / "run.toml",
        "--set", f"dataset.path={graph}", "--set", f"output.dir={out}",
    ]
    (folder / "run.toml").write_text(
        "[model]\nname = 'sage'\nhidden = 32\n[sample]\nfanouts = [5, 5]\nbatch_size = 500\n"
        "[train]\nepochs = 60\nworkers = 2\ncheckpoint_seconds = 0\n"
    )
    keys = ["losses", "test", "valid", "best_epoch", "epochs"]
    numbers = lambda result: [result[key] for key in keys]
    run(gnarl, *words)
    reference = numbers(json.loads((out / "summary.json").read_text()))
    weights = digest(out / "model.safetensors")
    failures = 0
    for number in SIGNALS:
        killed = left = broken = 0
        undisturbed = seconds(lambda: run(gnarl, *words, "--restart"))
        for _ in range(times):
            remove(out)
            if end(gnarl, words, number, random.uniform(0, undisturbed)) is not None:
                killed += 1
            again = numbers(run(gnarl, *words, "--resume"))
            broken += again != reference or digest(out / "model.safetensors") != weights
            left += bool(temporary(out))
        failures += left + broken
        print(f"| train, resumed | {number.name} | {times} | {killed} | {broken} | {left} |", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gnarl")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        graph = folder / "g"
        shape = ["--nodes", 20000, "--communities", 8, "--classes", 8, "--features", 32]
        run(args.gnarl, "generate", "community", *shape, "--out", graph)
        edges = folder / "edges.csv"
        edges.write_text(
            "src,dst\n" + "".join(f"{e * 7919 % 100003},{e * 104729 % 100003}\n" for e in range(1_000_000))
        )
        print("| what | signal | times | ended in time | broken | left something |")
        print("|---|---|---|---|---|---|")
        made = folder / "made"
        words = ["import", "csv", "--edges", edges, "--out", made]
        failures = outputs(args.gnarl, folder, args.times, "import", words, made)
        parts = folder / "parts"
        words = ["partition", graph, "--algorithm", "spring", "--parts", 8, "--out", parts]
        failures += outputs(args.gnarl, folder, args.times, "partition", words, parts)
        failures += training(args.gnarl, folder, args.times, graph)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
