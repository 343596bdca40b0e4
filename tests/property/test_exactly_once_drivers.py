"""Two drivers at work at once, attempts of stages, speculation, zombies, time-outs and ids that expire.

``tests/property/exactly_once.py`` plays them in every order that a few switches can make.  The rules as they were
(``exactly_once_before.py``) have to be refuted: else this could not fail.
"""

from __future__ import annotations

import pytest

from forebay.spark.exactly_once.protocol import Write
from tests.property.exactly_once import (
    DOUBLED,
    ENDS_NEWER,
    HOLDS_READERS,
    LAST,
    LOST_IS_READ,
    TAKEN_UNSETTLED,
    Explorer,
    Life,
    Schedule,
    Setting,
    Zombie,
    play,
)
from tests.property.exactly_once_before import Before

ONE, TWO = Write("query", 0), Write("query", 1)
STAGE = Setting((Life("A", (ONE,)),), (Zombie("Z", "A", 0, 0),))
"""A zombie of a stage's earlier attempt: Spark has begun the numbers of attempts again."""
SPECULATION = Setting((Life("A", (ONE,)),), (Zombie("Z", "A", 1, 1),))
STALE = Setting((Life("A", (ONE,)), Life("B", (ONE, TWO))))
"""A driver, and its successor."""


@pytest.mark.parametrize("version", [1, 2])
def test_before_a_zombie_of_a_stages_attempt_doubled_rows(version: int) -> None:
    found = Explorer(STAGE._replace(version=version), Before, switches=1).run().found
    assert {DOUBLED, LOST_IS_READ, TAKEN_UNSETTLED} <= set(found)


def test_before_an_expired_id_doubled_rows() -> None:
    setting = Setting((Life("A", (ONE,)),), expiry=True)
    assert DOUBLED in Explorer(setting, Before, switches=1).run().found


@pytest.mark.parametrize("version", [1, 2])
def test_before_a_speculative_copy_held_readers(version: int) -> None:
    found = Explorer(SPECULATION._replace(version=version), Before, switches=1).run().found
    assert HOLDS_READERS in found


# A lists what is open when B has decided, and fences it by name when B has committed it.  B dies, and the next driver
# takes the refusal of its own commit for a loss.
STALE_DRIVER: Schedule = ((2, "B"), (14, "A"), (16, "B"), (18, "A"), (19, LAST))


@pytest.mark.parametrize("version", [1, 2])
def test_before_a_stale_driver_ended_its_successors_transactions(version: int) -> None:
    found = Explorer(STALE._replace(version=version), Before, switches=2).run(until=ENDS_NEWER).found
    assert ENDS_NEWER in found


def test_before_a_stale_driver_doubled_rows() -> None:
    assert DOUBLED in play(STALE, Before(), STALE_DRIVER).found
