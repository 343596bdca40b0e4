"""The garbage collector held off: as it was before, afterwards."""

from __future__ import annotations

import gc

import pytest

from forebay._codec._collector import pause_collector, resume_collector


@pytest.mark.parametrize("on", [True, False])
def test_it_is_afterwards_as_it_was_before(on: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        state = pause_collector()
        assert not gc.isenabled()
        resume_collector(state)
        assert gc.isenabled() is on
    finally:
        (gc.enable if was else gc.disable)()
