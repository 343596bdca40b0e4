"""``buffer.memory`` is the truth: the peak of resident memory over the idle producer, in processes of their own.

Few cases of ``python -m bench memory``, at its small size; the limit is the same.  Brokers are frozen while the buffer
fills, and more is sent afterwards.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import forebay
from bench.memory import CASES, MIB, SLACK, limit_of, measure

SMALL = 16 * MIB
CHOSEN = (
    "10 B, a closure a record",
    "100 B of zeros, zstd, callback",
    "200 KiB, callback",
    "100 B, batch.size 1",
    "100 B, 10,000 partitions, closure",
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak is reset through /proc")


@pytest.mark.parametrize("name", CHOSEN)
def test_the_peak_stays_within(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = str(Path(forebay.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", source, prepend=os.pathsep)
    (case,) = [case for case in CASES if case.name == name]
    found = measure(case, SMALL, 2)
    assert found["held"] > 20 and found["sent"] > found["held"], "the buffer was never full"
    assert found["peak_kib"] * 1024 <= limit_of(SMALL, case.partitions), found
    assert limit_of(SMALL, 10) == SMALL + SLACK + 20480
