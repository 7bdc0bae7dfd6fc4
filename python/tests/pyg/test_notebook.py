"""The cells of the notebook run in their order, and its model learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: Runs code cells in one namespace, as a kernel does, and prints a variable of it at last.
RUN = textwrap.dedent("""
    import json, sys
    cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
    namespace = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
    print(namespace["accuracy"])
""")


@pytest.fixture
def notebook():
    return ROOT / "python" / "examples" / "papers.ipynb"


def test_it_learns_topics(notebook, tmp_path):
    pytest.importorskip("matplotlib")
    # Its folder and the tables, at places like those in the repository.
    folder = tmp_path / "python" / "examples"
    folder.mkdir(parents=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    command = [sys.executable, "-c", RUN, notebook]
    settings = os.environ | {"MPLBACKEND": "Agg"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=folder, env=settings)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.splitlines()[-1]) > 0.5, "there are four topics"
    assert "p100: predicted" in ran.stdout
    assert (folder / "data" / "embeddings.npy").exists()


def test_it_is_small(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert notebook.stat().st_size < 20_000
    assert not any(cell.get("outputs") for cell in cells), "outputs are not kept"
