"""``python -m forebay``: the command ``forebay``, for a Python whose scripts are not on the PATH."""

from __future__ import annotations

import sys

from forebay.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
