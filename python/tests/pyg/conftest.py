"""These tests run where PyTorch and PyTorch Geometric are."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch_geometric") else ["test_*.py"]
