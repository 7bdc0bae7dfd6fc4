#!/usr/bin/env python3
"""Memory of each rank of a run on hosts that have only their own parts: does it fall as 1 / hosts?

    benches/cluster/memory.py GNARL PARTS RUN.toml WORK_FOLDER HOSTS… [-- SET…]

PARTS is a partitioned dataset, of edges that are sampled exactly or by shares. For each number of HOSTS, that many processes of
this machine train RUN.toml, each with the name of another host and a folder with its share of the parts alone. Every tenth of a
second the memory of each process is read; the table has the largest values before the first step and from then on. Needs Open
MPI and a build with the feature `mpi`.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from launch import mpirun, own_parts


def memory_of(process):
    """Anonymous and mapped memory of a process in bytes, and its rank."""
    status = (process / "status").read_text()
    value = lambda key: int(status.split(f"{key}:")[1].split()[0]) * 1024
    environment = (process / "environ").read_bytes().split(b"\0")
    rank = next(int(word.split(b"=")[1]) for word in environment if word.startswith(b"OMPI_COMM_WORLD_RANK="))
    return rank, value("RssAnon"), value("RssFile")


def watch(program, begun, ended, peaks):
    """The largest memory of each rank of `program`, at first and once `begun` says so, until `ended` does."""
    while not ended.is_set():
        stage = int(begun.is_set())
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(process / "exe") == program:
                    rank, *now = memory_of(process)
                    of = peaks.setdefault((rank, stage), [0, 0])
                    of[:] = map(max, of, now)
            except (OSError, StopIteration, IndexError):
                continue
        time.sleep(0.1)


def run(gnarl, parts, toml, work, hosts, sets):
    for host in range(hosts):
        own_parts(parts, work / f"parts-{host}-of-{hosts}", host, hosts)
    out = work / f"run-{hosts}"
    shutil.rmtree(out, ignore_errors=True)
    path = f"{work}/parts-$OMPI_COMM_WORLD_RANK-of-{hosts}"
    words = ["--set train.engine=mpi", f"--set partition.path={path}", "--set partition.servers=ranks"]
    words += [f"--set output.dir={out}", "-v", *(f"--set {word}" for word in sets)]
    command = f"GNARL_HOST=host-$OMPI_COMM_WORLD_RANK exec {gnarl} train {toml} {' '.join(words)}"
    begun, ended, peaks = threading.Event(), threading.Event(), {}
    watcher = threading.Thread(target=watch, args=(str(gnarl), begun, ended, peaks))
    process = subprocess.Popen(
        mpirun(hosts, "sh", "-c", command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watcher.start()

    def read_log():
        with open(work / f"log-{hosts}.txt", "w", buffering=1) as log:
            for line in process.stderr:
                log.write(line)
                if " on host-0, " in line:
                    begun.set()

    reader = threading.Thread(target=read_log)
    reader.start()
    result = process.stdout.read()
    process.wait()
    ended.set()
    watcher.join()
    reader.join()
    if process.returncode:
        sys.exit(f"the run failed: see {work}/log-{hosts}.txt")
    summary = json.loads([line for line in result.splitlines() if line.startswith("{")][-1])
    record = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    return peaks, record, summary


def main():
    words = sys.argv[1:]
    sets = words[words.index("--") + 1 :] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    if len(words) < 5:
        sys.exit(__doc__)
    gnarl, parts, toml, work = (Path(word).resolve() for word in words[:4])
    work.mkdir(parents=True, exist_ok=True)
    print("| hosts | loss | epoch | rank | anonymous at start | mapped at start | anonymous | mapped |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for hosts in map(int, words[4:]):
        peaks, record, _ = run(gnarl, parts, toml, work, hosts, sets)
        for rank in range(hosts):
            values = [value for stage in (0, 1) for value in peaks.get((rank, stage), [0, 0])]
            cells = " | ".join(f"{value / 1e6:,.0f} MB" for value in values)
            print(f"| {hosts} | {record['loss']:.6f} | {record['seconds']:.0f} s | {rank} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
