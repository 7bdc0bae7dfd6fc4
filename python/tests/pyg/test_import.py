"""The package beside PyTorch: imported before and after it, and used by both."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("order", ["gnarl, torch", "torch, gnarl"])
def test_either_is_imported_first(dataset, order):
    script = f"""
import {order}
import gnarl.pyg
loader = gnarl.pyg.NeighborLoader({dataset.path!r}, [3, 2], batch_size=50, threads=4)
total = sum(float((batch.x @ batch.x.T).sum()) for batch in loader)
assert total > 0
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_package_itself_needs_no_torch(dataset):
    script = f"import gnarl, sys; gnarl.open({dataset.path!r}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
