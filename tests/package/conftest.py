"""The package as users get it: a wheel, built from a copy of the sources, in an environment of its own.

It is built without a compiler, as what the tests look at is the same in both forms.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE")
# Of the extras: modules that take part in the types of what forebay has for them.
OF_EXTRAS = ("click", "opentelemetry", "prometheus_client", "pyspark", "py4j", "rich")


@pytest.fixture(scope="session")
def source_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build reads, so that no build meets another one's files."""
    copy = tmp_path_factory.mktemp("sources")
    built = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=built)
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def wheel(source_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, "."],
        cwd=source_tree,
        env={**os.environ, "FOREBAY_INTERPRETED": "1"},
        check=True,
    )
    (built,) = folder.glob("forebay-*.whl")
    return built


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and what the extras bring; no Cython, no tools."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", str(wheel)], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    for name in OF_EXTRAS:
        found = importlib.util.find_spec(name)
        assert found is not None and found.submodule_search_locations
        # The first folder: several distributions share that of opentelemetry.
        (packages / name).symlink_to(found.submodule_search_locations[0])
    return home
