"""Columns of a dataset directory of gnarl's with one node type and one edge type, as peers take them."""

import json
from pathlib import Path


def column(dataset, kind, name):
    """One column, of `node_types` or `edge_types`, mapped from its file."""
    import numpy as np

    folder = Path(dataset)
    described = json.loads((folder / "dataset.json").read_text())[kind][0]
    files = {each["name"]: each["file"] for each in described["columns"]}
    return np.load(folder / files[name], mmap_mode="r")


def lists(dataset):
    """Where each node's list of in-neighbors begins, and the lists, in the 64 bits that peers take by default."""
    import numpy as np

    return [column(dataset, "edge_types", f"csc.{name}").astype(np.int64) for name in ("indptr", "indices")]


def classes(dataset):
    return json.loads((Path(dataset) / "dataset.json").read_text())["node_types"][0]["classes"]
