"""The bare exchange: a figure that a system call or two cannot fall below, and the same for many as for few."""

from __future__ import annotations

import shutil
import sys

import pytest

from bench.exchange import bare_exchange


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (shutil.which("cc") or shutil.which("gcc")),
    reason="needs Linux and a C compiler",
)
def test_it_tells_the_time_of_one() -> None:
    with bare_exchange() as exchange:
        assert exchange is not None
        assert 1 < exchange(200) < 100_000


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with bare_exchange() as exchange:
        assert exchange is None
