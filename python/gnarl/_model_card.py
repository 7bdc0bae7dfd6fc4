"""The model card of a saved model, in the form of the Hugging Face Hub."""

from __future__ import annotations

import json
from typing import Any

_USE = """```python
from gnarl.pyg import module

model = module({folder})        # torch.nn.Module; eval() and train() as any other
{call}
```
"""
_HOMOGENEOUS = "outputs = model(data.x, data.edge_index{weights})"
_HETEROGENEOUS = "outputs = model(data.x_dict, data.edge_index_dict)[{of}]"


def model_card(name: str, config: dict[str, Any], summary: dict[str, Any]) -> str:
    """The text of ``README.md``. It names no license, which is for the author of the model to choose."""
    model = config["model"]
    dataset = config["dataset"].get("name")
    task = config["task"].replace("-", " ")
    told = f"`{model['name']}` for {task}" + (f" on {dataset}" if dataset else "")
    parts = [
        _front_matter(name, config),
        f"# {name}\n\n{told}, trained with gnarl {config['gnarl_version']}.\n",
        _scores(config),
        _graph(config),
        _table("Model", model),
        _training(config, summary),
    ]
    if config["task"].startswith("node-"):
        call = _HETEROGENEOUS.format(of=json.dumps(config["node_type"])) if "node_type" in config else None
        call = call or _HOMOGENEOUS.format(weights="")
        parts.append("## Use\n\n" + _USE.format(folder=json.dumps(name), call=call))
    parts.append("`model.safetensors` has the weights by name, `config.json` what rebuilds the model from them.\n")
    return "\n".join(part for part in parts if part)


def _front_matter(name: str, config: dict[str, Any]) -> str:
    lines = ["library_name: gnarl", "pipeline_tag: graph-ml", "tags:"]
    lines += [f"- {_text(tag)}" for tag in ("gnarl", "graph-neural-network", config["task"], config["model"]["name"])]
    results = [
        f"    - type: {_text(metric)}\n      name: {_text(f'{split} {metric}')}\n      value: {json.dumps(value)}"
        for split in ("test", "valid")
        for metric, value in config["scores"].get(split, {}).items()
    ]
    if results:
        dataset = _text(config["dataset"].get("name") or "unknown")
        lines += [
            "model-index:",
            f"- name: {_text(name)}",
            "  results:",
            f"  - task:\n      type: {_text(config['task'])}",
        ]
        lines += [f"    dataset:\n      name: {dataset}\n      type: {dataset}", "    metrics:", *results]
    return "---\n" + "\n".join(lines) + "\n---\n"


def _scores(config: dict[str, Any]) -> str:
    rows = [
        f"| {split} | {metric} | {value:.4f} |"
        for split in ("test", "valid")
        for metric, value in config["scores"].get(split, {}).items()
    ]
    if not rows:
        return ""
    return "## Scores\n\n| split | metric | value |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _graph(config: dict[str, Any]) -> str:
    dataset = config["dataset"]
    if "nodes" not in dataset:
        return ""
    text = f"## Graph\n\n{dataset['name']}: {dataset['nodes']:,} nodes, {dataset['edges']:,} edges.\n"
    if "node_types" in config:
        nodes = ", ".join(f"{of['name']} ({of['count']:,})" for of in config["node_types"])
        text += f"\nNode types: {nodes}. Edge types: {', '.join(config['edge_types'])}.\n"
    return text


def _training(config: dict[str, Any], summary: dict[str, Any]) -> str:
    facts = {
        "epoch": config["scores"].get("epoch"),
        "epochs": summary.get("epochs"),
        "parameters": summary.get("parameters"),
        **{f"sample.{key}": value for key, value in config["sample"].items()},
        "dataset.normalize": config["normalize"],
    }
    return _table("Training", {key: value for key, value in facts.items() if value is not None})


def _table(title: str, facts: dict[str, Any]) -> str:
    rows = [f"| {key} | {_cell(value)} |" for key, value in facts.items()]
    return f"## {title}\n\n| setting | value |\n|---|---|\n" + "\n".join(rows) + "\n"


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _text(value: str) -> str:
    """A string in YAML, whose quoted form is that of JSON."""
    return json.dumps(value, ensure_ascii=False)
