"""PyG's examples on datasets of gnarl: they learn, and the docs show their difference from PyG's form."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_geometric.typing

import gnarl

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "python" / "examples" / "pyg"
DOCS = ROOT / "docs" / "pyg-examples.md"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
HAS_SAMPLER = torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE
FIELDS = 3
#: The graph of each example, further arguments, and the score that has to be reached.
RUNS = {
    "reddit": ("communities", ["--epochs", "8", "--batch-size", "128"], 0.55),
    "ogbn_train": (
        "communities",
        ["--epochs", "6", "--hidden", "32", "--fan-out", "3", "--batch-size", "40", "--lr", "0.01"],
        0.42,
    ),
    "hetero_conv_dblp": ("papers", ["--epochs", "20"], 0.7),
    "hgt_dblp": ("papers", ["--epochs", "20"], 0.7),
    "to_hetero_mag": ("featured_papers", ["--epochs", "5", "--target", "paper", "--batch-size", "64"], 0.7),
    "link_pred": ("communities", ["--epochs", "40"], 0.65),
    "rgcn_link_pred": ("relations", ["--epochs", "40", "--hidden", "20"], 0.3),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small graphs take longer with several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def communities(tmp_path_factory):
    place = tmp_path_factory.mktemp("data") / "communities"
    sizes = {"nodes": 600, "communities": 4, "classes": 4, "average_degree": 10, "features": 16}
    gnarl.generate("community", place, split=(0.6, 0.2, 0.2), quiet=True, **sizes)
    return place


def typed(place, featured):
    """Papers of three fields with noisy features; authors and subjects each belong to one field."""
    draw = np.random.default_rng(0)
    counts = {"paper": 300, "author": 120, "subject": 12}
    fields = {of: draw.integers(0, FIELDS, count) for of, count in counts.items()}

    def near(of, degree):
        """Edges of each paper, most of them to nodes of its own field."""
        papers = np.repeat(np.arange(counts["paper"]), degree)
        wanted = np.where(
            draw.random(len(papers)) < 0.9, fields["paper"][papers], draw.integers(0, FIELDS, len(papers))
        )
        others = np.array([draw.choice(np.flatnonzero(fields[of] == field)) for field in wanted])
        return np.stack([papers, others])

    written, has = near("author", 4), near("subject", 1)
    features = {of: draw.normal(size=(counts[of], 8)).astype(np.float32) for of in featured}
    for of, rows in features.items():
        rows[:, :FIELDS] += np.eye(FIELDS, dtype=np.float32)[fields[of]]
    split = np.split(draw.permutation(counts["paper"]), [180, 240])
    gnarl.from_arrays(
        place,
        {
            ("paper", "written_by", "author"): written,
            ("author", "rev_written_by", "paper"): written[::-1].copy(),
            ("paper", "has", "subject"): has,
            ("subject", "rev_has", "paper"): has[::-1].copy(),
        },
        num_nodes=counts,
        features=features,
        labels={"paper": fields["paper"]},
        splits={"paper": dict(zip(("train", "valid", "test"), split, strict=True))},
    )
    return place


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    return typed(tmp_path_factory.mktemp("data") / "papers", ["paper", "author"])


@pytest.fixture(scope="module")
def featured_papers(tmp_path_factory):
    return typed(tmp_path_factory.mktemp("data") / "papers", ["paper", "author", "subject"])


@pytest.fixture(scope="module")
def relations(tmp_path_factory):
    """Entities of six groups; a relation leads from each group to one other."""
    draw = np.random.default_rng(0)
    heads, kinds, tails = (part.reshape(-1) for part in np.meshgrid(np.arange(60), np.arange(3), np.arange(60)))
    holds = ((heads + kinds + 1) % 6 == tails % 6) & (draw.random(len(heads)) < 0.8)
    triples = np.stack([heads, tails, kinds])[:, holds]
    split = draw.choice(3, size=triples.shape[1], p=[0.8, 0.1, 0.1])
    place = tmp_path_factory.mktemp("data") / "relations"
    features = np.stack([triples[2], split], axis=1).astype(np.float32)
    gnarl.from_arrays(place, triples[:2], num_nodes=60, edge_features=features)
    return place


def run(script, *words, capsys, monkeypatch):
    """The last number that a script prints."""
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, words)])
    # PyG's Sequential imports the module of its caller, by the name of the file.
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, script.stem, module)
    spec.loader.exec_module(module)
    module.main()
    return float(capsys.readouterr().out.rsplit(maxsplit=1)[1])


@pytest.mark.parametrize("name", NAMES)
def test_example_learns(name, request, capsys, monkeypatch):
    graph, words, expected = RUNS[name]
    place = request.getfixturevalue(graph)
    score = run(EXAMPLES / f"{name}.py", place, *words, capsys=capsys, monkeypatch=monkeypatch)
    assert score > expected


def documented():
    """The diffs of the docs by the names of their examples."""
    found = {}
    for block in re.findall(r"^```diff\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        before, after = (line.split(" ", 1)[1] for line in lines[:2])
        assert after == f"python/examples/pyg/{before}"
        found[Path(before).stem] = lines[2:]
    return found


def reverted(diff, text):
    """The text before a unified diff that led to it."""
    lines, old, at = text.splitlines(), [], 0
    hunks = [number for number, line in enumerate(diff) if line.startswith("@@")]
    for first, end in zip(hunks, [*hunks[1:], len(diff)], strict=True):
        start = int(re.match(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", diff[first])[1]) - 1
        # Blank lines of context lose their space.
        body = [line or " " for line in diff[first + 1 : end]]
        new = [line[1:] for line in body if line[0] != "-"]
        assert lines[start : start + len(new)] == new
        old += lines[at:start] + [line[1:] for line in body if line[0] != "+"]
        at = start + len(new)
    return "\n".join([*old, *lines[at:]]) + "\n"


def test_every_example_is_documented():
    assert sorted(documented()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_documented_difference_is_that_of_the_example(name, request, tmp_path, capsys, monkeypatch):
    diff, script = documented()[name], EXAMPLES / f"{name}.py"
    original = tmp_path / f"{name}.py"
    original.write_text(reverted(diff, script.read_text()))
    compile(original.read_text(), original, "exec")
    assert "gnarl" not in original.read_text()
    assert sum(line.startswith("-") for line in diff) <= 4
    if "loader" in original.read_text() and not HAS_SAMPLER:
        return
    graph, words, expected = RUNS[name]
    place = request.getfixturevalue(graph)
    torch.save(gnarl.open(place).to_pyg(), tmp_path / "graph.pt")
    score = run(original, tmp_path / "graph.pt", *words, capsys=capsys, monkeypatch=monkeypatch)
    assert score > expected
    if "loader" not in original.read_text():
        assert score == run(script, place, *words, capsys=capsys, monkeypatch=monkeypatch)
