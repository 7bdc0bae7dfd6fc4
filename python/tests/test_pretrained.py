"""Saved models, read and written by NumPy alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import gnarl
from gnarl import _pretrained
from gnarl._safetensors import read_metadata, read_tensors


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    config = {
        "dataset": {"path": dataset.path},
        "model": {"hidden": 8},
        "sample": {"batch_size": 64, "fanouts": [4, 4]},
        "train": {"epochs": 2},
        "output": {"dir": tmp_path_factory.mktemp("runs") / "run"},
    }
    return gnarl.train(config, quiet=True)


@pytest.fixture(scope="module")
def typed_run(typed, tmp_path_factory):
    config = {
        "dataset": {"path": typed.path},
        "model": {"name": "hetero", "hidden": 8},
        "sample": {"batch_size": 64, "fanouts": [4, 4], "edge_fanouts": {"paper:cites:paper": [0, 4]}},
        "train": {"epochs": 1},
        "output": {"dir": tmp_path_factory.mktemp("runs") / "typed"},
    }
    return gnarl.train(config, quiet=True)


def write(place, entries, data, length=None):
    header = json.dumps(entries).encode()
    place.write_bytes((len(header) if length is None else length).to_bytes(8, "little") + header + data)
    return place


def test_tensors_are_read_in_all_three_types(tmp_path):
    values = np.array([[1.5, -2.0, 0.0], [3.25, 1e-3, 7.0]], dtype=np.float32)
    half = values.astype(np.float16)
    brain = (values.view(np.uint32) >> 16).astype(np.uint16)
    entries = {
        "__metadata__": {"gnarl": '{"task": "t"}'},
        "single": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "half": {"dtype": "F16", "shape": [6], "data_offsets": [24, 36]},
        "brain": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [36, 48]},
        "none": {"dtype": "F32", "shape": [0, 4], "data_offsets": [48, 48]},
    }
    place = write(tmp_path / "a.safetensors", entries, values.tobytes() + half.tobytes() + brain.tobytes())
    found = read_tensors(place)
    assert list(found) == ["single", "half", "brain", "none"]
    assert all(tensor.dtype == np.float32 for tensor in found.values())
    np.testing.assert_array_equal(found["single"], values)
    np.testing.assert_array_equal(found["half"], half.astype(np.float32).reshape(-1))
    np.testing.assert_array_equal(found["brain"], (values.view(np.uint32) & 0xFFFF0000).view(np.float32))
    assert found["none"].shape == (0, 4)
    assert read_metadata(place) == {"task": "t"}


def test_damaged_files_are_refused(tmp_path):
    place = tmp_path / "a.safetensors"
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    for changes, message in [
        ({"dtype": "I64"}, "'x' is of type I64"),
        ({"shape": [3]}, "'x' lies outside the file, or has another size"),
        ({"data_offsets": [4, 12]}, "'x' lies outside the file"),
        ({"data_offsets": [-8, 0]}, "'x' lies outside the file"),
        ({"data_offsets": None}, "the entry of tensor 'x' is damaged"),
    ]:
        with pytest.raises(gnarl.DataError, match=message):
            read_tensors(write(place, {"x": {**entry, **changes}}, b"\0" * 8))
    with pytest.raises(gnarl.DataError, match="not a safetensors file, or cut off"):
        read_tensors(write(place, {}, b"", length=1 << 40))
    with pytest.raises(gnarl.DataError, match="the header is damaged"):
        read_tensors(write(place, [1], b""))
    place.write_bytes(b"\x05\0\0\0\0\0\0\0{nope")
    with pytest.raises(gnarl.DataError, match="the header is damaged"):
        read_tensors(place)


def test_a_flipped_bit_is_named(run, tmp_path):
    place = tmp_path / "model.safetensors"
    whole = (Path(run.path) / "model.safetensors").read_bytes()
    place.write_bytes(whole)
    assert read_tensors(place)
    for byte in (len(whole) - 1, len(whole) - 100):
        flipped = bytearray(whole)
        flipped[byte] ^= 1
        place.write_bytes(flipped)
        with pytest.raises(gnarl.DataError, match=r"model\.safetensors: the file is damaged: its checksum differs"):
            read_tensors(place)


def test_a_saved_model_has_what_rebuilds_it(run, dataset, tmp_path):
    saved = run.save_pretrained(tmp_path / "models" / "mine")
    assert sorted(os.listdir(saved)) == ["README.md", "config.json", "model.safetensors"]
    assert os.listdir(saved.parent) == ["mine"], "no temporary folder stays"
    assert saved.stat().st_mode & 0o777 == (tmp_path / "models").stat().st_mode & 0o777
    config = json.loads((saved / "config.json").read_text())
    assert config["gnarl_version"] == gnarl.__version__ and config["task"] == "node-classification"
    assert config["model"]["name"] == "sage" and config["model"]["hidden"] == 8
    assert (config["model"]["in_dim"], config["model"]["out_dim"]) == (6, 4)
    assert config["dataset"]["nodes"] == 300 and config["dataset"]["edges"] == 2000
    assert config["scores"]["valid"] == run.summary["valid"]
    found, tensors = _pretrained.load(saved)
    described, original = _pretrained.load(run)
    assert found == described == config
    assert set(tensors) == set(original)
    for name, tensor in original.items():
        np.testing.assert_array_equal(tensors[name], tensor)


def test_a_heterogeneous_one_needs_no_dataset(typed_run, typed, tmp_path):
    config, _ = _pretrained.load(typed_run.save_pretrained(tmp_path / "typed"))
    assert [of["name"] for of in config["node_types"]] == typed.node_types
    assert config["edge_types"] == [":".join(of) for of in typed.edge_types]
    assert config["node_type"] == "paper" and config["model"]["out_dim"] == 3
    # The hop of the seeds is that of the last layer.
    first, last = config["edge_types_of_steps"]
    assert "paper:cites:paper" in first and "paper:cites:paper" not in last and len(last) == 4


def test_the_card_names_settings_scores_and_use(run, typed_run, tmp_path):
    card = (run.save_pretrained(tmp_path / "mine") / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: gnarl\n") and card.count("\n---\n") == 1
    front, text = card[4:].split("\n---\n")
    assert '- "node-classification"' in front and '- "sage"' in front and "license" not in front
    assert f"value: {run.summary['valid']['accuracy']}" in front
    for part in ["# mine", "300 nodes, 2,000 edges", "| hidden | 8 |", "| valid | accuracy |", 'module("mine")']:
        assert part in text
    assert "model(data.x, data.edge_index)" in text
    text = (typed_run.save_pretrained(tmp_path / "typed") / "README.md").read_text()
    assert 'model(data.x_dict, data.edge_index_dict)["paper"]' in text and "paper (90)" in text


def test_models_of_links_are_saved_too(dataset, tmp_path):
    config = {
        "dataset": {"path": dataset.path},
        "task": {"kind": "link-prediction"},
        "model": {"name": "none"},
        "embedding": {"dim": 8},
        "train": {"epochs": 1},
        "output": {"dir": tmp_path / "links"},
    }
    run = gnarl.train(config, quiet=True)
    found, tensors = _pretrained.load(run.save_pretrained(tmp_path / "saved"))
    assert found["task"] == "link-prediction" and found["decoder"]["dim"] == 8
    assert tensors["_N"].shape == (300, 8)
    assert "## Use" not in (tmp_path / "saved" / "README.md").read_text()


def test_what_is_there_is_replaced_on_request_only(run, tmp_path, monkeypatch):
    saved = run.save_pretrained(tmp_path / "mine")
    (saved / "note.txt").write_text("mine")
    with pytest.raises(gnarl.UsageError, match="is there already"):
        run.save_pretrained(saved)

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(_pretrained, "model_card", fail)
        with pytest.raises(OSError, match="disk full"):
            run.save_pretrained(saved, force=True)
        with pytest.raises(OSError, match="disk full"):
            run.save_pretrained(tmp_path / "other")
    assert os.listdir(tmp_path) == ["mine"] and (saved / "note.txt").exists()
    run.save_pretrained(saved, force=True)
    assert os.listdir(tmp_path) == ["mine"] and len(os.listdir(saved)) == 3
    for place in ("folder", "file"):
        other = tmp_path / place
        if place == "folder":
            other.mkdir()
            (other / "thesis.tex").write_text("…")
        else:
            other.write_text("…")
        with pytest.raises(gnarl.UsageError, match="not a folder of a saved model"):
            run.save_pretrained(other, force=True)
        assert other.exists()


def test_folders_without_a_model_are_refused(dataset, tmp_path):
    with pytest.raises(gnarl.DataError, match="no run here"):
        _pretrained.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(gnarl.DataError, match="not the config.json of a model"):
        _pretrained.load(tmp_path)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(gnarl.DataError, match="no model.safetensors here"):
        gnarl.Run(tmp_path).save_pretrained(tmp_path / "saved")
