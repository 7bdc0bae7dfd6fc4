"""Arguments that loaders share with those of PyTorch Geometric."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.sampler.base import NumNeighbors

from gnarl._dataset import Dataset, EdgeType, edge_name
from gnarl._errors import UsageError

#: Arguments of ``torch.utils.data.DataLoader`` that concern processes, of which there are none here.
_OF_PROCESSES = {
    "num_workers",
    "persistent_workers",
    "prefetch_factor",
    "worker_init_fn",
    "multiprocessing_context",
    "timeout",
    "in_order",
    "pin_memory_device",
}
#: Names of the rules of temporal sampling, here and there.
_RULES_IN_TIME = {"uniform": "uniform", "last": "recent"}


def refuse(**asked: Any) -> None:
    """Refuses arguments that are not supported, unless they ask for nothing."""
    for name, value in asked.items():
        if value is not None and value is not False:
            raise UsageError(f"{name} is not supported yet", "leave it out")


def subgraph(dataset: Dataset, subgraph_type: Any, directed: bool = True) -> str:
    """The kind of subgraph, by its name or PyTorch Geometric's ``SubgraphType``."""
    if not directed:
        # PyTorch Geometric's older name.
        return "induced"
    asked = str(getattr(subgraph_type, "value", subgraph_type))
    if asked == "bidirectional" and dataset.is_heterogeneous:
        lonely = [edge_name(of) for of in dataset.edge_types if not _has_reverse(of, dataset.edge_types)]
        if lonely:
            warnings.warn(f"edges of {', '.join(lonely)} get no reverses: no type has them", stacklevel=3)
    return asked


def _has_reverse(edge_type: EdgeType, known: Sequence[EdgeType]) -> bool:
    source, relation, destination = edge_type
    if relation.startswith("rev_"):
        return (destination, relation.removeprefix("rev_"), source) in known
    return (
        (destination, f"rev_{relation}", source) in known
        or source == destination
        or sum((of[0], of[2]) == (destination, source) for of in known) == 1
    )


def warn_of(kwargs: Mapping[str, Any]) -> None:
    """Warns of arguments that do nothing here, and refuses unknown ones."""
    unknown = sorted(set(kwargs) - _OF_PROCESSES)
    if unknown:
        hint = "of DataLoader's arguments there are batch_size, shuffle, drop_last, pin_memory and generator"
        raise TypeError(f"unexpected argument {unknown[0]!r}: {hint}")
    given = [name for name in sorted(kwargs) if kwargs[name]]
    if given:
        told = f"{', '.join(given)} {'is' if len(given) == 1 else 'are'} ignored"
        warnings.warn(f"{told}: threads of this process prepare batches (threads=…)", stacklevel=3)


def rule_of(sampler: str, weight_attr: str | None) -> str:
    """The rule by which neighbors are drawn."""
    if weight_attr is None:
        return sampler
    if sampler not in ("uniform", "weighted"):
        raise UsageError("weight_attr and sampler exclude each other")
    if weight_attr not in ("edge_weight", "weight"):
        raise UsageError(f"unknown weight_attr {weight_attr!r}", "weights of edges are 'edge_weight'")
    return "weighted"


def rule_in_time(time_attr: str | None, strategy: str) -> str | None:
    """The rule of temporal sampling, if it is asked for."""
    if strategy not in _RULES_IN_TIME:
        raise UsageError(f"unknown temporal_strategy {strategy!r}", "there are 'uniform' and 'last'")
    if time_attr is None:
        return None
    if time_attr != "time":
        raise UsageError(f"unknown time_attr {time_attr!r}", "times of nodes and edges are 'time'")
    return _RULES_IN_TIME[strategy]


def seed_of(seed: int | None, generator: torch.Generator | None, world_size: int) -> int:
    """The seed of order and neighbors."""
    if seed is not None:
        return seed % 2**64
    if generator is not None:
        return int(generator.initial_seed()) % 2**64
    # Processes that share an epoch must agree on it.
    return 0 if world_size > 1 else int(torch.initial_seed()) % 2**64


def threads_of(threads: int | None) -> int:
    """The number of threads that prepare batches."""
    if threads is not None:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fan_outs(dataset: Dataset, given: Any) -> tuple[list[int], list[tuple[str, list[int]]]]:
    """The fan-outs of all edge types, and of some by name."""
    default = None
    if isinstance(given, NumNeighbors):
        given, default = given.values, given.default
    if not isinstance(given, Mapping):
        return [int(count) for count in given], []
    # PyTorch Geometric writes source__relation__destination.
    by_type = {
        edge_name(of.replace("__", ":") if isinstance(of, str) else of): [int(count) for count in counts]
        for of, counts in given.items()
    }
    missing = [edge_name(of) for of in dataset.edge_types if edge_name(of) not in by_type]
    if missing and default is None:
        raise UsageError(f"num_neighbors has none for edge type {missing[0]}", "0 takes none")
    if default is not None:
        return [int(count) for count in default], list(by_type.items())
    hops = max((len(counts) for counts in by_type.values()), default=0)
    return [0] * hops, list(by_type.items())


def positive(**given: int) -> None:
    """Refuses numbers below 1."""
    for name, value in given.items():
        if value < 1:
            raise UsageError(f"invalid {name} {value}", "expected a positive number")


def options(
    dataset: Dataset,
    num_neighbors: Any,
    *,
    batch_size: int,
    threads: int | None,
    rule: str = "uniform",
    disjoint: bool = False,
    time: str | None = None,
    replace: bool = False,
    subgraph: str = "directional",
    shuffle: bool = False,
    drop_last: bool = False,
    seed: int = 0,
    rank: int = 0,
    world_size: int = 1,
    prefetch: int = 2,
    features: bool = True,
    labels: bool = True,
) -> dict[str, Any]:
    """The options of a loader of the extension module."""
    threads = threads_of(threads)
    positive(batch_size=batch_size, world_size=world_size, prefetch=prefetch, threads=threads)
    default, by_type = fan_outs(dataset, num_neighbors)
    return {
        "fanouts": default,
        "fanouts_of": by_type,
        "rule": rule,
        "disjoint": disjoint,
        "time": time,
        "replace": replace,
        "subgraph": subgraph,
        "batch_size": batch_size,
        "shuffle": shuffle,
        "drop_last": drop_last,
        "seed": seed,
        "rank": rank,
        "world_size": world_size,
        "threads": threads,
        "prefetch": prefetch,
        "features": features,
        "labels": labels,
    }


def integers(what: str, given: Any) -> Any:
    """An array of 64-bit integers from a tensor, an array or a list."""
    found = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if found.size and (found.dtype.kind not in "iu" or (found.dtype == np.uint64 and found.max() >= 1 << 63)):
        raise UsageError(f"{what} are of type {found.dtype}", "expected integers of 63 bits")
    return np.ascontiguousarray(found, dtype=np.int64)


def input_nodes(dataset: Dataset, given: Any) -> tuple[str, Any, Any]:
    """The node type, the nodes, and the id by which each is told in batches: its place without any."""
    if dataset.is_heterogeneous:
        if isinstance(given, str) and given in dataset.node_types:
            given = (given, None)
        if not (isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str)):
            known = ", ".join(dataset.node_types)
            hint = f"input_nodes is a type or (type, nodes); there are: {known}"
            raise UsageError("input nodes of a heterogeneous graph need a type", hint)
        of, given = dataset.node_type(given[0]), given[1]
    else:
        of = dataset.node_type()
        # As pairs of a type and nodes are written for heterogeneous graphs.
        if isinstance(given, (tuple, list)) and len(given) == 2 and (given[0] is None or given[0] == of):
            given = given[1]
    if given is None:
        return of, np.arange(dataset.num_nodes(of)), None
    if isinstance(given, str):
        return of, dataset.split(given, of), None
    nodes = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if nodes.dtype == bool:
        if nodes.shape != (dataset.num_nodes(of),):
            told = f"a mask of {nodes.size} for {dataset.num_nodes(of)} nodes"
            raise UsageError(told, "expected one value for each node")
        nodes = np.flatnonzero(nodes)
        return of, nodes, nodes
    if nodes.size and nodes.dtype.kind not in "iu":
        raise UsageError(f"input nodes are of type {nodes.dtype}", "expected integers or a mask")
    return of, np.ascontiguousarray(nodes.reshape(-1), dtype=np.int64), None
