"""The compiled form against the interpreted one: the same bytes of whole batches, and the same words for errors.

Both forms make batches of the same random and boundary rows, the interpreted one in a process of its own, half of them
by ``send_batch`` and half by ``send``.  Compression is on for some, and every kind of refusal is met.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forebay
from forebay._records.reader import read_batches
from tests.property.forms import digests, made_of
from tests.property.profile import SEED
from tests.support.examples import cases
from tests.support.pace import HANG_S

ROOT = Path(__file__).parents[2]
TABLES = cases(1000)
WANTED = TABLES * 20


@pytest.mark.sized
@pytest.mark.skipif(
    forebay.implementation != "compiled", reason="compares the compiled form, and starts the interpreted one itself"
)
def test_both_forms_write_the_same_batches_and_refuse_with_the_same_words() -> None:
    first = SEED % 1_000_000
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "FOREBAY_INTERPRETED": "1", "PYTHONPATH": path}
    command = [sys.executable, "-m", "tests.property.forms", str(first), str(TABLES)]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        mine = list(digests(first, TABLES))
        theirs = (other.communicate(timeout=HANG_S)[0]).splitlines()
    assert other.returncode == 0
    assert [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]][:3] == []
    assert sum(int(line.split()[1]) for line in mine) >= WANTED
    kinds = {line.split(" ", 3)[3].partition(":")[0] for line in mine}
    assert {"", "IllegalArgumentError", "RecordTooLargeError", "KafkaTimeoutError", "TypeError"} <= kinds


@pytest.mark.parametrize("seed", range(SEED % 1_000_000, SEED % 1_000_000 + 60))
def test_a_strict_reader_finds_nothing_wrong_with_them(seed: int) -> None:
    batches, error = made_of(seed)
    found = [batch for made in batches for batch in read_batches(made)]
    assert len(found) == len(batches)
    assert all(batch.count > 0 for batch in found)
    assert batches or error
