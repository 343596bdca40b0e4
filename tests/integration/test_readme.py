"""README as a stranger uses it: each block alone, pasted as it stands.  Those with Spark are in tests/spark."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import pytest

from tests.integration.workload import WAIT_S
from tests.support.fixtures import Broker
from tests.support.readme import README, ROOT, Snippet, run, snippets
from tools.ports import free_ports

# Warnings of what passes: a real broker that makes a new topic, or still ends the last transaction.
EXPECTED = re.compile(r"Error while fetching metadata: .*UNKNOWN_TOPIC_OR_PARTITION|Got error .*, retrying \(")
PYTHON = [snippet for snippet in snippets() if snippet.language == "python" and not snippet.needs_spark()]
SHELL = [snippet for snippet in snippets() if snippet.language == "sh" and not snippet.needs_spark()]


def test_every_block_is_of_a_kind_that_is_run() -> None:
    """Here or in tests/spark/test_readme.py."""
    assert {snippet.language for snippet in snippets()} == {"python", "sh"}
    assert len(PYTHON) >= 3 and len(SHELL) >= 3


@pytest.mark.parametrize("snippet", PYTHON, ids=str)
def test_python(snippet: Snippet, any_broker: Broker, tmp_path: Path) -> None:
    done = run(snippet, tmp_path, any_broker.bootstrap_servers, WAIT_S)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not EXPECTED.search(line)] == []
    assert done.stdout.strip() and "lost" not in done.stdout, done.stdout


@pytest.mark.parametrize("snippet", [one for one in snippets() if one.language == "python"], ids=str)
def test_python_can_be_pasted_into_an_interactive_interpreter(snippet: Snippet) -> None:
    """There an empty line ends a block, and nothing else does; newer ones take more."""
    lines = snippet.text.splitlines()
    for node in ast.parse(snippet.text).body:
        inside = lines[node.lineno - 1 : node.end_lineno]
        if hasattr(node, "body"):
            assert "" not in inside
            assert lines[node.end_lineno or 0 :][:1] in ([""], []), inside[-1]


@pytest.mark.parametrize("snippet", SHELL, ids=str)
def test_shell(snippet: Snippet) -> None:
    """Each line by what it begins with; what cannot be run here (this test is part of it) is looked up."""
    for line in snippet.text.splitlines():
        command = line.partition("  #")[0].strip()
        kind = " ".join(command.split()[:2])
        CHECKS[kind](command)


def make(command: str) -> None:
    done = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr


def pip_install(command: str) -> None:
    found = re.fullmatch(r"pip install '\.\[([\w,]+)\]'", command)
    assert found is not None, command
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(found[1].split(",")) <= set(project["optional-dependencies"])


def broker(command: str) -> None:
    [port] = free_ports(1)
    words = command.replace("9092", str(port)).split()
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=ROOT / "src", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert str(port) in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.communicate()


def tune(command: str) -> None:
    """In a folder of its own, beside a small load."""
    with tempfile.TemporaryDirectory() as folder:
        if "init" not in command:
            (Path(folder) / "load.toml").write_text("[load]\nrate = 100\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", *command.split()], cwd=folder, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


CHECKS = {
    "make demo": make,
    "make test": make,
    "pip install": pip_install,
    "forebay broker": broker,
    "forebay tune": tune,
}


def test_it_has_no_links_that_end_at_the_repository() -> None:
    """It is shown by package registries, too, where nothing lies beside it."""
    targets = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_the_files_it_names_are_in_the_source_distribution(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
    built = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "sdist"],
        cwd=tree,
        env={**os.environ, "FOREBAY_INTERPRETED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (archive,) = (tree / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    wanted = {"CHANGELOG.md", "CONTRIBUTING.md", "DESIGN.md", "LICENSE", "Makefile", "README.md", "SECURITY.md"}
    wanted |= {"demo/flights.toml", "bench/__main__.py"}
    named = set(re.findall(r"`([\w/]+\.md)`", README.read_text(encoding="utf-8")))
    assert named >= {"CHANGELOG.md", "DESIGN.md", "docs/measurements.md"}
    assert (wanted | named) - names == set()
