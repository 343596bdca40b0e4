"""Files that commands write: what cannot be written, or is another's, is refused before the work that it is for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from forebay.cli.failure import CommandError, writing

HEAD = 1024
"""Bytes of a file that tell whose it is."""


def check_place(path: str | os.PathLike[str]) -> None:
    """Looks whether a file can be written there; nothing is written.

    Raises:
        CommandError: there is no such folder, it is a folder itself, or it may not be written.
    """
    place = Path(path).absolute()
    with writing(path):
        if not place.parent.is_dir():
            raise CommandError(f"{path} cannot be written: there is no such folder")
        if place.is_dir():
            raise CommandError(f"{path} cannot be written: Is a directory")
        if not os.access(place if place.exists() else place.parent, os.W_OK):
            raise CommandError(f"{path} cannot be written: Permission denied")


def check_output(path: str | os.PathLike[str], own: re.Pattern[bytes], what: str) -> None:
    """As ``check_place``; a file that is there must be empty, or one that the command has written.

    Args:
        own: how such a file begins.
        what: such a file is.

    Raises:
        CommandError: it cannot be written, or is another's.
    """
    check_place(path)
    if not Path(path).is_file():  # a terminal or a pipe has nothing to lose
        return
    with writing(path), Path(path).open("rb") as file:
        head = file.read(HEAD)
    if head and not own.match(head):
        raise CommandError(f"{path} is there already, and is no {what}; name another file")
