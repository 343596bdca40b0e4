"""The bare exchange: a figure that a system call or two cannot fall below, and the same for many as for few."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from bench import exchange
from bench.exchange import ANSWER, REQUEST, bare_exchange, python_exchange


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (shutil.which("cc") or shutil.which("gcc")),
    reason="needs Linux and a C compiler",
)
def test_it_tells_the_time_of_one() -> None:
    with bare_exchange() as run:
        assert run is not None
        assert 1 < run(200) < 100_000


def test_two_python_threads_tell_theirs_of_the_same_bytes() -> None:
    assert 1 < python_exchange(200) < 100_000
    source = Path(exchange.__file__).with_suffix(".c").read_text()
    assert f"REQUEST = {sum(REQUEST)}, ANSWER = {ANSWER}" in source
    assert [int(size) for size in re.findall(r"{bytes, (\d+)}", source)] == list(REQUEST)


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with bare_exchange() as run:
        assert run is None
