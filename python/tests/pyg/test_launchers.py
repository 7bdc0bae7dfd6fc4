"""Examples with launchers learn what one process learns."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import gnarl

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = ["--batch-size", "48", "--hidden", "16"]


def needs(package):
    """Skips a test, before its fixtures are made, where a package is not installed."""
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


def run(*words, **environment):
    command = [sys.executable, *map(str, words)]
    settings = os.environ | environment
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=settings)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


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


@pytest.fixture(scope="module")
def alone(communities, tmp_path_factory):
    """The weights of one process, without a launcher."""
    out = tmp_path_factory.mktemp("alone") / "model.pt"
    run(EXAMPLES / "ddp.py", communities, "--epochs", "6", *OPTIONS, "--out", out)
    return torch.load(out, weights_only=True)


def check(text, weights, alone):
    """Compares an example's last line and weights with those of one process."""
    told = text.splitlines()[-1]
    assert told.startswith("valid accuracy") and float(told.split()[-1]) > 0.7, text
    assert weights.keys() == alone.keys()
    for name, found in weights.items():
        np.testing.assert_allclose(found, alone[name], rtol=1e-3, atol=1e-4, err_msg=name)


def weights_of(checkpoint):
    state = torch.load(checkpoint, weights_only=True)["state_dict"]
    return {name.removeprefix("model."): values for name, values in state.items()}


@needs("lightning")
def test_lightning_with_two_processes(communities, alone, tmp_path):
    script, out = EXAMPLES / "lightning_sage.py", ["--out", tmp_path]
    text = run(script, communities, "--epochs", "6", *OPTIONS, *out, "--processes", "2")
    check(text, weights_of(tmp_path / "last.ckpt"), alone)


@needs("lightning")
def test_lightning_resumes_at_the_epoch_it_left(communities, alone, tmp_path):
    script = EXAMPLES / "lightning_sage.py"
    run(script, communities, "--epochs", "3", *OPTIONS, "--out", tmp_path / "half")
    again = ["--resume", tmp_path / "half" / "last.ckpt", "--out", tmp_path / "whole"]
    text = run(script, communities, "--epochs", "6", *OPTIONS, *again)
    check(text, weights_of(tmp_path / "whole" / "last.ckpt"), alone)


@needs("ray")
def test_ray_train_with_two_workers(communities, alone, tmp_path):
    script = EXAMPLES / "ray_train.py"
    # Ray would stop the workers where other programs need the memory of the machine.
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}
    text = run(script, communities, "--epochs", "6", *OPTIONS, "--storage", tmp_path, **settings)
    place = Path(text.splitlines()[-2].removeprefix("checkpoint "))
    check(text, torch.load(place / "state.pt", weights_only=True)["model"], alone)
