"""Exceptions: one class for each kind of failure."""

from __future__ import annotations

import re

#: Options that take no value.
_FLAGS = {"force", "restart", "resume", "reverse", "symmetrize", "impute-indicator", "buckets", "open-to-everyone"}
#: Commands in quotes, settings, and other options with or without a value; words that are none follow in sentences.
_OPTION = re.compile(
    r"(?P<command>'gnarl [^']*')"
    r"|--set (?P<key>[\w.]+)=(?P<setting>[\w.\"-]+)"
    r"|--(?P<name>[a-z][a-z-]*)(?: (?!(?:or|and|to|with|has|names|name|stores|gives|keeps|drops|is|are|goes|too|an?|the|one|of)(?:[ ,.?]|$))"
    r"(?P<value>[\w.:=-]*\w))?"
)


class Error(Exception):
    """A failure of gnarl: what was being done, what went wrong, and a hint where there is one."""

    hint: str | None

    def __init__(self, message: str, hint: str | None = None) -> None:
        hint = None if hint is None else _OPTION.sub(_as_keyword, hint)
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


def _as_keyword(found: re.Match[str]) -> str:
    """An option of the command line as the keyword of a function."""
    if found["command"]:
        return found["command"]
    if found["key"]:
        return f'settings={{"{found["key"]}": {found["setting"]}}}'
    name = found["name"].replace("-", "_")
    if found["name"] in _FLAGS:
        rest = found["value"]
        return f"{name}=True" if rest is None else f"{name}=True {rest}"
    value = found["value"]
    if value is None:
        return f"{name}=…"
    return f"{name}={value}" if value.isdigit() else f"{name}={value!r}"


class UsageError(Error, ValueError):
    """Something was asked for that does not exist."""


class DataError(Error, ValueError):
    """The content of a file is invalid."""


class IoError(Error, OSError):
    """The system reported an error: a missing file, no permission, a full disk."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        Error.__init__(self, message, hint)


class LimitError(Error, MemoryError):
    """A stated limit of memory or size does not suffice."""


class RankError(Error):
    """A rank missed its deadline, or left."""


class CommandError(Error):
    """A command failed; ``code`` is its exit code."""

    code: int

    def __init__(self, message: str, hint: str | None = None, code: int = 1) -> None:
        super().__init__(message, hint)
        self.code = code
