from __future__ import annotations

from collections.abc import Iterator

from bench import quiet


def test_it_waits_until_the_load_is_low() -> None:
    loads = iter([2.0, 0.8, quiet.LOAD, 0.4])
    slept: list[float] = []
    assert quiet.wait_for_load(lambda: next(loads), slept.append)
    assert slept == [quiet.WAIT_S] * 3


def test_it_does_not_wait_for_ever() -> None:
    slept: list[float] = []
    assert not quiet.wait_for_load(lambda: quiet.LOAD, slept.append)
    assert len(slept) == quiet.LOAD_WAITS


def sends(*rates: float) -> Iterator[float]:
    yield from rates


def test_a_send_is_repeated_until_one_is_near_the_median() -> None:
    given = sends(10, 10, 10, 10, 8, 8, 9.5, 10)
    assert quiet.steady(lambda: next(given)) == (10, True)
    assert next(given) == 10, "it stops at the first one that is near"


def test_a_machine_that_never_is_steady_is_told_of() -> None:
    count = 0

    def send() -> float:
        nonlocal count
        count += 1
        return 2.0**count

    assert not quiet.steady(send)[1] and count == quiet.MOST_SENDS
