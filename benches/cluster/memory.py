#!/usr/bin/env python3
"""Memory of each rank of a run on hosts that have only their own parts: does it fall as 1 / hosts?

    benches/cluster/memory.py GNARL PARTS RUN.toml WORK_FOLDER HOSTS… [-- SET…]

PARTS is a partitioned dataset, and RUN.toml names `train.epochs`. For each number of HOSTS, that many processes of
this machine train RUN.toml, each with the name of another host and a folder with its share of the parts alone. The table has
what each rank says of its memory before the first step, and the largest values, read every tenth of a second, while training
and from the end of the last epoch on, when embeddings and reports are written. Needs Open MPI and a build with the feature `mpi`.
"""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

from launch import mpirun, own_parts


def memory_of(process):
    """Anonymous and mapped memory of a process in bytes, and its rank."""
    status = (process / "status").read_text()
    value = lambda key: int(status.split(f"{key}:")[1].split()[0]) * 1024
    environment = (process / "environ").read_bytes().split(b"\0")
    rank = next(int(word.split(b"=")[1]) for word in environment if word.startswith(b"OMPI_COMM_WORLD_RANK="))
    return rank, value("RssAnon"), value("RssFile")


BEFORE = re.compile(r"rank (\d+): (\d+) MB anonymous, (\d+) MB mapped before the first step")
STAGES = ["at start", "training", "at the end"]


def watch(folder, stages, peaks):
    """The largest memory of each rank that trains in `folder` in each of the stages, of which the last entry of `stages` is
    under way, but the first, of which ranks tell."""
    while stages[-1] < len(STAGES):
        time.sleep(0.1)
        stage = stages[-1]
        if stage == 0:
            continue
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                if f"output.dir={folder}".encode() in words:
                    rank, *now = memory_of(process)
                    of = peaks.setdefault((rank, stage), [0, 0])
                    of[:] = map(max, of, now)
            except (OSError, StopIteration, IndexError):
                continue


def run(gnarl, parts, toml, work, hosts, sets):
    for host in range(hosts):
        own_parts(parts, work / f"parts-{host}-of-{hosts}", host, hosts)
    out = work / f"run-{hosts}"
    shutil.rmtree(out, ignore_errors=True)
    path = f"{work}/parts-$OMPI_COMM_WORLD_RANK-of-{hosts}"
    words = ["--set train.engine=mpi", f"--set partition.path={path}", "--set partition.servers=ranks"]
    words += [f"--set output.dir={out}", "-v", *(f"--set {word}" for word in sets)]
    command = f"GNARL_HOST=host-$OMPI_COMM_WORLD_RANK exec {gnarl} train {toml} {' '.join(words)}"
    stages, peaks = [0], {}
    watcher = threading.Thread(target=watch, args=(out, stages, peaks))
    process = subprocess.Popen(
        mpirun(hosts, "sh", "-c", command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watcher.start()
    epochs = next((word.split("=")[1] for word in sets if word.startswith("train.epochs=")), None)
    epochs = epochs or tomllib.loads(toml.read_text())["train"]["epochs"]
    last = f" epoch {epochs} of {epochs}: loss"

    def read_log():
        with open(work / f"log-{hosts}.txt", "w", buffering=1) as log:
            for line in process.stderr:
                log.write(line)
                if said := BEFORE.search(line):
                    rank, *values = map(int, said.groups())
                    peaks[rank, 0] = [value * 1_000_000 for value in values]
                    stages.append(max(stages[-1], 1))
                elif last in line:
                    stages.append(2)

    reader = threading.Thread(target=read_log)
    reader.start()
    process.stdout.read()
    process.wait()
    reader.join()
    stages.append(len(STAGES))
    watcher.join()
    if process.returncode:
        sys.exit(f"the run failed: see {work}/log-{hosts}.txt")
    record = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    return peaks, record


def main():
    words = sys.argv[1:]
    sets = words[words.index("--") + 1 :] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    if len(words) < 5:
        sys.exit(__doc__)
    gnarl, parts, toml, work = (Path(word).resolve() for word in words[:4])
    work.mkdir(parents=True, exist_ok=True)
    heads = [f"{kind} {stage}" for stage in STAGES for kind in ("anonymous", "mapped")]
    print(f"| hosts | loss | epoch | rank | {' | '.join(heads)} |")
    print("|---:" * (4 + len(heads)) + "|")
    for hosts in map(int, words[4:]):
        peaks, record = run(gnarl, parts, toml, work, hosts, sets)
        for rank in range(hosts):
            values = [value for stage in range(len(STAGES)) for value in peaks.get((rank, stage), [0, 0])]
            cells = " | ".join(f"{value / 1e6:,.0f} MB" for value in values)
            print(f"| {hosts} | {record['loss']:.6f} | {record['seconds']:.0f} s | {rank} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
