"""What this process is for."""

from __future__ import annotations

import os
from collections.abc import Sequence


def is_command(argv: Sequence[str], words: Sequence[str]) -> bool:
    """True in a process that runs a command: ``python -m gnarl`` or the script ``gnarl``.

    Args:
        argv: ``sys.argv`` while the package is imported.
        words: The words that the interpreter was started with, ``sys.orig_argv``.
    """
    script = os.path.basename(argv[0]) if argv else ""
    if script == "-m":
        # Other modules that import this package are found at this time, too.
        return list(words[words.index("-m") + 1 :][:1]) == ["gnarl"] if "-m" in words else False
    return script in ("gnarl", "gnarl.exe")
