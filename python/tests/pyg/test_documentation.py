"""The examples of the documentation run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
#: Blocks that are scripts of their own: of processes that are launched or forked.
APART = re.compile(r"init_process_group|__main__|mlflow|wandb|lightning|ray\.")


@pytest.mark.parametrize(
    ("page", "needs"), [("python", None), ("python-tables", "pyarrow"), ("python-models", None), ("python-runs", None)]
)
def test_blocks_run_one_after_the_other(page, needs, tmp_path):
    if needs:
        pytest.importorskip(needs)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    script = "\n".join(block for block in blocks if not APART.search(block))
    assert script.count("\n") > 10
    # Some read the tables of the repository's examples.
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    (tmp_path / "page.py").write_text(script, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
