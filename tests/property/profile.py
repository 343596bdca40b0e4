"""How far Hypothesis goes: the same examples in every run of a test command.

``FOREBAY_EXAMPLES`` says how many (``tests/support/examples.py``); ``FOREBAY_FUZZ_SEED`` (a number, or ``random``)
makes them others.  The seed is noted with a failure.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, note, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize

from tests.property.frames import printed_seed
from tests.support.examples import examples

Test = TypeVar("Test", bound=Callable[..., Any])

SEED = printed_seed()


class SeededMachine(RuleBasedStateMachine):
    """A state machine whose failures say which seed brings them back."""

    @initialize()
    def say_the_seed(self) -> None:
        note(f"FOREBAY_FUZZ_SEED={SEED}")


def test_case(machine: type[RuleBasedStateMachine], *, runs: int, steps: int) -> type[unittest.TestCase]:
    """The test class of a state machine, with ``runs`` of up to ``steps`` rules when it runs whole."""
    seed(SEED)(machine)
    found: type[unittest.TestCase] = machine.TestCase
    found.settings = settings(profile(runs), stateful_step_count=steps)  # type: ignore[attr-defined]
    return found


def seeded(runs: int) -> Callable[[Test], Test]:
    """For a ``@given`` test: ``runs`` when it runs whole, the same ones each time."""

    def decorate(test: Test) -> Test:
        return profile(runs)(seed(SEED)(test))

    return decorate


def profile(runs: int) -> settings:
    """What both have in common."""
    return settings(
        max_examples=examples(runs),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


test_case.__test__ = False  # type: ignore[attr-defined]
