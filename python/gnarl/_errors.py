"""Exceptions: one class for each kind of failure."""

from __future__ import annotations


class Error(Exception):
    """A failure of gnarl: what was being done, what went wrong, and a hint where there is one."""

    hint: str | None

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


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
