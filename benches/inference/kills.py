#!/usr/bin/env python3
"""An inference that is killed over and over writes the file of one that is not.

    benches/inference/kills.py GNARL RUN [--kills 10] [--longest 4] [ARGUMENT ...]

GNARL is the program and RUN the folder of a trained run; further arguments are those of `gnarl infer`. Exits with 1 if the
files differ, or a killed process left a file.
"""

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gnarl")
    parser.add_argument("run")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--longest", type=float, default=4.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    args, more = parser.parse_known_args()
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed, layers = (os.path.join(folder, name) for name in ("whole.parquet", "killed.parquet", "layers"))
        infer = [args.gnarl, "infer", args.run, *more]
        start = time.time()
        subprocess.run([*infer, "--out", whole], check=True, stdout=subprocess.DEVNULL)
        alone = time.time() - start
        start, kills = time.time(), 0
        command = [*infer, "--out", killed, "--layers", layers]
        while kills < args.kills:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                if process.wait(timeout=draw.uniform(0.3, args.longest)) != 0:
                    sys.exit(f"the inference failed: {' '.join(command)}")
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
            if os.path.exists(killed):
                sys.exit("a killed inference left a file")
        if not os.path.exists(killed):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took = time.time() - start
        if digest(whole) != digest(killed) or os.path.exists(layers):
            sys.exit("the files differ, or rows of layers are left")
        print(f"{kills} kills: the same file; {took:.1f} s in all, {alone:.1f} s without interruption")


if __name__ == "__main__":
    main()
