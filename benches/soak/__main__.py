"""Trains by every strategy for hours while faults are drawn at random.

    cargo build --release --features serve,mpi
    python3 benches/soak target/release/gnarl --minutes 120

Half of the machine goes to short runs that a fault strikes once: a process is killed or stopped, the link to a server is cut,
the run's disk is filled, a file it reads is made shorter or has a bit flipped, the checkpoint of a killed run has a bit flipped.
Such a run must have the numbers and weights of one that nothing happened to, or end with an error that names the fault, and
go on to those numbers once that is mended. The other half goes to runs that last, whose memory and descriptors must not grow
while their processes are stopped and their links closed. Prints two tables, and ends with code 1 if anything else happened.
Needs Linux, Open MPI, and the right to mount a file system to fill disks (without it that fault is left out). Only the standard
library is used.
"""

import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

import endurance
import faults
import strategies
import trials


def short_runs(cases, folder, names, end, seed, kept, counts, wrong):
    """Trials with the faults of some names until it is late, each strategy in turn."""
    numbers = random.Random(seed)
    kinds = [kind for kind in faults.FAULTS if not names or kind.name in names.split(",")]
    kinds = [kind for kind in kinds if kind is not faults.Fill or can_mount(folder)]
    cases = [case for case in cases if any(kind.fits(case.strategy) for kind in kinds)]
    number = 0
    while cases and time.monotonic() < end:
        case = cases[number % len(cases)]
        number += 1
        kind = numbers.choice([kind for kind in kinds if kind.fits(case.strategy)])
        place = folder / "trial"
        what = f"trial {number}: {case.strategy.name}, {kind.name}"
        try:
            came, detail, seconds = trials.attempt(case, kind, place, numbers)
            counts[case.strategy.name, kind.name, came] += 1
            print(f"{what}: {came} in {seconds:.0f} s ({detail})", flush=True)
        # Whatever else the harness stumbles over is no proof that all is well.
        except Exception as error:  # noqa: BLE001
            counts[case.strategy.name, kind.name, "wrong"] += 1
            wrong.append(f"{what}: {error!r}")
            print(f"WRONG {wrong[-1]}", flush=True)
            shutil.copytree(place, kept / f"trial-{number}", dirs_exist_ok=True)


def can_mount(folder):
    place = folder / "mounted"
    place.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "tmpfs", str(place)]
    allowed = faults.subprocess.run(words, capture_output=True, check=False).returncode == 0
    faults.unmount(place)
    if not allowed:
        print("no right to mount: disks are not filled", flush=True)
    return allowed


def long_runs(cases, folder, end, seed, kept, table, wrong):
    """One run that lasts for each strategy."""
    numbers = random.Random(seed)
    for index, case in enumerate(cases):
        seconds = (end - time.monotonic()) / (len(cases) - index)
        if seconds <= 0:
            break
        place = folder / "long"
        try:
            for row, grew in endurance.endure(case, place, seconds, numbers):
                table.append(row)
                print(row, flush=True)
                if grew:
                    wrong.append(f"grew: {row}")
        # Whatever else the harness stumbles over is no proof that all is well.
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{case.strategy.name}, long: {error!r}")
            print(f"WRONG {wrong[-1]}", flush=True)
            shutil.copytree(place, kept / f"long-{case.strategy.name}", dirs_exist_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gnarl")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="strategies whose names begin so")
    parser.add_argument("--faults", default="", help="names of faults, such as flip,shrink; all by default")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("soak-wrong"), help="for what went wrong")
    given = parser.parse_args()
    program = pathlib.Path(given.gnarl).resolve()
    chosen = [strategy for strategy in strategies.STRATEGIES if strategy.name.startswith(given.only)]
    counts = collections.Counter()
    table = []
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        strategies.graphs(program, folder)
        cases = []
        for strategy in chosen:
            cases.append(trials.Case(program, strategy, folder / strategy.graph, folder))
            case = cases[-1]
            print(f"{strategy.name}: {case.epochs} epochs in {case.seconds:.1f} s", flush=True)
        end = time.monotonic() + 60 * given.minutes
        more = [end, given.seed, given.keep]
        lasting = threading.Thread(target=long_runs, args=[cases, folder, *more, table, wrong])
        lasting.start()
        short_runs(cases, folder, given.faults, *more, counts, wrong)
        lasting.join()
    report(chosen, counts, table)
    print("\n".join(["", *wrong]) if wrong else "\nnothing went wrong")
    sys.exit(1 if wrong else 0)


def report(chosen, counts, table):
    """Prints the two tables."""
    kinds = [kind.name for kind in faults.FAULTS]
    print(f"\n| strategy | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for strategy in chosen:
        cells = []
        for kind in kinds:
            right, named, missed, bad = (
                counts[strategy.name, kind, came] for came in ("right", "named", "missed", "wrong")
            )
            late = f" ({missed})" if missed else ""
            cells.append(f"{right} + {named}{late}" + (f", {bad} WRONG" if bad else ""))
        print(f"| {strategy.name} | {' | '.join(cells)} |")
    print("\nruns that ended right, and with an error that names the fault (and that ended before it)\n")
    print("| strategy | process | seconds | epochs | memory, median MiB | largest | descriptors | growth, MiB | growth |")
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(table))


if __name__ == "__main__":
    main()
