"""Cuts a dataset by PyPI's pymetis. Arguments: dataset, parts, imbalance, seed, output.

Writes the part of every node to the output, u16; prints seconds and peak memory as JSON. The graph
given to METIS is the undirected simple one, in METIS's own arrays.
"""

import json
import os
import resource
import sys
import time

import numpy as np
import pymetis


def keys(folder):
    """Both directions of every edge but self loops, once, as source * nodes + destination."""
    with open(os.path.join(folder, "dataset.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    offsets, nodes = {}, 0
    for node_type in manifest["node_types"]:
        offsets[node_type["name"]] = nodes
        nodes += node_type["count"]
    lists = []
    for edge_type in manifest["edge_types"]:
        src_type, _, dst_type = edge_type["type"].split(":")
        files = {column["name"]: column["file"] for column in edge_type["columns"]}
        ends = [np.load(os.path.join(folder, files[name])).astype(np.int64) for name in ("src", "dst")]
        src, dst = ends[0] + offsets[src_type], ends[1] + offsets[dst_type]
        proper = src != dst
        src, dst = src[proper], dst[proper]
        lists += [src * nodes + dst, dst * nodes + src]
    return nodes, np.unique(np.concatenate(lists))


def peak():
    """Peak resident bytes since the last reset, or of the whole process."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak():
    """Forgets what building the arrays took: only METIS's own peak is to count."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def main():
    folder, parts, imbalance, seed, output = sys.argv[1:]
    start = time.perf_counter()
    nodes, edges = keys(folder)
    index = pymetis.zero_copy_dtype()
    degrees = np.bincount(edges // nodes, minlength=nodes)
    xadj = np.concatenate([[0], np.cumsum(degrees)]).astype(index)
    adjncy = (edges % nodes).astype(index)
    del edges, degrees
    read = time.perf_counter() - start
    reset_peak()
    options = pymetis.Options(seed=int(seed), ufactor=max(1, round(1000 * float(imbalance))))
    start = time.perf_counter()
    graph = pymetis.CSRAdjacency(xadj, adjncy)
    _, part = pymetis.part_graph(int(parts), graph, recursive=False, options=options)
    seconds = time.perf_counter() - start
    result = {"seconds": seconds, "read_seconds": read, "peak_rss_bytes": peak()}
    np.asarray(part, dtype="<u2").tofile(output)
    print(json.dumps(result))


main()
