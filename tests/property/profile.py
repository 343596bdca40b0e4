"""How far Hypothesis goes: the same examples in every run of the test command, more of them when asked.

``FOREBAY_HYPOTHESIS=long`` takes many times as many examples; ``FOREBAY_FUZZ_SEED`` (a number, or ``random``) makes
them others.  The seed is noted with a failure.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, note, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize

from tests.property.frames import printed_seed

Test = TypeVar("Test", bound=Callable[..., Any])

LONG = 40 if os.environ.get("FOREBAY_HYPOTHESIS") == "long" else 1
SEED = printed_seed()


class SeededMachine(RuleBasedStateMachine):
    """A state machine whose failures say which seed brings them back."""

    @initialize()
    def say_the_seed(self) -> None:
        note(f"FOREBAY_FUZZ_SEED={SEED}")


def test_case(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> type[unittest.TestCase]:
    """The test class of a state machine, with ``examples`` runs of up to ``steps`` rules in the test command."""
    seed(SEED)(machine)
    found: type[unittest.TestCase] = machine.TestCase
    found.settings = settings(profile(examples), stateful_step_count=steps)  # type: ignore[attr-defined]
    return found


def seeded(examples: int) -> Callable[[Test], Test]:
    """For a ``@given`` test: ``examples`` in the test command, the same ones in every run."""

    def decorate(test: Test) -> Test:
        return profile(examples)(seed(SEED)(test))

    return decorate


def profile(examples: int) -> settings:
    """What both have in common."""
    return settings(
        max_examples=examples * LONG,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


test_case.__test__ = False  # type: ignore[attr-defined]
