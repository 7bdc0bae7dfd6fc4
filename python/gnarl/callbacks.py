"""Callbacks of :func:`gnarl.train`: progress, MLflow, and Weights & Biases.

A callback is called with the record of each epoch, and stops training by returning False. Methods that it may have beside:

- ``start(config)``, before the first epoch, with the resolved configuration: a dict of the sections of ``config.toml``.
- ``finish(run)``, with the :class:`gnarl.Run`, finished or stopped by a callback.
- ``fail(error)``, with the exception that ended training otherwise, ``KeyboardInterrupt`` among them.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnarl._errors import UsageError
from gnarl._run import Run
from gnarl._watchers import Callback

#: Files of a finished run that MLflow keeps.
_ARTIFACTS = ("report.html", "summary.json", "config.toml")
#: Parameters that a server of MLflow takes at a time, and characters of one that all of its versions keep.
_PARAMETERS, _CHARACTERS = 100, 500


class Progress:
    """A bar of epochs by tqdm if that is installed, and a line for each epoch without it; on ``sys.stderr``.

    The log appears there too, unless training is ``quiet=True``.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._epochs = 0

    def start(self, config: Mapping[str, Any]) -> None:
        """Shows the number of epochs."""
        self._epochs = int(config.get("train", {}).get("epochs", 0))
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._bar = None
        else:
            self._bar = tqdm(total=self._epochs or None, unit="epoch")

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Shows the loss and the scores of an epoch."""
        shown = {name: value for name, value in numbers(record).items() if name.startswith(("loss", "valid/"))}
        told = ", ".join(f"{name} {value:.4f}" for name, value in shown.items())
        if self._bar is None:
            total = f" of {self._epochs}" if self._epochs else ""
            print(f"epoch {record['epoch']}{total}: {told}", file=sys.stderr, flush=True)
            return
        if self._bar.n == 0 and record["epoch"] > 1:
            # Epochs before a resumption took no time here, and must not count in the estimate.
            self._bar.initial = self._bar.n = record["epoch"] - 1
        self._bar.set_postfix_str(told, refresh=False)
        self._bar.update(record["epoch"] - self._bar.n)

    def finish(self, run: Run) -> None:
        """Ends the bar."""
        self._close()

    def fail(self, error: BaseException) -> None:
        """Ends the bar where it is."""
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class MLflow:
    """Logs a run to MLflow: parameters, the numbers of each epoch, the summary, and the report among its artifacts.

    The store and the experiment are those of ``mlflow.set_tracking_uri`` and ``mlflow.set_experiment``, or of their
    environment variables. A run that is active already is logged to, and left open. Training that is resumed goes on in the
    run of MLflow that it began in.

    Args:
        experiment: Name of an experiment, which is made if there is none.
        run_name: Name of the run; by default that of its folder.
        tags: Further tags.
    """

    def __init__(
        self, experiment: str | None = None, *, run_name: str | None = None, tags: Mapping[str, str] | None = None
    ) -> None:
        self._mlflow = _imported("mlflow", "pip install mlflow")
        self._experiment = experiment
        self._name = run_name
        self._tags = dict(tags or {})
        self._id: str | None = None
        self._own = False

    def start(self, config: Mapping[str, Any]) -> None:
        """Begins a run, or finds the one that goes on."""
        mlflow = self._mlflow
        if self._experiment is not None:
            mlflow.set_experiment(self._experiment)
        active = mlflow.active_run()
        self._own = active is None
        if active is None:
            folder, identity = _folder(config), _identity(config)
            tags = self._tags | {"gnarl.dir": str(folder)} | ({"gnarl.run": identity} if identity else {})
            active = mlflow.start_run(run_id=self._begun(identity), run_name=self._name or folder.name, tags=tags)
        self._id = active.info.run_id
        # Values cannot be changed, and a resumed run may have other epochs.
        known = mlflow.get_run(self._id).data.params
        new = [(name, value[:_CHARACTERS]) for name, value in parameters(config).items() if name not in known]
        for first in range(0, len(new), _PARAMETERS):
            mlflow.log_params(dict(new[first : first + _PARAMETERS]), run_id=self._id)

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Logs the numbers of an epoch."""
        self._mlflow.log_metrics(_named(numbers(record)), step=int(record["epoch"]), run_id=self._id)

    def finish(self, run: Run) -> None:
        """Logs the summary and the files of a run, and ends it."""
        summary = _summary(run)
        if summary:
            self._mlflow.log_metrics(_named(summary), run_id=self._id)
        for name in _ARTIFACTS:
            if (Path(run.path) / name).exists():
                self._mlflow.log_artifact(str(Path(run.path) / name), run_id=self._id)
        self._end("FINISHED")

    def fail(self, error: BaseException) -> None:
        """Ends the run as failed, or as killed by Ctrl-C."""
        self._end("KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")

    def _begun(self, identity: str | None) -> str | None:
        """The run of MLflow that training began in, if it is resumed."""
        if identity is None:
            return None
        found = self._mlflow.search_runs(
            filter_string=f"tags.`gnarl.run` = '{identity}'", max_results=1, output_format="list"
        )
        return str(found[0].info.run_id) if found else None

    def _end(self, status: str) -> None:
        if self._own and self._id is not None:
            self._mlflow.end_run(status)
        self._id = None


def _named(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics by names that MLflow permits: ``hits@1`` is ``hits_1``."""
    return {re.sub(r"[^\w\-./ ]", "_", name): value for name, value in metrics.items()}


class WandB:
    """Logs a run to Weights & Biases: its configuration, the numbers of each epoch, and the summary.

    A run that is active already is logged to, and left open. Training that is resumed goes on in the run of Weights & Biases
    that it began in.

    Args:
        project: Name of the project.
        name: Name of the run; by default that of its folder.
        options: Further arguments of ``wandb.init``, such as ``mode="offline"``.
    """

    def __init__(self, project: str | None = None, *, name: str | None = None, **options: Any) -> None:
        self._wandb = _imported("wandb", "pip install wandb")
        self._options = {"project": project, "name": name} | options
        self._run: Any = None
        self._own = False

    def start(self, config: Mapping[str, Any]) -> None:
        """Begins a run, or the one that goes on."""
        self._own = self._wandb.run is None
        if self._own:
            identity = _identity(config)
            again = {"id": identity, "resume": "allow"} if identity else {}
            given = {name: value for name, value in self._options.items() if value is not None}
            self._run = self._wandb.init(**({"name": _folder(config).name} | again | given))
        else:
            self._run = self._wandb.run
        self._run.config.update(_flat(config, "."), allow_val_change=True)

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Logs the numbers of an epoch."""
        # Otherwise it would be shown with the next epoch.
        self._run.log(numbers(record), step=int(record["epoch"]), commit=True)

    def finish(self, run: Run) -> None:
        """Logs the summary, and ends the run."""
        self._run.summary.update(_summary(run))
        self._end(0)

    def fail(self, error: BaseException) -> None:
        """Ends the run as failed."""
        self._end(130 if isinstance(error, KeyboardInterrupt) else 1)

    def _end(self, code: int) -> None:
        if self._own and self._run is not None:
            self._run.finish(exit_code=code)
        self._run = None


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an epoch's record by flat names, such as ``valid/accuracy``, for trackers."""
    flat = _flat(record, "/")
    return {
        name: float(value)
        for name, value in flat.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and name != "epoch"
    }


def parameters(config: Mapping[str, Any]) -> dict[str, str]:
    """The values of a configuration as text by flat names, such as ``train.lr``, for trackers."""
    return {name: str(value) for name, value in _flat(config, ".").items()}


def _flat(table: Mapping[str, Any], by: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}{by}{within}": item for within, item in _flat(value, by).items()}
        elif value is not None:
            flat[name] = value
    return flat


def _summary(run: Run) -> dict[str, float]:
    # Apart from the curves, whose last values are not those of the best epoch.
    return {f"summary/{name}": value for name, value in numbers(run.summary).items()}


def _folder(config: Mapping[str, Any]) -> Path:
    return Path(config["output"]["dir"])


def _identity(config: Mapping[str, Any]) -> str | None:
    """A name that a run keeps when it is resumed, and that no other has; none where the folder is not on this host."""
    folder = _folder(config)
    origin = folder / "run.json"
    if not origin.exists():
        return None
    # It has the time of the start, which a resumed run keeps.
    return hashlib.sha256(str(folder).encode() + b"\0" + origin.read_bytes()).hexdigest()[:16]


def _imported(name: str, hint: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} is not installed", hint) from error


__all__ = ["Callback", "MLflow", "Progress", "WandB", "numbers", "parameters"]
