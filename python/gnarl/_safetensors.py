"""The safetensors format: the length of a header in eight bytes, the header in JSON, and the values."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnarl._errors import DataError

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_METADATA = "__metadata__"
#: Longest header that is read: that of the format's own library.
_LONGEST = 100_000_000
#: Bytes that are read at a time.
_PIECE = 1 << 20


def read_tensors(path: str | os.PathLike[str]) -> dict[str, NDArray[np.float32]]:
    """All tensors of a file by name, as float32. Those stored as float32 are mapped and cannot be written to.

    The checksum that gnarl writes is compared, if the file has one.

    Raises:
        DataError: If the file is damaged, or holds other numbers than F32, F16 and BF16.
    """
    place = Path(path)
    header, begin = _header(place)
    size = place.stat().st_size - begin
    found = {name: _tensor(place, name, entry, begin, size) for name, entry in header.items() if name != _METADATA}
    _check(place, header, begin)
    return found


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The notes of gnarl about a model beside its tensors: ``version``, ``task``, ``model``, ``classes``, ``dataset``.

    Raises:
        DataError: If the file is damaged.
    """
    header, _ = _header(Path(path))
    text = (header.get(_METADATA) or {}).get("gnarl")
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


def _check(place: Path, header: dict[str, Any], begin: int) -> None:
    """Compares the checksum: of names, lengths and contents, of metadata and then of tensors, by name."""
    metadata = header.get(_METADATA) or {}
    if "crc32" not in metadata:
        return
    found = 0
    for name in sorted(set(metadata) - {"crc32"}):
        text = metadata[name].encode()
        found = zlib.crc32(f"{name} {len(text)} ".encode() + text, found)
    with place.open("rb") as file:
        for name in sorted(set(header) - {_METADATA}):
            first, end = header[name]["data_offsets"]
            found = zlib.crc32(f"{name} {end - first} ".encode(), found)
            file.seek(begin + first)
            while first < end:
                piece = file.read(min(_PIECE, end - first))
                found = zlib.crc32(piece, found)
                first += len(piece)
    if metadata["crc32"] != f"{found:08x}":
        hint = "copy the run's folder from elsewhere; if a program converted it, remove the entry crc32 of its metadata"
        raise DataError(f"{place}: the file is damaged: its checksum differs", hint)


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
