"""The rows of each layer, from those of the layer before."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch

from gnarl import _gnarl
from gnarl._dataset import Dataset, edge_name
from gnarl._errors import UsageError
from gnarl.pyg import _arguments as arguments
from gnarl.pyg._batches import to_data


def file_of(node_type: str) -> str:
    """The name of the file of a type's rows."""
    return f"{quote(node_type, safe=' ')}.npy"


class Inference:
    """Layers over all nodes of a dataset, a batch at a time."""

    def __init__(
        self,
        dataset: Dataset,
        inputs: Mapping[str, Any],
        settings: tuple[int, int | None, torch.device, torch.dtype],
    ) -> None:
        self.dataset = dataset
        self._batch_size, self._threads, self.device, self._dtype = settings
        self._inputs = inputs
        if not any(self._has_input(of) for of in dataset.node_types):
            hint = "inputs=… are rows to compute from"
            raise UsageError(f"{dataset.path}: nodes have no features to compute from", hint)

    def write(self, layers: Sequence[Any], wanted: Sequence[str], place: Path) -> None:
        """Computes the rows of some types and moves them to ``place``."""
        needed = self._needed(len(layers), wanted)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as name:
            folder = Path(name)
            rows: dict[str, Any] | None = None
            for number, layer in enumerate(layers):
                before = folder / f"layer-{number - 1}"
                own = folder / f"layer-{number}"
                own.mkdir()
                found = {of: self._layer(layer, of, rows, own / file_of(of)) for of in needed[number]}
                rows = {of: values for of, values in found.items() if values is not None}
                if before.exists():
                    shutil.rmtree(before)
            lost = [of for of in wanted if of not in (rows or {})]
            if lost and len(lost) == len(wanted):
                raise UsageError(f"the last layer gives no rows of {', '.join(lost)}", "no edges end in these nodes")
            del rows
            if self.dataset.is_heterogeneous:
                if place.exists():
                    os.replace(place, folder / "before")
                os.replace(own, place)
            else:
                os.replace(own / file_of(wanted[0]), place)

    def _needed(self, layers: int, wanted: Sequence[str]) -> list[list[str]]:
        """The types that each layer is to compute: later ones read them."""
        needed = [list(wanted)]
        while len(needed) < layers:
            reached = {src for src, _, dst in self.dataset.edge_types if dst in needed[0]} | set(needed[0])
            needed.insert(0, [of for of in self.dataset.node_types if of in reached])
        return needed

    def _has_input(self, of: str) -> bool:
        return of in self._inputs or self.dataset.num_features(of) > 0

    def batches(self, of: str, features: bool) -> Any:
        """Batches around all nodes of a type in their order, with all neighbors."""
        loader = _gnarl.Loader.of_nodes(
            self.dataset._graph,
            of,
            np.arange(self.dataset.num_nodes(of)),
            **arguments.options(
                self.dataset,
                [-1],
                batch_size=self._batch_size,
                threads=self._threads,
                features=features,
                labels=False,
            ),
        )
        for batch in loader.epoch(0):
            data = to_data(self.dataset, batch)
            data.batch_size = len(batch[1])
            if self.dataset.is_heterogeneous:
                data.seed_type = of
            yield data

    def _layer(self, layer: Any, of: str, rows: dict[str, Any] | None, written: Path) -> Any:
        """The rows of a layer for all nodes of a type, from those of the layer before, or inputs; None where it gives none."""
        facts = [self.dataset._graph.edge_facts(edge_name(triple)) for triple in self.dataset.edge_types]
        # Features of edges are read with those of nodes, and every layer may need them.
        features = rows is None or any(fact["features"] is not None for fact in facts)
        count = self.dataset.num_nodes(of)
        found: Any = None
        first = 0
        for data in self.batches(of, features):
            read = self._read(data, rows).items()
            inputs: Any = {name: self._moved(values) for name, values in read}
            if not self.dataset.is_heterogeneous:
                inputs = inputs[of]
            output = layer(inputs, self._moved_edges(data.to(self.device)))
            if isinstance(output, Mapping):
                output = output.get(of)
            if output is None:
                if not self.dataset.is_heterogeneous:
                    raise UsageError("a layer gave None", "it returns the rows of the first batch_size nodes")
                if found is not None:
                    raise UsageError(f"a layer gave rows of {of} for some batches only")
                continue
            output = self._checked(output, of, data.batch_size)
            if found is None:
                if first > 0:
                    raise UsageError(f"a layer gave rows of {of} for some batches only")
                found = np.lib.format.open_memmap(
                    written, mode="w+", dtype=np.float32, shape=(count, *output.shape[1:])
                )
            if output.shape[1:] != found.shape[1:]:
                told = f"a layer gave rows of the shape {tuple(output.shape[1:])} after {found.shape[1:]}"
                raise UsageError(told, "all nodes of a type have rows of one width")
            found[first : first + len(output)] = output.numpy()
            first += len(output)
        if found is not None:
            found.flush()
        elif not self.dataset.is_heterogeneous and count == 0:
            raise UsageError(f"{self.dataset.path}: there are no nodes")
        return found

    def _read(self, data: Any, rows: dict[str, Any] | None) -> dict[str, Any]:
        """The rows of a batch's nodes, by type."""
        stores = {of: data[of] if self.dataset.is_heterogeneous else data for of in self.dataset.node_types}
        read = {}
        for of, store in stores.items():
            if rows is not None:
                if of in rows:
                    read[of] = torch.from_numpy(rows[of].take(store.n_id.numpy(), axis=0))
            elif of in self._inputs:
                read[of] = torch.as_tensor(self._inputs[of](store.n_id)).detach()
            elif "x" in store:
                read[of] = store.x
        return read

    def _moved(self, values: Any) -> Any:
        """Values where the module is, in its type of numbers."""
        return values.to(self.device, self._dtype) if values.is_floating_point() else values.to(self.device)

    def _moved_edges(self, data: Any) -> Any:
        for store in data.edge_stores:
            for name in ("edge_attr", "edge_weight"):
                if name in store:
                    store[name] = self._moved(store[name])
        return data

    def _checked(self, output: Any, of: str, count: int) -> Any:
        """The rows of a batch's nodes, of which heterogeneous layers may give more: those of all nodes of the type."""
        if not isinstance(output, torch.Tensor):
            raise UsageError(
                f"a layer gave a {type(output).__name__}", "expected a tensor, or a dict of tensors by type"
            )
        given = output.shape[0]
        if given != count and not (self.dataset.is_heterogeneous and given > count):
            told = f"a layer gave {given} rows for the {count} nodes of a batch"
            raise UsageError(told, "it returns the rows of the first batch_size nodes")
        return output[:count].to("cpu", torch.float32)
