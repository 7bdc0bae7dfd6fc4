"""Trained models as folders of their own: weights, the facts that rebuild the model, and a model card."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnarl._dataset import Dataset, edge_name
from gnarl._errors import DataError, Error, UsageError
from gnarl._model_card import model_card
from gnarl._run import Run
from gnarl._safetensors import read_metadata, read_tensors

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
CARD = "README.md"
_OF_NODES = ("node-classification", "node-regression")

Tensors = Mapping[str, NDArray[np.float32]]


def load(source: Any) -> tuple[dict[str, Any], Tensors]:
    """The facts about a trained model and its tensors: of a run, of its folder, or of a folder of a saved model.

    Raises:
        DataError: If there is no trained model, or its files are damaged.
        UsageError: If a heterogeneous model needs its dataset, which is not there.
    """
    place = Path(getattr(source, "path", source))
    if (place / CONFIG).exists() and not (place / "config.toml").exists():
        config = _read_config(place)
        if config is None:
            raise DataError(f"{place / CONFIG}: not the config.json of a model that gnarl saved")
        return config, read_tensors(_weights_of(place))
    run = source if isinstance(source, Run) else Run(place)
    tensors = read_tensors(_weights_of(Path(run.path)))
    return describe(run, tensors), tensors


def save_pretrained(run: Run, folder: str | os.PathLike[str], force: bool) -> Path:
    """Writes the folder of a saved model, which appears when it is complete.

    Raises:
        DataError: If the run has no weights yet.
        UsageError: If the folder is there and ``force`` is not given, or it holds something else.
    """
    place = Path(os.path.abspath(folder))
    weights = _weights_of(Path(run.path))
    if place.exists():
        _check_replaceable(place, force)
    config = describe(run, read_tensors(weights))
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        # That of mkdtemp is for the owner alone.
        made.chmod(0o777 & ~_umask())
        shutil.copyfile(weights, made / WEIGHTS)
        (made / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        (made / CARD).write_text(model_card(place.name, config, run.summary), encoding="utf-8")
        _give_name(made, place)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return place


def describe(run: Run, tensors: Tensors) -> dict[str, Any]:
    """The facts about a run's model, which are the content of ``config.json``.

    Raises:
        UsageError: If a heterogeneous model needs its dataset, which is not there.
    """
    settings = tomllib.loads((Path(run.path) / "config.toml").read_text(encoding="utf-8"))
    metadata = read_metadata(Path(run.path) / WEIGHTS)
    widths = ("in_dim", "out_dim", "edge_dim")
    model = {key: value for key, value in settings["model"].items() if key not in widths}
    model |= _widths(settings["model"], tensors)
    sample = settings["sample"]
    config: dict[str, Any] = {
        "model_type": "gnarl",
        "gnarl_version": metadata.get("version"),
        "task": settings["task"]["kind"],
        "model": model,
        "normalize": settings["dataset"]["normalize"],
        "sample": {key: sample[key] for key in ("method", "fanouts", "time") if key in sample},
    }
    if config["task"] not in _OF_NODES:
        config["decoder"] = {**settings["decoder"], "dim": settings["embedding"]["dim"]}
    try:
        dataset = Dataset(settings["dataset"]["path"])
    except Error as error:
        if is_heterogeneous(tensors) and config["task"] in _OF_NODES:
            told = (
                f"dataset.path = {settings['dataset']['path']!r}: the order of node and edge types is read from there"
            )
            raise UsageError(
                f"{told}: {error.message}", "a model that was saved with save_pretrained needs no dataset"
            ) from error
        config["dataset"] = {"fingerprint": metadata.get("dataset")}
    else:
        config["dataset"] = {
            "name": dataset.name,
            "nodes": dataset.num_nodes(),
            "edges": dataset.num_edges(),
            "fingerprint": metadata.get("dataset"),
        }
        if is_heterogeneous(tensors) and config["task"] in _OF_NODES:
            if metadata.get("dataset") not in (None, dataset._graph.fingerprint):
                told = f"{dataset.path} is not the dataset that the model was trained on"
                raise UsageError(told, "types of nodes and edges are numbered by it: bring it back")
            config |= _types(dataset, settings)
    config["scores"] = {"epoch": metadata.get("epoch"), **_scores(run)}
    return config


def is_heterogeneous(tensors: Tensors) -> bool:
    """True if the tensors are those of a heterogeneous model, which has an input of each node type."""
    return any(name.startswith(("input.", "embedding.")) for name in tensors)


def _scores(run: Run) -> dict[str, Any]:
    return {split: run.summary[split] for split in ("valid", "test") if run.summary.get(split)}


def _types(dataset: Dataset, settings: dict[str, Any]) -> dict[str, Any]:
    """Facts about the types of a heterogeneous graph, in the order of its dataset."""
    nodes = [
        {"name": of, "count": dataset.num_nodes(of), "features": dataset.num_features(of)} for of in dataset.node_types
    ]
    names = [edge_name(of) for of in dataset.edge_types]
    labeled = [of for of in dataset.node_types if dataset.num_classes(of)]
    found: dict[str, Any] = {
        "node_type": settings["task"].get("node_type", labeled[0] if labeled else None),
        "node_types": nodes,
        "edge_types": names,
    }
    passing = _edge_types_of_steps(settings, names)
    return found if passing is None else {**found, "edge_types_of_steps": passing}


def _edge_types_of_steps(settings: dict[str, Any], names: list[str]) -> list[list[str]] | None:
    """The edge types that bring messages in each layer or propagation, where these are not all."""
    sample = settings["sample"]
    model = settings["model"]
    steps = model["layers"]
    if model["decoupled"]:
        steps = model.get("propagations") or steps
    path = sample.get("meta_path") or []
    # Hops are counted from the seeds, which the last layer computes.
    if path:
        return [[path[steps - 1 - step]] for step in range(steps)]
    by_type = sample.get("edge_fanouts") or {}
    found = [[name for name in names if by_type.get(name, [1] * steps)[steps - 1 - step] != 0] for step in range(steps)]
    return None if all(len(of) == len(names) for of in found) else found


def _widths(model: dict[str, Any], tensors: Tensors) -> dict[str, int]:
    """Widths of input and output, which run files leave to the dataset."""
    last = f"layer{model['layers'] - 1}."
    biases = [last + "logits.bias", last + "mlp1.bias", last + "bias", "bias"]
    biases += [name for name in tensors if name.startswith(last) and name.endswith((".layer0.bias", ".mlp1.bias"))]
    inputs = ["layer0." + part for part in ("neigh.weight", "weight", "source", "mlp0.weight")] + ["weight"]
    outputs = [tensors[name].shape[1] for name in biases if name in tensors]
    widths = {"out_dim": outputs[0]} if outputs else {}
    if is_heterogeneous(tensors):
        return widths
    found = [tensors[name].shape[0] for name in inputs if name in tensors]
    if found:
        widths["in_dim"] = found[0]
    if "layer0.edge" in tensors:
        widths["edge_dim"] = tensors["layer0.edge"].shape[0]
    return widths


def _weights_of(folder: Path) -> Path:
    weights = folder / WEIGHTS
    if not weights.exists():
        raise DataError(f"{folder}: no {WEIGHTS} here", "a run writes it with its first checkpoint")
    return weights


def _read_config(folder: Path) -> dict[str, Any] | None:
    """The content of ``config.json``, or None if gnarl did not write it."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return config if isinstance(config, dict) and config.get("model_type") == "gnarl" else None


def _check_replaceable(place: Path, force: bool) -> None:
    if not force:
        raise UsageError(f"{place} is there already", "force=True replaces it")
    # A mistyped path must not cost a folder of something else.
    if not place.is_dir() or (any(place.iterdir()) and _read_config(place) is None):
        raise UsageError(f"{place} is not a folder of a saved model", "force=True replaces such folders only")


def _give_name(made: Path, place: Path) -> None:
    if not place.exists():
        made.rename(place)
        return
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
        old = Path(folder) / "old"
        place.rename(old)
        try:
            made.rename(place)
        except BaseException:
            old.rename(place)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
