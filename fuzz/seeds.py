#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets to the folder seeds: good files, and files that were faults once.

    python3 fuzz/seeds.py

Files of Parquet need pyarrow, and stay as they are without it. The formats are those that each target documents.
"""

import gzip
import io
import json
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).parent
FIXTURES = HERE / "../crates/graph/tests/fixtures/torch"
EXAMPLES = HERE / "../examples"


def seed(target, name, data):
    folder = HERE / "seeds" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def section(data):
    data = data if isinstance(data, bytes) else data.encode()
    return struct.pack("<H", len(data)) + data


def npy(descr, shape, values=b"", version=1, order="False"):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + values


def i8(*values):
    return struct.pack(f"<{len(values)}q", *values)


def f4(*values):
    return struct.pack(f"<{len(values)}f", *values)


def raw(data):
    """A section with an npy file as it is."""
    return section(b"\0" + data)


def made(kind, width, values):
    """A section with values, whose header the target writes."""
    return section(bytes([kind, width]) + values)


def deep_header(bracket):
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': " + bracket * 40 + b", }\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


LONG_HEADER = b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"{'descr': "


def headers():
    for number, file in enumerate([
        npy("<i8", "(3,)"),
        npy("<f4", "(2, 3)", order="True"),
        npy("|b1", "()"),
        npy(">u2", "(1, 2, 3, 4)", version=2),
        npy("<c16", "(0,)", version=3),
    ]):
        seed("npy_header", f"good-{number}", file)
    seed("npy_header", "nested-lists", deep_header(b"["))
    seed("npy_header", "nested-tuples", deep_header(b"(1,"))
    seed("npy_header", "long-header", LONG_HEADER)
    seed("npy_header", "huge-shape", npy("<i8", "(18446744073709551615, 18446744073709551615)"))


def arrays():
    edges = made(1, 1, i8(0, 1, 2, 1, 2, 0))
    seed("npy", "edges", b"\0\0" + edges)
    seed("npy", "symmetric", b"\x01\0" + edges)
    everything = (
        made(5, 4, f4(*range(6)))
        + made(1, 0, i8(0, 1, -1))
        + made(1, 0, i8(0, 1))
        + made(5, 0, f4(0.5, 1, 2))
        + made(1, 0, i8(7, 8, 9))
        + made(5, 2, f4(1, 2, 3))
        + made(2, 0, struct.pack("<3i", 0, 1, 1))
        + made(1, 0, i8(3, 2, 1))
    )
    seed("npy", "everything", b"\0\xff" + everything + edges)
    for name, node in [("4e8", 400_000_000), ("2-40", 2**40), ("2-62", 2**62), ("last", 2**63 - 2)]:
        seed("npy", f"one-id-{name}", b"\0\0" + raw(npy("<i8", "(2, 2)", i8(0, 1, 1, node))))
    seed("npy", "label-2-31", b"\0\x02" + made(1, 0, i8(0, 2**31 - 1, 1)) + edges)
    seed("npy", "nested-lists", b"\0\0" + raw(deep_header(b"[")))
    seed("npy", "long-header", b"\0\0" + raw(LONG_HEADER))


def archives():
    members = [("indptr", made(1, 0, i8(0, 1, 2, 3))), ("indices", made(2, 0, struct.pack("<3i", 0, 1, 0)))]
    members += [("data", made(5, 0, f4(1, 2, 3))), ("shape", made(1, 0, i8(3, 2)))]
    sections = b"".join(content for _, content in members)
    seed("npz", "stored", b"\x01" + sections)
    seed("npz", "deflated", b"\x02" + sections)
    for name, kind in [("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)]:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", kind) as archive:
            archive.writestr("indptr.npy", npy("<i8", "(4,)", i8(0, 1, 2, 3)))
            archive.writestr("indices.npy", npy("<i4", "(3,)", struct.pack("<3i", 0, 1, 0)))
            archive.writestr("data.npy", npy("<f4", "(3,)", f4(1, 2, 3)))
            archive.writestr("shape.npy", npy("<i8", "(2,)", i8(3, 2)))
            archive.writestr("format.npy", npy("|S3", "()", b"csr"))
        seed("npz", f"whole-{name}", b"\0" + out.getvalue())


def pickles():
    for path in sorted(FIXTURES.glob("*.pt")) + sorted((FIXTURES / "bad").glob("*.pt")):
        seed("pickle", path.stem if path.parent == FIXTURES else f"bad-{path.stem}", b"\0" + path.read_bytes())
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                pickle = next(name for name in archive.namelist() if name.endswith("data.pkl"))
                numbers = [name for name in archive.namelist() if "/data/" in name][:2]
                numbers = [archive.read(name) for name in numbers] + [b"", b""]
                data = b"\x01" + section(numbers[0]) + section(numbers[1]) + archive.read(pickle)
                if path.parent == FIXTURES:
                    seed("pickle", f"{path.stem}-apart", data)
    seed("pickle", "deep", b"\x01\0\0\0\0\x80\x02" + b"]" * 2000 + b"a" * 1999 + b".")


def edit(file, kind, at, data=b"", plain=False):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return struct.pack("<BBH", file, kind, at) + (data if plain else section(data))


def damages():
    for target, choices in [("dataset", 2), ("partition", 4), ("buckets", 2), ("prepared", 1)]:
        first = [bytes([choice]) for choice in range(choices)] if target != "prepared" else [b""]
        for number, choice in enumerate(first):
            seed(target, f"whole-{number}", choice)
            seed(target, f"cut-{number}", choice + edit(3, 1, 60))
            seed(target, f"json-number-{number}", choice + edit(0, 6, 9, 2**63))
            seed(target, f"json-string-{number}", choice + edit(0, 6, 3, "../../etc/passwd"))
            seed(target, f"id-{number}", choice + edit(4, 4, 3, b"\xff\xff\xff\x7f", plain=True))
            seed(target, f"offset-{number}", choice + edit(6, 5, 2, b"\xff" * 8, plain=True))
    seed("dataset", "partitioned", bytes([6 | 8]))
    seed("dataset", "partitioned-by-edges", bytes([7 | 8]))


def tables():
    parquet = None
    try:
        import pyarrow
        import pyarrow.parquet

        out = io.BytesIO()
        table = pyarrow.table({"src": [0, 1, 2], "dst": [1, 2, 0], "weight": [0.5, 1.0, 2.0]})
        pyarrow.parquet.write_table(table, out, compression="none")
        parquet = out.getvalue()
        seed("tables", "parquet", b"\0" + parquet)
        names = pyarrow.table({"src": ["a", "b"], "dst": ["b", "a"], "label": ["x", None]})
        out = io.BytesIO()
        pyarrow.parquet.write_table(names, out, compression="snappy")
        seed("tables", "parquet-names", b"\x01" + out.getvalue())
    except ImportError:
        pass
    seed("tables", "integers", b"\0src,dst,weight,time\n0,1,0.5,3\n1,2,1,4\n")
    seed("tables", "names", b"\x01src,dst,label,split\na,b,x,train\n\"c, d\",a,y,valid\n\"e \"\"f\"\"\",a,,\n")
    seed("tables", "dates", b"\0src\tdst\ttime\n7\t9\t2024-02-29\n9\t7\t2024-02-29T10:00:00Z\n")
    seed("tables", "no-header", b"\x100 1\n1 2\n")
    seed("tables", "gzip", b"\0" + gzip.compress(b"src,dst\n0,1\n1,0\n", mtime=0))
    seed("tables", "byte-order-mark", b"\0\xef\xbb\xbfsrc,dst\n0,1\n")
    seed("tables", "huge-id", b"\x02src,dst\n0,9223372036854775806\n")
    columns = {"node_type": "item", "files": "a.csv", "node_id_col": "id", "split_col": "split"}
    transforms = [None, "standard", "max_min_norm", "to_categorical"]
    features = [{"feature_col": f"f{i}"} | ({"transform": {"name": t}} if t else {}) for i, t in enumerate(transforms)]
    features[0] |= {"impute": "mean", "impute_indicator": True}
    schema = {
        "nodes": [
            columns | {"features": features, "labels": [{"label_col": "y", "task_type": "classification"}]},
            {"node_type": "user"},
        ],
        "edges": [
            {"relation": ["user", "buys", "item"], "files": ["b.csv"], "source_id_col": "u", "dest_id_col": "i",
             "weight_col": "w", "time_col": "t"},
            {"relation": ["item", "likes", "item"], "files": "c.csv", "source_id_col": "a", "dest_id_col": "b",
             "labels": [{"label_col": "y", "task_type": "classification", "split_pct": [0.5, 0.25, 0.25]}]},
        ],
    }
    a = "id,f0,f1,f2,f3,y,split\ni0,1,2,3,red,x,train\ni1,,5,6,green,y,valid\ni2,7,8,10,red,,\n"
    b = "u,i,w,t\nu0,i0,0.5,1\nu1,i2,1,2\n"
    c = "a,b,y\ni0,i1,0\ni2,i0,1\n"
    sections = section(json.dumps(schema)) + section(a) + section(b) + section(c)
    seed("schema", "text", sections)
    one = {"edges": [{"relation": ["n", "e", "n"], "files": "d.parquet", "format": {"name": "parquet"},
                      "source_id_col": "src", "dest_id_col": "dst"}]}
    if parquet:
        seed("schema", "parquet", section(json.dumps(one)) + section(b"") * 3 + section(parquet))
    plain = json.loads(json.dumps(one).replace("d.parquet", "a.csv").replace('"parquet"', '"csv"'))
    seed("schema", "twice", section(json.dumps(plain)) + section("src,dst,src\n0,1,2\n"))


def triples():
    seed("triples", "names", b"\x03" + section("a\tr\tb\nb\ts\tc\n") + section("a\ts\tb\n") + section("c\tr\ta\n"))
    seed("triples", "numbers", b"\x10" + section("0 0 1\n1 1 2\n"))
    named = section("0\t0\t1\n") + section("x\ny\n") + section("r\n")
    seed("triples", "files-of-names", b"\x0c" + named)
    seed("triples", "huge-relation", b"\0" + section("0\t4294967296\t1\n"))
    seed("triples", "array", b"\0" + section(npy("<i8", "(2, 3)", i8(0, 0, 1, 1, 1, 2))))


def run_files():
    for path in sorted(EXAMPLES.rglob("*.toml")):
        text = path.read_text()
        if "[package]" not in text:
            name = "-".join(path.relative_to(EXAMPLES).with_suffix("").parts)
            seed("run_file", name, section("") + text.encode())
    text = b"dataset.path = 'd'\n"
    seed("run_file", "overrides", section("train.lr=0.5\nmodel.name=gcn\nsample.fanouts=[5, -1]\n") + text)
    seed("run_file", "path-through-value", section("dataset.path.x=1\n=\n..=1\n") + text)


def column(name, kind, data):
    return bytes([name, kind]) + section(data)


def flight():
    def exchange(command, *columns, lists=False):
        return bytes([2 if lists else 0]) + section(json.dumps(command)) + bytes([len(columns)]) + b"".join(columns)

    ids = column(0, 5, bytes([0, 3, 4, 9]))
    for part in [0, 1]:
        for what in ["features", "stored", "label", "split", "embedding", "time"]:
            seed("flight", f"gather-{what}-{part}", exchange({"op": "gather", "part": part, "column": what}, ids))
    for rule in ["uniform", "exact", "labor", "weighted", "recent"]:
        sample = {"op": "sample", "part": 0, "fanout": 3, "rule": rule, "key": 7}
        seed("flight", f"sample-{rule}", exchange(sample, ids))
    timed = column(1, 2, i8(9, 9, 9, 9))
    as_of = {"op": "sample", "part": 0, "fanout": 2, "rule": "uniform", "key": 7, "as_of": "recent", "edge_features": True}
    seed("flight", "sample-as-of", exchange(as_of, ids, timed))
    push = {"op": "push", "part": 0, "lr": 0.1, "from": 1, "step": 1}
    seed("flight", "push", exchange(push, ids, column(2, 3, f4(*range(8)))))
    seed("flight", "targets", exchange({"op": "targets", "part": 0, "split": 0}, ids))
    seed("flight", "targets-of-no-split", exchange({"op": "targets", "part": 0, "split": 7}, ids))
    known = {"op": "known", "part": 0, "side": "tail", "train": False}
    seed("flight", "known", exchange(known, ids, column(3, 1, struct.pack("<4I", 0, 0, 0, 0))))
    spec = {"version": "0.1.0", "parts": 0, "fanouts": [3, 2], "fanouts_of": [], "rule": "uniform", "disjoint": False,
            "time": None, "replace": False, "subgraph": "directional", "features": True, "labels": True, "others": True}
    nodes = [column(4, 1, struct.pack("<2I", 0, 1)), column(5, 1, struct.pack("<2I", 3, 4))]
    request = {"key": 7, "around": {"nodes": {"node_type": 0}}}
    seed("flight", "batch", exchange({"op": "batch", "spec": spec, "request": request}, *nodes, lists=True))
    ends = [column(at, 1, struct.pack("<2I", 3, 4)) for at in [4, 7, 8, 9, 10]]
    edges = {"edges": {"source_type": 0, "destination_type": 0, "negatives": {"pairs": 1.0}, "left_out": [0, None]}}
    request = {"key": 7, "around": edges}
    seed("flight", "batch-of-edges", exchange({"op": "batch", "spec": spec, "request": request}, *ends, lists=True))
    for name, ticket in [
        ("column", {"part": 0, "column": "features"}),
        ("split", {"part": 0, "targets": 1}),
        ("file", {"file": "partition.json", "from": 0}),
        ("file-beyond", {"file": "partition.json", "from": 2**64 - 1}),
        ("file-outside", {"file": "../../etc/passwd", "from": 0}),
    ]:
        seed("flight", f"ticket-{name}", b"\x04" + json.dumps(ticket).encode())
    for action in ["describe", "files", "batches"]:
        seed("flight", f"action-{action}", b"\x05" + section(action) + section("") + b"part-0")
    seed("flight", "raw", b"\x03" + section(json.dumps(push)) + section(b"\x10\0\0\0") + section(b""))


def batches():
    block = [
        column(0, 0, struct.pack("<3Q", 40, 7, 9)),
        column(1, 1, struct.pack("<3I", 2, 1, 0)),
        column(2, 0, struct.pack("<Q", 1)),
        column(3, 0, struct.pack("<Q", 3)),
        column(4, 1, struct.pack("<2I", 0, 2)),
        column(5, 1, struct.pack("<2I", 1, 2)),
    ]
    rows = [column(12, 3, f4(*range(6))), column(13, 0, struct.pack("<Q", 2)), column(17, 1, struct.pack("<I", 1))]
    seed("batches", "homogeneous", b"\0" + bytes([len(block + rows)]) + b"".join(block + rows))
    types = [
        column(20, 1, struct.pack("<2I", 0, 1)),
        column(21, 1, struct.pack("<2I", 1, 2)),
        column(22, 4, bytes([0, 1])),
        column(23, 1, struct.pack("<2I", 1, 1)),
    ]
    both = block + types + rows
    seed("batches", "heterogeneous", b"\x01" + bytes([len(both)]) + b"".join(both))


def safetensors(tensors, metadata):
    header = {"__metadata__": metadata} if metadata else {}
    body = b""
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def checkpoints():
    progress = {"epoch": 1, "best_epoch": 1, "best_valid": {"accuracy": 0.5}, "best_loss": 0.25, "best_test": {},
                "since_best": 0, "stopped": False}
    flat = lambda name, count: (name, "F32", [count], f4(*range(count)))
    tensors = [flat("weights", 20), flat("best", 20), flat("optimizer.0.m", 20), flat("outer.velocity", 20)]
    tensors += [flat("table.entity.rows", 6), flat("table.entity.best", 6), flat("table.entity.state", 12)]
    tensors += [("table.entity.steps", "U32", [3], struct.pack("<3I", 1, 2, 3))]
    whole = safetensors(tensors, {"progress": json.dumps(progress)})
    seed("checkpoint", "whole", whole)
    seed("checkpoint", "half", whole[: len(whole) // 2])
    owned = {"progress": json.dumps(progress), "embeddings": json.dumps({"epoch": 1, "ranks": 2**40})}
    seed("checkpoint", "owned-files", safetensors(tensors[:4], owned))
    seed("checkpoint", "weights", safetensors([("w", "F32", [2, 2], f4(1, 2, 3, 4))], {"gnarl": "{}"}))
    seed("checkpoint", "no-number", safetensors([("w", "F32", [2, 2], b"\xff" * 16)], {}))
    seed("checkpoint", "long-header", struct.pack("<Q", 2**63) + b"{")


def requests():
    def request(path, body=b"", method="POST", *headers):
        lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    for path in ["/health", "/metrics", "/", "/nodes"]:
        seed("http", f"get{path.replace('/', '-')}", request(path, method="GET"))
    bodies = {
        "nodes": ("/nodes", {"ids": [0, 5, "7"], "what": ["probabilities"]}),
        "embeddings": ("/nodes", {"ids": [1], "what": ["embedding", "class"]}),
        "unknown": ("/nodes", {"ids": [99], "node_type": "x"}),
        "edges": ("/edges", {"edges": [[0, 1], [0, "r", 1]]}),
    }
    for name, (path, body) in bodies.items():
        seed("http", name, request(path, json.dumps(body).encode()))
    seed("http", "token", request("/health", b"", "GET", "Authorization: Bearer x"))
    chunked = request("/nodes", b"", "POST", "Transfer-Encoding: chunked") + b"b\r\n{\"ids\":[1]}\r\n0\r\n\r\n"
    seed("http", "chunked", chunked)
    seed("http", "two", request("/health", method="GET") * 2)
    seed("http", "long-body", request("/nodes", b"", "POST", "Content-Length: 18446744073709551615"))
    seed("http", "deep-body", request("/nodes", b"[" * 300))
    for name, data in [
        ("page", request("/metrics", method="GET")),
        ("query", request("/metrics?x=1", method="GET")),
        ("other", request("/", method="GET")),
        ("post", request("/metrics", b"x")),
        ("garbage", b"\0\xff\r\n\r\n"),
        ("many-fields", request("/metrics", b"", "GET", *[f"A{i}: b" for i in range(100)])),
    ]:
        seed("metrics", name, data)


for write in [headers, arrays, archives, pickles, damages, tables, triples, run_files, flight, batches, checkpoints, requests]:
    write()
