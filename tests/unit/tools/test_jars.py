"""Why there are no jars: each reason is one line that names what is missing."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tools.kafka.jars as module
from tools.kafka import JarsUnavailable, ensure_jars


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and a path with nothing on it."""
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def maven(folder: Path, script: str) -> None:
    """Puts a Maven on the path that does what the Python lines say; ``options`` are its arguments."""
    file = folder / "mvn"
    file.write_text(f"#!{sys.executable}\nimport pathlib, sys\noptions = sys.argv[1:]\n{script}\n")
    file.chmod(0o755)


def test_no_maven(folder: Path) -> None:
    with pytest.raises(JarsUnavailable, match=r"no jars of Kafka 1\.2\.3 in .*cache, and no Maven \(mvn\)"):
        ensure_jars("1.2.3")


def test_no_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JarsUnavailable, match="there is no java in the path"):
        module.java()
    monkeypatch.setenv("JAVA_HOME", str(folder))
    with pytest.raises(JarsUnavailable, match=f"there is no java in JAVA_HOME={folder}"):
        module.java()


def test_mavens_own_reason_is_shown_and_nothing_is_left(folder: Path) -> None:
    maven(folder, 'print("[INFO] hm\\n[ERROR] could not resolve it"); sys.exit(1)')
    with pytest.raises(JarsUnavailable, match=r"the jars of Kafka 1\.2\.3: could not resolve it$"):
        ensure_jars("1.2.3")
    assert list((folder / "cache").iterdir()) == []


FETCHES = """
target = pathlib.Path(next(o for o in options if o.startswith('-DoutputDirectory=')).partition('=')[2])
with open(LOG, "a") as log:
    log.write(f"{'--offline' in options} {'-Dkafka.version=1.2.3' in options}\\n")
if '--offline' in options: sys.exit(1)
target.mkdir(parents=True)
(target / 'kafka-clients-1.2.3.jar').touch()
"""


@pytest.mark.parametrize("asked", [1, 4])
def test_jars_are_fetched_once_and_offline_first(folder: Path, asked: int) -> None:
    """Also if several want them at once: all but one wait."""
    maven(folder, f"LOG = {str(folder / 'log')!r}{FETCHES}")
    with ThreadPoolExecutor(asked) as pool:
        found = set(pool.map(ensure_jars, ["1.2.3"] * asked))
    (jars,) = found
    assert jars == ensure_jars("1.2.3") == folder / "cache" / "1.2.3"
    assert [file.name for file in jars.iterdir()] == ["kafka-clients-1.2.3.jar"]
    assert (folder / "log").read_text() == "True True\nFalse True\n"
