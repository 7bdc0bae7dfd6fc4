"""Processes of commands, and those that import the package."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gnarl._process import is_command


@pytest.mark.parametrize(
    ("argv", "words", "expected"),
    [
        (["-m"], ["python", "-m", "gnarl", "train", "run.toml"], True),
        (["-m"], ["python", "-X", "dev", "-m", "gnarl"], True),
        (["-m"], ["python", "-um", "gnarl", "train"], True),
        (["-m"], ["python", "-mgnarl", "train"], True),
        (["-m"], ["python", "-m", "mine", "-m", "gnarl"], False),
        (["-m"], ["python", "-mmine"], False),
        (["-m"], ["python", "-Ximporttime", "-Wimport", "-m", "gnarl"], True),
        (["/usr/bin/gnarl", "train"], ["python", "/usr/bin/gnarl", "train"], True),
        (["train.py"], ["python", "train.py", "-m", "gnarl"], False),
        (["-c"], ["python", "-c", "import gnarl"], False),
        ([""], ["python"], False),
        ([], [], False),
    ],
)
def test_commands_are_told_from_programs(argv, words, expected):
    assert is_command(argv, words) is expected


@pytest.mark.parametrize("asked", ["system", "mimalloc", None])
def test_programs_take_the_allocator_of_the_system_unless_asked(asked):
    told = "from gnarl import _gnarl; print(_gnarl.allocator_name())"
    environment = {name: value for name, value in os.environ.items() if name != "GNARL_ALLOCATOR"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    if asked is not None:
        environment["GNARL_ALLOCATOR"] = asked
    found = subprocess.run(
        [sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == (asked or "system")
