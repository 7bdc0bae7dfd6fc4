"""Callbacks: their protocol, progress, and trackers."""

from __future__ import annotations

import json
import sys

import pytest

import gnarl
from gnarl.callbacks import MLflow, Progress, WandB


def config(dataset, tmp_path, **train):
    return {
        "dataset": {"path": dataset.path},
        "model": {"hidden": 8},
        "sample": {"batch_size": 32, "fanouts": [4, 4]},
        "train": {"epochs": 3, **train},
        "output": {"dir": tmp_path / "run"},
    }


class Recorder:
    """Keeps the calls that it gets, and stops or fails after an epoch."""

    def __init__(self, stop=0, error=None):
        self.calls = []
        self.stop = stop
        self.error = error

    def start(self, config):
        self.config = config
        self.calls.append("start")

    def __call__(self, record):
        self.calls.append(record["epoch"])
        if record["epoch"] == 2 and self.error is not None:
            raise self.error
        return record["epoch"] != self.stop

    def finish(self, run):
        self.run = run
        self.calls.append("finish")

    def fail(self, error):
        self.failure = error
        self.calls.append("fail")


def test_callbacks_hear_of_start_epochs_and_end(dataset, tmp_path):
    first, second, seen = Recorder(), Recorder(), []
    run = gnarl.train(config(dataset, tmp_path, lr=0.02), [first, seen.append, second], quiet=True)
    assert first.calls == second.calls == ["start", 1, 2, 3, "finish"]
    assert [record["epoch"] for record in seen] == [1, 2, 3]
    assert first.run is run and first.run.summary["epochs"] == 3
    assert first.config["train"]["lr"] == 0.02, "as resolved"
    assert first.config["output"]["dir"] == run.path and "optimizer" in first.config


def test_one_that_stops_is_enough_and_all_hear_of_it(dataset, tmp_path):
    first, second = Recorder(stop=2), Recorder()
    run = gnarl.train(config(dataset, tmp_path, epochs=50), (first, second), quiet=True)
    assert first.calls == second.calls == ["start", 1, 2, "finish"]
    assert run.summary == {}, "it can be resumed"


def test_a_failure_is_told_to_all(dataset, tmp_path):
    first, second = Recorder(error=ValueError("full")), Recorder()
    with pytest.raises(ValueError, match="full") as caught:
        gnarl.train(config(dataset, tmp_path, epochs=50), [first, second], quiet=True)
    assert (first.calls, second.calls) == (["start", 1, 2, "fail"], ["start", 1, "fail"])
    assert first.failure is second.failure is caught.value


def test_a_configuration_that_is_refused_starts_nothing(dataset, tmp_path):
    recorder = Recorder()
    with pytest.raises(gnarl.UsageError):
        gnarl.train(config(dataset, tmp_path, epoch=3), recorder, quiet=True)
    assert recorder.calls == []


def test_an_interrupt_within_a_callback_leaves_a_checkpoint(dataset, tmp_path):
    recorder = Recorder(error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        gnarl.train(config(dataset, tmp_path, epochs=50), recorder, quiet=True)
    assert recorder.calls == ["start", 1, 2, "fail"] and isinstance(recorder.failure, KeyboardInterrupt)
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_a_failing_end_hides_no_other(dataset, tmp_path):
    class Broken(Recorder):
        def finish(self, run):
            raise OSError("no route")

        def fail(self, error):
            raise OSError("no route")

    broken, other = Broken(), Recorder()
    with pytest.raises(OSError, match="no route"):
        gnarl.train(config(dataset, tmp_path), [broken, other], quiet=True)
    assert other.calls[-1] == "finish"
    with pytest.raises(ValueError, match="full") as caught:
        gnarl.train(config(dataset, tmp_path), [broken, Recorder(error=ValueError("full"))], quiet=True)
    assert "no route" in caught.value.__notes__[0]


def test_what_is_no_callback_is_refused(dataset, tmp_path):
    with pytest.raises(TypeError, match="found int"):
        gnarl.train(config(dataset, tmp_path), [3], quiet=True)
    assert not (tmp_path / "run").exists()


def test_progress_without_tqdm(dataset, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    gnarl.train(config(dataset, tmp_path), Progress(), quiet=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"epoch {epoch} of 3" for epoch in (1, 2, 3)]
    assert "loss" in lines[0] and "valid/accuracy" in lines[0]


def test_progress_by_tqdm(dataset, tmp_path, capsys):
    pytest.importorskip("tqdm")
    gnarl.train(config(dataset, tmp_path), [Recorder(stop=2), Progress()], quiet=True)
    assert "2/3" in capsys.readouterr().err
    gnarl.train(config(dataset, tmp_path), Progress(), resume=True, quiet=True)
    shown = capsys.readouterr().err
    assert "3/3" in shown and "valid/accuracy" in shown


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    module = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = module.get_tracking_uri()
    module.set_tracking_uri((tmp_path / "store").as_uri())
    module.set_experiment("first")
    yield module
    module.set_tracking_uri(before)


@pytest.mark.filterwarnings("default")
def test_mlflow_keeps_a_run(dataset, tmp_path, mlflow):
    run = gnarl.train(config(dataset, tmp_path), MLflow("graphs", tags={"by": "test"}), quiet=True)
    assert mlflow.active_run() is None
    (found,) = mlflow.search_runs(experiment_names=["graphs"], output_format="list")
    assert found.info.status == "FINISHED" and found.info.run_name == "run"
    assert found.data.tags["gnarl.dir"] == run.path and found.data.tags["by"] == "test"
    assert found.data.params["train.epochs"] == "3" and found.data.params["sample.fanouts"] == "[4, 4]"
    assert found.data.metrics["summary/valid/accuracy"] == pytest.approx(run.summary["valid"]["accuracy"])
    client = mlflow.MlflowClient()
    curve = client.get_metric_history(found.info.run_id, "valid/accuracy")
    expected = [(record["epoch"], record["valid"]["accuracy"]) for record in run.metrics]
    assert [(point.step, point.value) for point in curve] == expected
    assert {"loss", "seconds", "stages/compute"} <= set(found.data.metrics) and "epoch" not in found.data.metrics
    kept = {artifact.path for artifact in client.list_artifacts(found.info.run_id)}
    assert kept == {"report.html", "summary.json", "config.toml"}


@pytest.mark.filterwarnings("default")
def test_mlflow_goes_on_where_a_run_is_resumed(dataset, tmp_path, mlflow):
    with pytest.raises(KeyboardInterrupt):
        stopped = [MLflow("graphs"), Recorder(error=KeyboardInterrupt())]
        gnarl.train(config(dataset, tmp_path), stopped, quiet=True)
    (found,) = mlflow.search_runs(experiment_names=["graphs"], output_format="list")
    assert found.info.status == "KILLED"
    gnarl.train(config(dataset, tmp_path, epochs=4), MLflow("graphs"), resume=True, quiet=True)
    (again,) = mlflow.search_runs(experiment_names=["graphs"], output_format="list")
    assert again.info.run_id == found.info.run_id and again.info.status == "FINISHED"
    curve = mlflow.MlflowClient().get_metric_history(found.info.run_id, "loss")
    assert [point.step for point in curve] == [1, 2, 3, 4]


@pytest.mark.filterwarnings("default")
def test_mlflow_leaves_an_active_run_open(dataset, tmp_path, mlflow):
    with mlflow.start_run() as active:
        with pytest.raises(ValueError, match="full"):
            gnarl.train(config(dataset, tmp_path), [MLflow(), Recorder(error=ValueError("full"))], quiet=True)
        assert mlflow.active_run().info.run_id == active.info.run_id
    assert "loss" in mlflow.get_run(active.info.run_id).data.metrics


@pytest.fixture
def wandb_runs(monkeypatch):
    """Each run of W&B at its end, before its process forgets it: configuration, summary, id, name and code."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    ended = []
    end = WandB._end

    def watched(self, code):
        run = self._run
        ended.append((dict(run.config), dict(run.summary), run.id, run.name, code))
        end(self, code)

    monkeypatch.setattr(WandB, "_end", watched)
    return ended


@pytest.mark.filterwarnings("default")
def test_wandb_keeps_a_run(dataset, tmp_path, wandb_runs):
    import wandb

    tracker = WandB("graphs", mode="offline", dir=str(tmp_path))
    run = gnarl.train(config(dataset, tmp_path), tracker, quiet=True)
    assert wandb.run is None
    settings, summary, identity, name, code = wandb_runs[0]
    assert (name, code) == ("run", 0)
    assert settings["train.epochs"] == 3 and settings["sample.fanouts"] == [4, 4]
    assert summary["loss"] == pytest.approx(run.metrics[-1]["loss"])
    assert summary["summary/valid/accuracy"] == pytest.approx(run.summary["valid"]["accuracy"])
    gnarl.train(config(dataset, tmp_path, epochs=4), tracker, resume=True, quiet=True)
    assert wandb_runs[1][2] == identity, "a resumed run goes on there"
    assert wandb_runs[1][0]["train.epochs"] == 4
    gnarl.train(config(dataset, tmp_path / "other"), tracker, quiet=True)
    assert wandb_runs[2][2] != identity


@pytest.mark.filterwarnings("default")
def test_wandb_ends_a_failed_run(dataset, tmp_path, wandb_runs):
    tracker = WandB(mode="offline", dir=str(tmp_path))
    with pytest.raises(ValueError, match="full"):
        gnarl.train(config(dataset, tmp_path), [tracker, Recorder(error=ValueError("full"))], quiet=True)
    assert [run[-1] for run in wandb_runs] == [1]


@pytest.mark.parametrize(("tracker", "module"), [(MLflow, "mlflow"), (WandB, "wandb")])
def test_a_tracker_that_is_not_installed_says_so(tracker, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(gnarl.UsageError, match=f"{module} is not installed"):
        tracker()


def test_numbers_and_parameters_have_flat_names():
    record = json.loads('{"epoch": 2, "loss": 1.5, "valid": {"mrr": 0.5}, "verdict": "x", "balance": [1], "lr": null}')
    assert gnarl.callbacks.numbers(record) == {"loss": 1.5, "valid/mrr": 0.5}
    assert gnarl.callbacks.parameters({"train": {"lr": 0.1, "on": True}}) == {"train.lr": "0.1", "train.on": "True"}
