"""Graph neural networks at really large scale.

Datasets are folders on disk. :func:`open` maps one, :mod:`gnarl.pyg` makes mini-batches of it for models of PyTorch
Geometric, and :func:`train` trains a model of gnarl's own. Nothing here needs PyTorch but :mod:`gnarl.pyg`.
"""

from __future__ import annotations

import os
import sys

from gnarl._process import is_command

# A command has its process to itself, and takes the faster allocator. Others may fork: the system's is whole in a child.
if is_command(getattr(sys, "argv", []), sys.orig_argv):
    os.environ.setdefault("GNARL_ALLOCATOR", "mimalloc")

from gnarl import _gnarl, callbacks
from gnarl._commands import evaluate, generate, import_, infer, inspect, partition, plan, train
from gnarl._dataset import Dataset, connect, open
from gnarl._errors import CommandError, DataError, Error, IoError, LimitError, RankError, UsageError
from gnarl._relational import from_relational
from gnarl._run import Run
from gnarl._tables import from_tables
from gnarl._write import from_arrays, from_pyg

__version__: str = _gnarl.__version__

# A child has none of the threads that make batches: they hold nothing while the process forks.
os.register_at_fork(
    before=_gnarl.before_fork,
    after_in_parent=_gnarl.after_fork,
    after_in_child=_gnarl.after_fork,
)

__all__ = [
    "CommandError",
    "DataError",
    "Dataset",
    "Error",
    "IoError",
    "LimitError",
    "RankError",
    "Run",
    "UsageError",
    "callbacks",
    "connect",
    "evaluate",
    "from_arrays",
    "from_pyg",
    "from_relational",
    "from_tables",
    "generate",
    "import_",
    "infer",
    "inspect",
    "open",
    "partition",
    "plan",
    "train",
]
