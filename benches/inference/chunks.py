#!/usr/bin/env python3
"""Chunks that inference reads in each order of nodes (GLISP, section IV-E).

    benches/inference/chunks.py GNARL RUN PARTITION [--share 1.25%] [--rows 128,1024] [--ranks 1,8]

GNARL is the program, RUN the folder of a trained run, and PARTITION a partition of its dataset. Rows between layers are
read by chunks of so many rows, behind a cache of a share of all chunks: 1.25 % is a tenth of what one of eight workers
has. Several ranks have a tenth of their own chunks each. The figure of an order is its ratio to the order of numbers.
"""

import argparse
import json
import os
import subprocess
import tempfile

ORDERS = [("ns", "fifo"), ("ds", "fifo"), ("ps", "fifo"), ("pds", "fifo"), ("pds", "lru")]


def infer(args, out, order, policy, rows, ranks):
    share = args.share if ranks == 1 else "10%"
    command = [args.gnarl, "infer", args.run, "--out", out, "--force", "--partition", args.partition]
    command += ["--order", order, "--cache", f"{policy}:{share}", "--chunk-rows", str(rows)]
    command += ["--ranks", str(ranks)]
    layers = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["layers"]
    return {key: sum(layer[key] for layer in layers) for key in layers[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gnarl")
    parser.add_argument("run")
    parser.add_argument("partition")
    parser.add_argument("--share", default="1.25%")
    parser.add_argument("--rows", default="128,1024")
    parser.add_argument("--ranks", default="1,8")
    args = parser.parse_args()
    print("| rows of a chunk | ranks | order | policy | chunks read | of ns | in the cache | fill of the time |")
    print("|---:|---:|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.parquet")
        for rows in map(int, args.rows.split(",")):
            for ranks in map(int, args.ranks.split(",")):
                first = None
                for order, policy in ORDERS:
                    found = infer(args, out, order, policy, rows, ranks)
                    reads = found["chunk_reads"] + found["chunk_hits"]
                    first = first or reads
                    print(
                        f"| {rows} | {ranks} | {order} | {policy} | {reads} | {reads / first:.2f} "
                        f"| {found['chunk_hits'] / reads:.2f} "
                        f"| {found['fill_seconds'] / found['seconds']:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
