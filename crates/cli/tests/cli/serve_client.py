"""A client of `gnarl serve` that knows Arrow Flight only. Fails if an answer is not the dataset's."""

import json
import sys

import pyarrow as pa
from pyarrow import flight

uri, token, graph, parts = sys.argv[1:]


def column(folder, name):
    """A column of the only node type, by its name in dataset.json."""
    about = json.load(open(f"{folder}/dataset.json"))
    spec = next(c for c in about["node_types"][0]["columns"] if c["name"] == name)
    return read(f"{folder}/{spec['file']}")


def read(path):
    """A .npy file as rows."""
    import ast
    import struct

    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + length].decode())
    kind = {"<f4": "f", "<i4": "i", "<u4": "I", "<u8": "Q", "|u1": "B"}[header["descr"]]
    flat = memoryview(data[10 + length :]).cast(kind).tolist()
    width = 1 if len(header["shape"]) == 1 else header["shape"][1]
    return flat if width == 1 else [flat[i : i + width] for i in range(0, len(flat), width)]


client = flight.FlightClient(uri)
options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + token.encode())])


def exchange(command, nodes):
    """The table that answers `command` about `nodes`."""
    descriptor = flight.FlightDescriptor.for_command(json.dumps(command))
    writer, reader = client.do_exchange(descriptor, options)
    batch = pa.record_batch([pa.array(nodes, pa.uint64())], names=["node"])
    with writer:
        writer.begin(batch.schema)
        writer.write_batch(batch)
        writer.done_writing()
        return reader.read_all()


def refused(call, words):
    """Calls, and expects an error with these words."""
    try:
        call()
    except Exception as e:
        assert words in str(e), e
        return
    raise AssertionError(f"not refused: {words}")


features, labels = column(graph, "features"), column(graph, "label")
train = set(column(graph, "split.train"))
owner = read(f"{parts}/map-0.assignment.npy")
own = [[v for v, p in enumerate(owner) if p == part] for part in range(2)]

# What is there.
paths = sorted(tuple(p.decode() for p in f.descriptor.path) for f in client.list_flights(options=options))
assert paths == [(f"part-{p}", c) for p in range(2) for c in ("features", "label", "split")], paths
about = json.loads(next(client.do_action("describe", options)).body.to_pybytes())
assert [a["nodes"] for a in about] == [len(o) for o in own]

# Whole columns, by the ticket of their flight.
info = client.get_flight_info(flight.FlightDescriptor.for_path("part-1", "features"), options)
table = client.do_get(info.endpoints[0].ticket, options).read_all()
assert info.total_records == table.num_rows == len(own[1])
assert table["features"].to_pylist() == [features[v] for v in own[1]]

# Rows of some nodes, in the order asked.
some = own[0][::-7]
rows = exchange({"op": "gather", "part": 0, "column": "features"}, some)
assert rows["features"].to_pylist() == [features[v] for v in some]
rows = exchange({"op": "gather", "part": 0, "column": "label"}, some)
assert rows["label"].to_pylist() == [labels[v] for v in some]
rows = exchange({"op": "gather", "part": 0, "column": "split"}, some)
assert [v == 1 for v in rows["split"].to_pylist()] == [v in train for v in some]

# All neighbors, then some of them, the same each time.
for part in range(2):
    command = {"op": "sample", "part": part, "rule": "exact", "key": 7}
    lists = exchange(command, own[part]).to_pylist()
    drawn = exchange({**command, "fanout": 2}, own[part]).to_pylist()
    assert drawn == exchange({**command, "fanout": 2}, own[part]).to_pylist()
    for all_of, two in zip(lists, drawn):
        assert len(two["neighbors"]) == min(2, len(all_of["neighbors"]))
        assert set(two["neighbors"]) <= set(all_of["neighbors"])
        assert len(all_of["neighbors"]) <= all_of["degree"] == two["degree"]

refused(lambda: exchange({"op": "gather", "part": 0, "column": "features"}, own[1][:1]), "not one of part 0's own")
refused(lambda: exchange({"op": "gather", "part": 5, "column": "features"}, []), "does not have part 5")
refused(lambda: exchange({"op": "dance"}, []), "not a valid command")
options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer wrong")])
refused(lambda: list(client.list_flights(options=options)), "token")
