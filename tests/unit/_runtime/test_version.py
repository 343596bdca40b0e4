"""The one place of the version, as the build reads it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import forebay
from forebay._runtime.version import VERSION


def test_the_build_takes_the_version_from_here() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "forebay._runtime.version.VERSION"}
    assert "version" in project["project"]["dynamic"]
    assert forebay.__version__ == VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", VERSION)
