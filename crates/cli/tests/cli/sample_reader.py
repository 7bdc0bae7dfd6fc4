"""Reads prepared batches with pyarrow, and prints their counts: files, batches, examples, and rows of features."""

import json
import sys
from pathlib import Path

import pyarrow as pa

counts = {"files": 0, "batches": 0, "examples": 0, "rows": 0}
for path in sorted(Path(sys.argv[1]).glob("epoch-*/rank-*.arrow")):
    counts["files"] += 1
    with pa.ipc.open_file(path) as file:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            column = lambda name: batch.column(name)[0].values.to_numpy()
            sources = column("blocks.0.sources")[0]
            assert len(column("features")) == sources * column("features.width")[0]
            for layer in range(column("blocks")[0]):
                indptr, indices = column(f"blocks.{layer}.indptr"), column(f"blocks.{layer}.indices")
                assert indptr[-1] == len(indices) and indices.max(initial=0) < column(f"blocks.{layer}.sources")[0]
            assert len(column("targets.row")) == len(column("targets.class"))
            counts["batches"] += 1
            counts["examples"] += len(column("targets.class"))
            counts["rows"] += int(sources)
print(json.dumps(counts))
