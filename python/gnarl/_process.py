"""The purpose of this process."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence


def is_command(argv: Sequence[str], words: Sequence[str]) -> bool:
    """True in a process that runs a command: ``python -m gnarl`` or the script ``gnarl``.

    Args:
        argv: ``sys.argv`` while the package is imported.
        words: The words that the interpreter was started with, ``sys.orig_argv``.
    """
    script = os.path.basename(argv[0]) if argv else ""
    if script != "-m":
        return script in ("gnarl", "gnarl.exe")
    # Other modules that import this package are found at this time, too. Options may be joined: -um gnarl, -mgnarl;
    # those of -X, -W and -c are words of their own.
    for word, following in zip(words[1:], [*words[2:], ""], strict=True):
        if found := re.fullmatch("-[abd-ln-zA-VYZ]*m(.*)", word):
            return (found[1] or following) == "gnarl"
    return False
