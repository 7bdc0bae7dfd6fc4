"""The safetensors format: the length of a header in eight bytes, the header in JSON, and the values."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnarl._errors import DataError

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
#: Longest header that is read: that of the format's own library.
_LONGEST = 100_000_000


def read_tensors(path: str | os.PathLike[str]) -> dict[str, NDArray[np.float32]]:
    """All tensors of a file by name, as float32. Those stored as float32 are mapped and cannot be written to.

    Raises:
        DataError: If the file is damaged, or holds other numbers than F32, F16 and BF16.
    """
    place = Path(path)
    header, begin = _header(place)
    size = place.stat().st_size - begin
    return {name: _tensor(place, name, entry, begin, size) for name, entry in header.items() if name != "__metadata__"}


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The notes of gnarl about a model beside its tensors: ``version``, ``task``, ``model``, ``classes``, ``dataset``.

    Raises:
        DataError: If the file is damaged.
    """
    header, _ = _header(Path(path))
    text = (header.get("__metadata__") or {}).get("gnarl")
    found: dict[str, Any] = json.loads(text) if text is not None else {}
    return found


def _header(place: Path) -> tuple[dict[str, Any], int]:
    with place.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(_LONGEST, place.stat().st_size):
            raise DataError(f"{place}: not a safetensors file, or cut off")
        text = file.read(length)
    try:
        header = json.loads(text)
    except ValueError as error:
        raise DataError(f"{place}: the header is damaged: {error}") from error
    if not isinstance(header, dict):
        raise DataError(f"{place}: the header is damaged: expected an object")
    return header, 8 + length


def _tensor(place: Path, name: str, entry: Any, begin: int, size: int) -> NDArray[np.float32]:
    try:
        kind = entry["dtype"]
        shape = tuple(int(length) for length in entry["shape"])
        first, end = entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place}: the entry of tensor '{name}' is damaged") from error
    if kind not in _DTYPES:
        raise DataError(f"{place}: tensor '{name}' is of type {kind}", f"known: {', '.join(_DTYPES)}")
    dtype = _DTYPES[kind]
    count = int(np.prod(shape, dtype=np.int64))
    if not 0 <= first <= end <= size or end - first != count * dtype.itemsize:
        raise DataError(f"{place}: tensor '{name}' lies outside the file, or has another size than its shape")
    if count == 0:
        return np.zeros(shape, np.float32)
    values: NDArray[Any] = np.memmap(place, dtype=dtype, mode="r", offset=begin + first, shape=(count,))
    if kind == "BF16":
        # Its bits are the upper half of those of float32.
        values = (values.astype(np.uint32) << 16).view(np.float32)
    found: NDArray[np.float32] = values.astype(np.float32, copy=False).reshape(shape)
    return found
