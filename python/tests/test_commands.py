"""Commands as functions: results, errors, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

import gnarl
from gnarl._toml import to_toml


def config(dataset, tmp_path, **train):
    return {
        "dataset": {"path": dataset.path},
        "model": {"hidden": 8},
        "sample": {"batch_size": 32, "fanouts": [4, 4]},
        "train": {"epochs": 4, **train},
        "output": {"dir": tmp_path / "run"},
    }


def test_a_run_is_trained_and_read(dataset, tmp_path):
    seen = []
    run = gnarl.train(config(dataset, tmp_path), lambda epoch: seen.append(epoch["loss"]), quiet=True)
    assert [epoch["loss"] for epoch in run.metrics] == seen and len(seen) == 4
    assert run.summary["epochs"] == 4 and "accuracy" in run.summary["valid"]
    assert run.report.exists() and "<iframe" in run._repr_html_()
    rows = run.logits()
    assert rows.shape == (300, 4) and rows.dtype == np.float32
    assert run.embeddings().shape[0] == 300
    assert gnarl.evaluate(run)["valid"] == pytest.approx(run.summary["valid"])


def test_the_same_numbers_as_by_the_command(dataset, tmp_path):
    run = gnarl.train(config(dataset, tmp_path), quiet=True, settings={"train.lr": 0.02})
    file = tmp_path / "run.toml"
    file.write_text(to_toml({**config(dataset, tmp_path), "output": {"dir": str(tmp_path / "other")}}))
    command = [sys.executable, "-m", "gnarl", "train", str(file), "--set", "train.lr=0.02"]
    subprocess.run(command, check=True, capture_output=True)
    losses = [epoch["loss"] for epoch in gnarl.Run(tmp_path / "other").metrics]
    assert [epoch["loss"] for epoch in run.metrics] == losses


def test_a_callback_stops_training_and_it_goes_on(dataset, tmp_path):
    stopped = config(dataset, tmp_path, epochs=60)
    run = gnarl.train(stopped, lambda epoch: epoch["epoch"] < 3, quiet=True)
    trained = len(run.metrics)
    assert trained == 3, "it stops after the epoch of which the callback was told"
    seen = []
    again = gnarl.train({**stopped, "train": {"epochs": trained + 2}}, seen.append, resume=True, quiet=True)
    assert [epoch["epoch"] for epoch in seen] == [trained + 1, trained + 2]
    assert len(again.metrics) == trained + 2


def steps_of(folder):
    """The steps of the event files in a folder, in the order of their records."""
    steps = []
    for file in sorted((folder / "tensorboard").glob("events.out.tfevents.*.gnarl")):
        rest = file.read_bytes()
        while rest:
            length = int.from_bytes(rest[:8], "little")
            event, rest = rest[12 : 12 + length], rest[16 + length :]
            # The wall time, then the step, which is below 128 here.
            assert event[0] == 0x09 and event[9] == 0x10
            steps.append(event[10])
    return steps


def test_a_killed_command_is_told(dataset, tmp_path):
    def kill(_):
        children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)

    with pytest.raises(gnarl.CommandError):
        gnarl.train(config(dataset, tmp_path), kill, quiet=True)


def test_events_for_tensorboard_go_on_with_a_run(dataset, tmp_path):
    wanted = config(dataset, tmp_path)
    wanted["output"]["tensorboard"] = True
    run = gnarl.train(wanted, lambda epoch: epoch["epoch"] < 2, quiet=True)
    # That of the file's version comes first.
    assert steps_of(Path(run.path)) == [0, 1, 2]
    (Path(run.path) / "tensorboard" / "events.out.tfevents.1.mine").write_text("mine")
    run = gnarl.train(wanted, resume=True, quiet=True)
    assert steps_of(Path(run.path)) == [0, 1, 2, 3, 4]
    run = gnarl.train(wanted, restart=True, quiet=True)
    assert steps_of(Path(run.path)) == [0, 1, 2, 3, 4]
    assert (Path(run.path) / "tensorboard" / "events.out.tfevents.1.mine").read_text() == "mine"


def test_wrong_configurations_are_told(dataset, tmp_path):
    with pytest.raises(gnarl.UsageError, match="unknown key 'train.epoch'") as caught:
        gnarl.train(config(dataset, tmp_path, epoch=3), quiet=True)
    assert caught.value.hint == "did you mean 'train.epochs'?"
    with pytest.raises(gnarl.UsageError, match="unexpected argument '--hopps'"):
        gnarl.partition(dataset, tmp_path / "parts", 2, hopps=1, quiet=True)
    with pytest.raises(gnarl.CommandError, match="no dataset.json here") as failed:
        gnarl.inspect(tmp_path)
    assert failed.value.code == 1
    with pytest.raises(gnarl.DataError, match="no run here"):
        gnarl.Run(tmp_path)


def test_partitions_and_plans(dataset, tmp_path):
    gnarl.partition(dataset, tmp_path / "parts", 2, balance=1.1, quiet=True)
    assert len(gnarl.inspect(tmp_path / "parts")["parts"]) == 2
    assert gnarl.plan(dataset, parts=2, quiet=True)


def test_a_log_that_nobody_takes_stops_nothing(dataset, tmp_path, monkeypatch):
    class Closed:
        def write(self, text):
            raise RuntimeError("closed")

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stderr", Closed())
    monkeypatch.setenv("RUST_LOG", "trace")
    assert len(gnarl.train(config(dataset, tmp_path, epochs=300)).metrics) == 300


def test_commands_run_the_package_that_calls_them(dataset, tmp_path):
    """From a folder with a package of that name, where this one is known to the process alone."""
    (tmp_path / "gnarl").mkdir()
    (tmp_path / "gnarl" / "__init__.py").touch()
    place = str(Path(gnarl.__file__).parent.parent)
    script = f"import sys; sys.path.insert(0, {place!r}); import gnarl; gnarl.inspect({dataset.path!r})"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env=environment)


def test_a_run_whose_parent_is_gone_stops_in_order(dataset, tmp_path):
    script = textwrap.dedent(f"""
        import gnarl, os, signal
        config = {{
            "dataset": {{"path": {dataset.path!r}}},
            "model": {{"hidden": 8}},
            "train": {{"epochs": 100000}},
            "output": {{"dir": {str(tmp_path / "run")!r}}},
        }}
        gnarl.train(config, lambda epoch: epoch["epoch"] < 3 or os.kill(os.getpid(), signal.SIGKILL), quiet=True)
    """)
    subprocess.run([sys.executable, "-c", script], check=False)
    for _ in range(600):
        if (tmp_path / "run" / "checkpoint.safetensors").exists():
            break
        time.sleep(0.1)
    resumed = gnarl.train(
        {**config(dataset, tmp_path), "sample": {}, "train": {"epochs": 5}, "model": {"hidden": 8}},
        resume=True,
        quiet=True,
    )
    assert [epoch["epoch"] for epoch in resumed.metrics] == [1, 2, 3, 4, 5]


def test_the_command_line_ends_with_its_code(dataset, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(to_toml(config(dataset, tmp_path, epochs=100000)))
    command = subprocess.Popen(
        [sys.executable, "-m", "gnarl", "train", str(file), "--stream"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for _ in range(3):
        command.stdout.readline()
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130 and b"Traceback" not in err, err


def test_the_log_goes_where_python_writes(dataset, tmp_path, capsys):
    gnarl.train(config(dataset, tmp_path))
    assert "epoch 4 of 4" in capsys.readouterr().err


def test_an_interrupt_writes_a_checkpoint(dataset, tmp_path):
    heard = threading.Event()

    def interrupt():
        heard.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        gnarl.train(config(dataset, tmp_path, epochs=5000), lambda _: heard.set(), quiet=True)
    run = gnarl.Run(tmp_path / "run")
    trained = len(run.metrics)
    assert 0 < trained < 5000
    changed = config(dataset, tmp_path, epochs=trained + 1)
    assert len(gnarl.train(changed, resume=True, quiet=True).metrics) == trained + 1


#: Commands that are still under way when their first output appears, and how long they may take to be there.
LONG = {
    "import": 'gnarl.import_("npy", "out", edges="edges.npy", quiet=True)',
    "partition": 'gnarl.partition("graph", "out", 8, quiet=True)',
    "generate": 'gnarl.generate("rmat", "out", edges=1 << 24, quiet=True)',
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A folder with many edges, as an array and as a dataset."""
    folder = tmp_path_factory.mktemp("large")
    edges = np.random.default_rng(0).integers(0, 1 << 20, size=(2, 1 << 23))
    np.save(folder / "edges.npy", edges)
    gnarl.from_arrays(folder / "graph", edges)
    return folder


@pytest.mark.parametrize("command", LONG)
def test_an_interrupted_command_leaves_nothing(large, command):
    before = sorted(place.name for place in large.iterdir())
    script = f'import gnarl\nprint("begun", flush=True)\n{LONG[command]}\n'
    started = subprocess.Popen(
        [sys.executable, "-c", script], cwd=large, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    started.stdout.readline()
    deadline = threading.Timer(60, started.kill)
    deadline.start()
    while not list(large.glob("out.tmp-*")) and started.poll() is None:
        time.sleep(0.001)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate()
    deadline.cancel()
    assert b"KeyboardInterrupt" in err, err
    assert sorted(place.name for place in large.iterdir()) == before


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": {"c": [1, 2], "d": {"e": 'x\n"y\\'}}, "f": True, "g": 1e-3, "h": None},
        {"odd key": {"ü": "ö"}, "list": [{"a": 1}, {"b": [0.5, "z"]}]},
        {"n": np.int64(3), "x": np.float32(0.5), "none": {}},
    ],
)
def test_dicts_as_toml(value):
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if item not in (None, {})}
        return value.item() if isinstance(value, np.generic) else value

    assert tomllib.loads(to_toml(value)) == plain(value)


def test_unknown_types_are_refused_in_toml():
    with pytest.raises(TypeError, match="object"):
        to_toml({"a": object()})


@pytest.mark.parametrize(
    ("hint", "keywords"),
    [
        ("replace it with --force, or choose another --out", "replace it with force=True, or choose another out=…"),
        (
            "partition it again with --layout edge-cut, or --hops 1",
            "partition it again with layout='edge-cut', or hops=1",
        ),
        ("did you mean --set train.lr=0.1?", 'did you mean settings={"train.lr": 0.1}?'),
        ("make buckets with 'gnarl partition --buckets'", "make buckets with 'gnarl partition --buckets'"),
        ("--ids string keeps ids, --node-time is of nodes", "ids='string' keeps ids, node_time=… is of nodes"),
        ("give --edges a:to:b=FILE.", "give edges='a:to:b=FILE'."),
        ("--reverse stores reverses", "reverse=True stores reverses"),
        ("first - then --", "first - then --"),
    ],
)
def test_hints_name_keywords(hint, keywords):
    assert gnarl.Error("something", hint).hint == keywords
