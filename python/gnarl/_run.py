"""Finished runs."""

from __future__ import annotations

import html
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnarl._errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Run:
    """The folder of a run: its weights, its figures and its report."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        if not (Path(self.path) / "config.toml").exists():
            raise DataError(f"{self.path}: no run here", "gnarl.train makes one")

    def __repr__(self) -> str:
        scores = self.summary.get("test") or {}
        told = ", ".join(f"test {name} {value:.4f}" for name, value in scores.items())
        return f"Run({self.path!r}{': ' + told if told else ''})"

    def _repr_html_(self) -> str:
        report = Path(self.path) / "report.html"
        if not report.exists():
            return html.escape(repr(self))
        page = html.escape(report.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:0"></iframe>'

    @property
    def summary(self) -> dict[str, Any]:
        """The result: scores of the best epoch, times, settings."""
        place = Path(self.path) / "summary.json"
        return json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The record of each epoch."""
        place = Path(self.path) / "metrics.jsonl"
        if not place.exists():
            return []
        return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]

    @property
    def report(self) -> Path:
        """The page with curves and pictures."""
        return Path(self.path) / "report.html"

    def embeddings(self, **options: Any) -> NDArray[np.float32]:
        """The embedding of every node, a row each, by layer-wise inference. Options are those of :func:`gnarl.infer`."""
        return self._computed("embeddings", options)

    def logits(self, **options: Any) -> NDArray[np.float32]:
        """The outputs of the model for every node, a row each."""
        return self._computed("logits", options)

    def save_pretrained(self, folder: str | os.PathLike[str], force: bool = False) -> Path:
        """Writes the trained model as a folder of its own, which needs neither the run nor its dataset.

        The folder has ``model.safetensors``, ``config.json`` with the facts that rebuild the model, and a model card in
        ``README.md``. It appears when it is complete. :func:`gnarl.pyg.module` makes a module of it.

        Args:
            folder: The folder to make.
            force: Replace a saved model that is there.

        Returns:
            The folder.

        Raises:
            DataError: If the run has no weights yet.
            UsageError: If the folder is there, or a heterogeneous run's dataset is not.
        """
        from gnarl._pretrained import save_pretrained

        return save_pretrained(self, folder, force)

    def _computed(self, what: str, options: dict[str, Any]) -> NDArray[np.float32]:
        from gnarl._commands import infer

        with tempfile.TemporaryDirectory(prefix="gnarl-") as folder:
            place = Path(folder) / "rows.npy"
            infer(self, place, what=what, **options)
            rows: NDArray[np.float32] = np.load(place)
        return rows
