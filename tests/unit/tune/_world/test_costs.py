"""What the client's own work takes."""

from __future__ import annotations

import pytest

from forebay.errors import ConfigError
from forebay.tune._world.costs import Costs
from tests.support.costs import NO_COSTS


def test_a_turn_costs_itself_its_requests_and_its_batches() -> None:
    assert Costs(turn=1, request=10, batch=100).of_turn(2, 3) == 321
    assert NO_COSTS.of_turn(2, 3) == 0


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="costs wake is -1"):
        Costs(wake=-1)
