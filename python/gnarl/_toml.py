"""Run files written from dicts: TOML, of which Python's library reads alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def to_toml(value: Any) -> str:
    """A value as TOML: a mapping as a document, anything else as the value of a key.

    Raises:
        TypeError: If it is of a type that TOML lacks.
    """
    if isinstance(value, Mapping):
        return "".join(_lines(value, ()))
    return _inline(value)


def _lines(table: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """The lines of a table: its own values first, then those of tables within."""
    own = {key: value for key, value in table.items() if not isinstance(value, Mapping) and value is not None}
    lines = [f"[{'.'.join(map(_key, names))}]\n"] if names and own else []
    lines += [f"{_key(key)} = {_inline(value)}\n" for key, value in own.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _lines(value, (*names, key))
    return lines


def _key(key: str) -> str:
    plain = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if plain else json.dumps(key)


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_inline(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    path = getattr(value, "path", None)
    if isinstance(path, str):
        # A dataset or a run stands for its folder.
        return json.dumps(path, ensure_ascii=False)
    item = getattr(value, "item", None)
    if callable(item):
        return _inline(item())
    raise TypeError(f"a run file cannot hold a {type(value).__name__}")
