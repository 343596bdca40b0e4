"""A time without root's rights, which read every file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Files of mode 0 cannot be read inside, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that ``as_nobody`` reaches, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="forebay-test-") as name:
        os.chmod(name, 0o755)
        yield Path(name)
