#!/usr/bin/env python3
"""Simulates a power cut after each call of fsync in `gnarl import`, `partition`, `train` and `infer`.

    cargo build --release
    python3 benches/power_cuts.py target/release/gnarl

A small library (power_cuts.c, built with `cc`) notes each call and what is on disk after it. From that the script makes, for
each call, what a disk may hold when the power goes away right then: (names) the names and contents that were synchronized,
and nothing else; (cache) all names as the system had them in its cache, and the contents that were synchronized. In both the
output must be the old one or the new one, whole, as `gnarl inspect --verify` and comparison of its files tell; a run must
resume to the numbers of one that was left alone. Prints a table, and ends with code 1 if anything else is found. Linux only.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def run(words, **more):
    """The last line of a command that must succeed, as JSON."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise SystemExit(f"{words} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def listing(text):
    """Names with their kinds and inodes."""
    lines = (line.split(" ", 2) for line in text.splitlines())
    return {name: (kind, inode) for kind, inode, name in lines}


class Disk:
    """A folder before a command, and what the command brought to disk."""

    def __init__(self, folder, notes):
        self.folder, self.notes = folder, notes
        self.contents, self.names = {}, {}
        # All that was there before is on disk.
        for path in [folder, *folder.rglob("*")]:
            inode = str(path.lstat().st_ino)
            if path.is_dir():
                below = {one.name: one for one in path.iterdir()}
                self.names[inode] = {
                    name: ("folder" if one.is_dir() else "file", str(one.lstat().st_ino)) for name, one in below.items()
                }
            else:
                self.contents[inode] = path.read_bytes()
        self.root = str(folder.lstat().st_ino)

    def take(self, call):
        """Applies the n-th call."""
        kind, inode = (self.notes / f"{call}.what").read_text().split()
        data = self.notes / f"{call}.data"
        if kind == "folder":
            self.names[inode] = listing(data.read_text())
        else:
            self.contents[inode] = data.read_bytes()

    def write_names(self, inode, out):
        """Writes what is on disk by its synchronized names."""
        out.mkdir()
        for name, (kind, of) in self.names.get(inode, {}).items():
            if kind == "folder":
                self.write_names(of, out / name)
            else:
                (out / name).write_bytes(self.contents.get(of, b""))

    def write_cache(self, call, out):
        """Writes the names of the cache, with the contents that are on disk."""
        out.mkdir()
        names = listing((self.notes / f"{call}.tree").read_text())
        for name, (kind, of) in sorted(names.items()):
            if kind == "folder":
                (out / name).mkdir()
            else:
                (out / name).write_bytes(self.contents.get(of, b""))


def whole(folder):
    """The files below a folder with their contents, or that of a file; none if it is not there."""
    if not folder.exists():
        return None
    if folder.is_file():
        return {"": folder.read_bytes()}
    # The report of a partition is written beside it, once it is whole.
    files = (path for path in folder.rglob("*") if path.is_file())
    kept = (path for path in files if not path.name.startswith("report.html"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def cuts(shim, folder, words):
    """Runs a command, and yields a folder for each cut, with its name."""
    with tempfile.TemporaryDirectory() as notes, tempfile.TemporaryDirectory() as made:
        disk = Disk(folder, pathlib.Path(notes))
        more = {"LD_PRELOAD": str(shim), "POWER_FOLDER": str(folder), "POWER_NOTES": notes}
        run(words, env={**os.environ, **more})
        calls = len(list(disk.notes.glob("*.what")))
        for call in range(1, calls + 1):
            disk.take(call)
            for kind in ("names", "cache"):
                out = pathlib.Path(made) / "disk"
                if kind == "names":
                    disk.write_names(disk.root, out)
                else:
                    disk.write_cache(call, out)
                yield f"{kind} after call {call} of {calls}", out, call == calls
                shutil.rmtree(out)


def outputs(shim, name, folder, out, words):
    """Counts of cuts that left the old output, the new one, and neither."""
    place = folder / out
    old = whole(place)
    counts = {"step": name, "cuts": 0, "old": 0, "new": 0, "neither": []}
    found = []
    for cut, disk, _ in cuts(shim, folder, words):
        found.append((cut, whole(disk / out)))
    new = whole(place)
    for cut, files in found:
        counts["cuts"] += 1
        if files == old:
            counts["old"] += 1
        elif files == new:
            counts["new"] += 1
        else:
            counts["neither"].append(cut)
    if found and found[-1][1] != new:
        counts["neither"].append("the end")
    return counts


def resumed(shim, gnarl, folder, words, expected):
    """As `outputs`, of a run: it must go on, or begin, and end with the numbers expected."""
    counts = {"step": "train", "cuts": 0, "old": 0, "new": 0, "neither": []}
    kept = pathlib.Path(tempfile.mkdtemp())
    try:
        states = []
        for cut, disk, _ in cuts(shim, folder, words):
            state = whole(disk / "run") or {}
            if not states or states[-1][1] != state:
                shutil.copytree(disk, kept / str(len(states)), dirs_exist_ok=True)
                states.append((cut, state))
            counts["cuts"] += 1
        for number, (cut, state) in enumerate(states):
            shutil.rmtree(folder / "run", ignore_errors=True)
            if (kept / str(number) / "run").exists():
                shutil.copytree(kept / str(number) / "run", folder / "run")
            checkpoint = "checkpoint.safetensors" in state
            go_on = ["--resume"] if checkpoint else ["--restart"]
            done = subprocess.run([*map(str, words), *go_on], capture_output=True, text=True, check=False)
            result = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
            if result.get("losses") == expected["losses"] and result.get("test") == expected["test"]:
                counts["new" if checkpoint else "old"] += 1
            else:
                counts["neither"].append(f"{cut}: {done.stderr[-300:]}")
    finally:
        shutil.rmtree(kept)
    return counts


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("gnarl")
    given = arguments.parse_args()
    gnarl = str(pathlib.Path(given.gnarl).resolve())
    tables = []
    with tempfile.TemporaryDirectory() as base:
        base = pathlib.Path(base).resolve()
        shim = base / "power_cuts.so"
        build = ["cc", "-O1", "-shared", "-fPIC", "-o", shim, HERE / "power_cuts.c", "-ldl", "-pthread"]
        subprocess.run(build, check=True)
        folder = base / "folder"
        folder.mkdir()
        community = [gnarl, "generate", "community", "--communities", "4", "--classes", "4"]
        run([*community, "--nodes", "2000", "--seed", "1", "--out", base / "raw"])
        run([gnarl, "import", "npy", "--edges", edges_of(base / "raw", base), "--out", folder / "graph"])
        again = [gnarl, "import", "npy", "--edges", edges_of(base / "raw", base, 7), "--force"]
        tables.append(outputs(shim, "import", folder, "graph", [*again, "--out", folder / "graph"]))

        cut = [gnarl, "partition", base / "raw", "--out", folder / "parts"]
        run([*cut, "--parts", "2"])
        tables.append(outputs(shim, "partition", folder, "parts", [*cut, "--parts", "3", "--force"]))

        file = base / "run.toml"
        file.write_text(
            f"[dataset]\npath = '{base / 'raw'}'\n[model]\nname = 'sage'\nhidden = 16\n"
            "[sample]\nfanouts = [5, 5]\nbatch_size = 200\n"
            "[train]\nepochs = 4\ncheckpoint_seconds = 0\n"
        )
        train = [gnarl, "train", file]
        expected = run([*train, "--set", f"output.dir={base / 'alone'}"])
        run_here = [*train, "--set", f"output.dir={folder / 'run'}"]
        tables.append(resumed(shim, gnarl, folder, run_here, expected))

        infer = [gnarl, "infer", base / "alone", "--out", folder / "rows.csv"]
        run([*infer, "--what", "classes"])
        again = [*infer, "--what", "classes,embeddings", "--force"]
        tables.append(outputs(shim, "infer", folder, "rows.csv", again))
    for table in tables:
        print(json.dumps(table))
    if any(table["neither"] for table in tables):
        sys.exit(1)


def edges_of(graph, base, skip=0):
    """The edges of a dataset as an array file, without some of the first."""
    import numpy as np

    columns = [np.load(graph / f"_N._E._N.{name}.npy") for name in ("src", "dst")]
    path = base / f"edges-{skip}.npy"
    np.save(path, np.stack(columns)[:, skip:].astype(np.int64))
    return path


if __name__ == "__main__":
    main()
