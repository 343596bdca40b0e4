"""``forebay`` and ``python -m forebay.cli``: says what to install where the extra ``cli`` is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from forebay.cli.failure import INTERRUPTED, PREFIX, USAGE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (``sys.argv`` where none is given); returns the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started it (``>&-``)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 -- until the process ends
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(f"{PREFIX}the command line needs {' and '.join(missing)}: pip install 'forebay[cli]'\n")
        return USAGE
    try:
        from forebay.cli.commands import execute

        return execute(arguments)
    except KeyboardInterrupt:  # while modules are loaded
        sys.stderr.write(f"{PREFIX}interrupted\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
