"""The command line: ``python -m gnarl``, or ``gnarl`` where the package is installed."""

from __future__ import annotations

import signal
import sys

from gnarl import _gnarl


def main() -> None:
    """Runs the command in ``sys.argv`` and ends the process with its exit code."""
    # Of signals the command hears itself; the interpreter's own handler would raise once it has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_gnarl.run_command(["gnarl", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
