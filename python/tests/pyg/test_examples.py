"""Examples run, and teach what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import gnarl

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def communities(tmp_path_factory):
    place = tmp_path_factory.mktemp("data") / "communities"
    gnarl.generate(
        "community",
        place,
        nodes=1200,
        communities=4,
        average_degree=10,
        features=16,
        classes=4,
        split=(0.6, 0.2, 0.2),
        quiet=True,
    )
    return place


def run(*words):
    ran = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_processes_learn_together_what_one_learns(communities, tmp_path):
    options = [communities, "--epochs", "6", "--batch-size", "48", "--hidden", "16"]
    script = EXAMPLES / "ddp.py"
    alone = run(script, *options, "--out", tmp_path / "alone.pt")
    launched = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    together = run(*launched, *options, "--out", tmp_path / "together.pt")
    for text in (alone, together):
        assert float(text.rsplit(maxsplit=1)[1]) > 0.8, text
    expected = torch.load(tmp_path / "alone.pt", weights_only=True)
    for name, weights in torch.load(tmp_path / "together.pt", weights_only=True).items():
        np.testing.assert_allclose(weights, expected[name], rtol=1e-3, atol=1e-4, err_msg=name)
