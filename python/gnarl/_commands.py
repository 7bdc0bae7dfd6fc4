"""Commands of the ``gnarl`` binary as functions. Each runs in a process of its own, so that its memory is returned at the
end, Ctrl-C stops it in order, and this process may be forked before and afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from gnarl._errors import CommandError, UsageError
from gnarl._run import Run
from gnarl._toml import to_toml
from gnarl._watchers import Callback, Watchers

Path_ = str | os.PathLike[str]
#: Exit code of a command that was asked to stop.
_INTERRUPTED = 130


def import_(
    format: str, out: Path_, source: Path_ | None = None, *, quiet: bool = False, **options: Any
) -> dict[str, Any]:
    """Makes a dataset in ``out`` from files: ``gnarl import FORMAT [SOURCE] --out OUT``.

    ``source`` is the file or folder of the formats that take one: ``schema``, ``ogb``, ``graphbolt``. Options are those of the command, with underscores: ``edges="e.csv"``, ``symmetrize=True``, a list where an option may
    be given several times, a tuple where it takes several values. Returns what the command found.
    """
    return _run_command(
        ["import", format, *([] if source is None else [_place(source)]), *_words({"out": out, **options})], quiet=quiet
    )


def generate(kind: str, out: Path_, *, quiet: bool = False, **options: Any) -> dict[str, Any]:
    """Makes a synthetic dataset in ``out``: ``gnarl generate KIND --out OUT``."""
    return _run_command(["generate", kind, *_words({"out": out, **options})], quiet=quiet)


def partition(dataset: Any, out: Path_, parts: int | str, *, quiet: bool = False, **options: Any) -> dict[str, Any]:
    """Cuts a dataset into parts: ``gnarl partition DATASET --parts PARTS --out OUT``."""
    words = _words({"parts": parts, "out": out, **options})
    return _run_command(["partition", _place(dataset), *words], quiet=quiet)


def plan(what: Any, *, quiet: bool = False, **options: Any) -> dict[str, Any]:
    """Predicts the cost of partitioners of a dataset, or of the strategies of a run: ``gnarl plan``."""
    with _run_file(what) as place:
        return _run_command(["plan", place, *_words(options)], quiet=quiet)


def inspect(dataset: Any, *, quiet: bool = True, **options: Any) -> dict[str, Any]:
    """Describes a dataset, a part or a partition: ``gnarl inspect``."""
    return _run_command(["inspect", _place(dataset), *_words(options)], quiet=quiet)


def train(
    config: Path_ | Mapping[str, Any],
    callback: Callback | Iterable[Callback] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    restart: bool = False,
    quiet: bool = False,
) -> Run:
    """Trains one of gnarl's models by a run file, or by a dict of its sections; returns the finished run.

    Args:
        config: A run file, or its sections: ``{"dataset": {"path": "data/cora"}, "train": {"epochs": 50}}``.
        callback: Called with the record of each epoch, or several that are. Training stops after the epoch if one
            returns False; what was learned stays, and ``resume=True`` continues. Methods ``start(config)``,
            ``finish(run)`` and ``fail(error)`` of a callback are called too, if it has them (:mod:`gnarl.callbacks`).
        settings: Keys that replace those of ``config``: ``{"train.lr": 0.01}``.
        resume: Continue from the checkpoint of an interrupted run.
        restart: Start over, replacing an existing run.
        quiet: No log on ``sys.stderr``.

    Raises:
        UsageError: If the configuration asks for something that does not exist.
        CommandError: If training fails.
        KeyboardInterrupt: After Ctrl-C, once a checkpoint is written.
    """
    words = [f"--set={key}={_toml_value(value)}" for key, value in (settings or {}).items()]
    words += _words({"resume": resume, "restart": restart, "stream": True, "attended": True})
    watchers = Watchers(callback, config)
    try:
        with _run_file(config) as place:
            result = _run_command(["train", place, *words], quiet=quiet, watchers=watchers)
    except BaseException as error:
        watchers.fail(error)
        raise
    run = Run(result["run_dir"])
    watchers.finish(run)
    return run


def evaluate(run: Any, *, quiet: bool = True, **options: Any) -> dict[str, Any]:
    """Evaluates a trained model on its dataset's splits: ``gnarl eval``."""
    return _run_command(["eval", _place(run), *_words(options)], quiet=quiet)


def infer(run: Any, out: Path_, *, quiet: bool = True, **options: Any) -> dict[str, Any]:
    """Writes an embedding or a prediction for every node, by the ids of the input: ``gnarl infer``."""
    return _run_command(["infer", _place(run), *_words({"out": out, **options})], quiet=quiet)


def _place(what: Any) -> str:
    """The folder of a dataset or a run, or a path as it is."""
    path: str | os.PathLike[str] = getattr(what, "path", what)
    return os.fspath(path)


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options as words of a command."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-").strip("-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, tuple):
            words += [flag, *map(_text, value)]
        elif isinstance(value, list):
            words += [f"{flag}={_text(item)}" for item in value]
        else:
            words.append(f"{flag}={_text(value)}")
    return words


def _text(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(getattr(value, "path", value))


def _toml_value(value: Any) -> str:
    return value if isinstance(value, str) else to_toml(value)


class _run_file:
    """A run file: that of a path, or a temporary one with sections."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> str:
        if not isinstance(self._config, Mapping):
            return _place(self._config)
        self._folder = tempfile.TemporaryDirectory(prefix="gnarl-")
        place = Path(self._folder.name) / "run.toml"
        place.write_text(to_toml(self._config), encoding="utf-8")
        return str(place)

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()


class _Log(threading.Thread):
    """Forwards the log of a command, and keeps its error."""

    def __init__(self, source: IO[str], quiet: bool) -> None:
        super().__init__(name="gnarl-log", daemon=True)
        self._source = source
        self._quiet = quiet
        self.error: str | None = None
        self.last: list[str] = []
        self.hint: str | None = None

    def run(self) -> None:
        for line in self._source:
            text = line.rstrip("\n")
            self.last = [*self.last[-9:], text]
            if text.startswith("error: "):
                self.error = text.removeprefix("error: ")
                continue
            if self.error is not None and text.strip().startswith(("hint: ", "tip: ")):
                self.hint = text.split(": ", 1)[1]
                continue
            if not self._quiet:
                # Whoever reads no more must not stop the command, which waits while its log is not taken.
                with contextlib.suppress(Exception):
                    print(text, file=sys.stderr, flush=True)
                    continue
                self._quiet = True


def _environment() -> dict[str, str]:
    """The environment of a command: it finds this package, wherever this process has found it."""
    # As absolute paths, which hold in any folder.
    known = [os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    places = [str(Path(__file__).parent.parent.absolute()), *known]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)}


def _answer(command: subprocess.Popen[str], answer: str) -> None:
    """Answers a run that waits after an epoch; one that has ended tells why itself."""
    assert command.stdin is not None
    try:
        command.stdin.write(answer + "\n")
        command.stdin.flush()
    except (BrokenPipeError, ValueError):
        pass


def _run_command(
    words: list[str], *, quiet: bool, folder: Path_ | None = None, watchers: Watchers | None = None
) -> dict[str, Any]:
    """Runs a command, in ``folder`` if that is given, and returns its result, the last line of its output. One with
    watchers waits after each epoch for an answer, and stops where this process is gone."""
    command = subprocess.Popen(
        [sys.executable, "-P", "-m", "gnarl", *words],
        env=_environment(),
        cwd=folder,
        stdin=subprocess.PIPE if watchers else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        # Of Ctrl-C it hears from here, once.
        start_new_session=True,
    )
    assert command.stdout is not None and command.stderr is not None
    log = _Log(command.stderr, quiet)
    log.start()
    result: dict[str, Any] = {}
    run_dir: str | None = None
    interrupted = False
    try:
        while True:
            try:
                line = command.stdout.readline()
                if not line:
                    break
                if line.startswith("{"):
                    # Of a run the first line has the folder, and the last the result.
                    result = json.loads(line)
                    if watchers and run_dir is None and "run_dir" in result:
                        run_dir = str(result["run_dir"])
                        watchers.start(run_dir)
                    if watchers and "epoch" in result:
                        # It goes on, or stops, once it has the answer.
                        watchers.epoch(result)
                        _answer(command, "stop" if watchers.stopped else "go")
            except KeyboardInterrupt:
                # The first stops at the end of the epoch, the second at once.
                interrupted = True
                command.send_signal(signal.SIGINT)
                if watchers:
                    # A callback was interrupted, or its record lost, and the command may wait for an answer.
                    _answer(command, "stop")
        code = command.wait()
        log.join()
    finally:
        if command.poll() is None:
            command.terminate()
            command.wait()
        for stream in (command.stdin, command.stdout, command.stderr):
            if stream is not None:
                # A command that was killed has left what it was told unread.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
    if interrupted:
        raise KeyboardInterrupt(log.error or log.hint or "interrupted")
    if code == 0:
        return result
    if watchers and watchers.stopped and code == _INTERRUPTED and run_dir is not None:
        return {"run_dir": run_dir}
    message = log.error or "\n".join(log.last) or f"'gnarl {words[0]}' ended with code {code}"
    if code == 2:
        raise UsageError(message, log.hint)
    raise CommandError(message, log.hint, code)


__all__ = ["evaluate", "generate", "import_", "infer", "inspect", "partition", "plan", "train"]
