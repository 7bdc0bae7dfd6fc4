"""Callbacks of a run: plain functions, and objects that also hear of its start and its end."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gnarl._run import Run

#: Called with the record of each epoch; training stops after it if it returns False. One with a method ``start``,
#: ``finish`` or ``fail`` is also called with the configuration, the finished run, or the error that ended it.
Callback = Callable[[dict[str, Any]], object]


class Watchers:
    """The callbacks of one run."""

    def __init__(self, given: Callback | Iterable[Callback] | None, config: Any) -> None:
        if given is None:
            given = ()
        # A callback may be iterable itself, a Mock for example.
        self._all: list[Callback] = [given] if callable(given) else list(given)
        for callback in self._all:
            if not callable(callback):
                raise TypeError(f"expected callbacks, found {type(callback).__name__}")
        self._config = config
        self._started: list[Callback] = []
        self._ready = False
        self.stopped = False

    def start(self, folder: str) -> None:
        """Tells the resolved configuration, once the run has a folder."""
        config: dict[str, Any] | None = None
        for callback in self._all:
            # It is told of a failure even if its own start fails halfway.
            self._started.append(callback)
            if hasattr(callback, "start"):
                config = config or _resolved(folder, self._config)
                callback.start(config)
        self._ready = True

    def epoch(self, record: dict[str, Any]) -> None:
        """Tells the record of an epoch to all, and notes if one of them wants to stop."""
        # Ctrl-C may have come in between their starts.
        answers = [callback(record) for callback in self._all] if self._ready else []
        self.stopped = self.stopped or any(answer is False for answer in answers)

    def finish(self, run: Run) -> None:
        """Tells the run. All are told, even if one of them raises."""
        with contextlib.ExitStack() as calls:
            for callback in reversed(self._started):
                if hasattr(callback, "finish"):
                    calls.callback(callback.finish, run)

    def fail(self, error: BaseException) -> None:
        """Tells why the run ended. Errors of callbacks are added to it as notes."""
        for callback in self._started:
            if hasattr(callback, "fail"):
                with _Noted(error):
                    callback.fail(error)


class _Noted(contextlib.AbstractContextManager[None]):
    """Adds an error to another as a note, where that one is the cause and must be seen."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __exit__(self, kind: object, found: BaseException | None, trace: object) -> bool:
        if isinstance(found, Exception):
            self._error.add_note(f"in a callback: {found!r}")
            return True
        return False


def _resolved(folder: str, given: Any) -> dict[str, Any]:
    """The configuration with all defaults, or as it was given where the folder is in an object store."""
    kept = Path(folder) / "config.toml"
    if kept.exists():
        return tomllib.loads(kept.read_text(encoding="utf-8"))
    config = dict(given) if isinstance(given, Mapping) else tomllib.loads(Path(given).read_text(encoding="utf-8"))
    return {**config, "output": {**config.get("output", {}), "dir": folder}}
