"""What the machine gives, where a test gives nothing."""

from __future__ import annotations

from forebay._assembly import system_surroundings


def test_the_machine_s_surroundings() -> None:
    around = system_surroundings()
    assert 0 <= around.random() < 1
    assert around.clock.now() > 0
