"""Looks up which dependencies have wheels on all platforms of forebay's own: ``python -m tools.wheels.platforms``.

pip resolves the dependencies, and theirs, for each platform and version of Python, from wheels alone, and installs
nothing.  A dependency that everybody gets and that has no wheel somewhere is an error.  ``--extras`` also shows the
extras' packages, which may lack wheels.  It needs a package index.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "manylinux_2_28_x86_64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "manylinux_2_28_aarch64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "musllinux_1_2_x86_64": ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"),
    "musllinux_1_2_aarch64": ("musllinux_1_2_aarch64", "musllinux_1_1_aarch64"),
    "macosx_x86_64": ("macosx_13_0_x86_64",),
    "macosx_arm64": ("macosx_13_0_arm64",),
}
"""Our platforms, with the tags that a system of each takes; pip does not derive the older ones."""
OF_USERS = ("cli", "lz4", "spark", "avro", "protobuf", "testing", "pkcs12", "aws")
"""The extras that users install."""


def has_wheels(requirement: str, tags: Iterable[str], version: str) -> bool:
    """Whether pip finds wheels of the requirement and of all that it requires."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-cache-dir"]
    command += [
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--implementation=cp",
        "--python-version",
        version,
    ]
    command += [f"--platform={tag}" for tag in tags]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "--target", folder, requirement], capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution found" not in done.stderr + done.stdout:
        raise SystemExit(f"pip says neither yes nor no of {requirement}: {done.stderr.strip()[-500:]}")
    return not done.returncode


def table(
    requirements: list[str], look_up: Callable[[str, Iterable[str], str], bool]
) -> list[tuple[str, str, list[str]]]:
    """Rows of a requirement, a platform, and the Pythons that have no wheel there."""
    return [
        (requirement, platform, [version for version in VERSIONS if not look_up(requirement, tags, version)])
        for requirement in requirements
        for platform, tags in PLATFORMS.items()
    ]


def show(rows: list[tuple[str, str, list[str]]]) -> None:
    for requirement, platform, missing in rows:
        print(f"{requirement:40} {platform:24} {'none for ' + ', '.join(missing) if missing else 'yes'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", action="store_true", help="show the extras' packages, too")
    arguments = parser.parse_args()
    hard = table(runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["dependencies"](False), has_wheels)
    show(hard)
    if arguments.extras:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        show(table(sorted({requirement for extra in OF_USERS for requirement in extras[extra]}), has_wheels))
    if missing := [row for row in hard if row[2]]:
        sys.exit(f"{len(missing)} rows of what everybody gets have no wheel: make it an extra")


if __name__ == "__main__":
    main()
