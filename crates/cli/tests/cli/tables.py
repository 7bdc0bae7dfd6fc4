"""Reads the tables of a folder with polars, DuckDB and zarr-python. Fails if one differs from the CSV."""

import csv
import os
import sys

import duckdb
import polars as pl

folder = sys.argv[1]
rows = list(csv.DictReader(open(f"{folder}/out.csv", encoding="utf-8")))
ids = [row["id"] for row in rows]
assert sorted(ids) == sorted(f"näd-{v}" for v in range(60)), ids


def lists(name):
    """A column of lists: in CSV, a column per element. Both have the shortest text of a 32-bit number."""
    width = sum(key.startswith(f"{name}_") for key in rows[0])
    return [[float(row[f"{name}_{i}"]) for i in range(width)] for row in rows]


def near(a, b):
    return all(abs(x - y) <= 1e-6 * max(1, abs(y)) for x, y in zip(a, b, strict=True))


names = ["embedding", "logits", "probabilities"]

table = pl.read_parquet(f"{folder}/out.parquet")
assert table["id"].dtype == pl.String and table["id"].to_list() == ids
assert table["class"].to_list() == [row["class"] for row in rows]
for name in names:
    assert table[name].dtype == pl.List(pl.Float32), table.schema
    assert all(map(near, table[name].to_list(), lists(name))), name
own = pl.DataFrame({"id": ids[::-1] + ["nobody"], "number": range(61)})
joined = own.join(table, on="id", how="left")
assert joined["class"].to_list() == [row["class"] for row in rows][::-1] + [None]

found = duckdb.sql(f"SELECT id, class, embedding FROM '{folder}/out.parquet'").fetchall()
assert [row[0] for row in found] == ids
assert all(map(near, (row[2] for row in found), lists("embedding")))
joined = duckdb.sql(
    f"SELECT o.number, p.class FROM own o JOIN '{folder}/out.parquet' p ON p.id = o.id ORDER BY o.number"
).fetchall()
assert [row[1] for row in joined] == [row["class"] for row in rows][::-1]

if os.path.exists(f"{folder}/out.zarr"):
    import zarr

    group = zarr.open_group(f"{folder}/out.zarr", mode="r")
    assert group.attrs["rows"] == 60 and group.attrs["columns"][0] == "id", dict(group.attrs)
    assert group["id"][:].tolist() == ids
    assert group["class"][:].tolist() == [row["class"] for row in rows]
    assert group["probability"].dtype == "float32"
    for name in names:
        assert group[name].dtype == "float32" and group[name].shape[0] == 60
        assert all(map(near, group[name][:].tolist(), lists(name))), name
