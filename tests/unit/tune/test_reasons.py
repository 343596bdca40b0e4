"""Sentences: the cause that the measures have, the effect and the price of the simulation, each number beside them."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from forebay._closed_forms.estimate import estimate
from forebay._closed_forms.node import MIB, NodeCost, NodeLoad, Settings
from forebay._closed_forms.wording import Facts, plain, size
from forebay.tune.figures import Broken, Figures, Objective
from forebay.tune.outages import Outage
from forebay.tune.racing import Paired
from forebay.tune.reasons import Reason, Reasons
from forebay.tune.search import Outcome, Trial

DEFAULTS = Settings()
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?")
NAMES = re.compile(r"\bp\d\d\b")
ONE_SIZE = ((108.0, 1.0),)
SLOW = [(NodeLoad(100, ONE_SIZE, (1.0,) * 4), NodeCost(0.5, fixed)) for fixed in (0.4, 0.4, 8.0)]
BEFORE = Figures(44, 48, 300, memory=100_000, bytes=50_000)
AFTER = Figures(18, 23, 228, memory=100_500, bytes=50_000)

Nodes = list[tuple[NodeLoad, NodeCost]]


def outcome(best: Settings, *, present: Settings = DEFAULTS, after: Figures = AFTER, **others: object) -> Outcome:
    made: dict[str, object] = {
        "verdict": "change",
        "settings": best,
        "best": best,
        "present": present,
        "defaults": DEFAULTS,
        "figures": {DEFAULTS: BEFORE, present: BEFORE, best: after},
        "gains": {"present": Paired(0.4, 0.01, 5), "defaults": Paired(0.5, 0.01, 5)},
        "loss": 1.0,
        "trials": (),
        "failed": None,
        "front": (),
        "tried": (440, 14),
    }
    return Outcome(**(made | others))  # type: ignore[arg-type]


def reasons(
    found: Outcome, nodes: Nodes = SLOW, *, objective: Objective | None = None, outages: tuple[Outage, ...] = ()
) -> list[Reason]:
    before, after = estimate(nodes, found.present), estimate(nodes, found.best)
    made = Reasons(found, objective or Objective(), before, after, outages).all()
    for each in made:
        has_all_numbers(each)
    return list(made)


def has_all_numbers(reason: Reason) -> None:
    """Each number of the text is a value."""
    known = set()
    for value in reason.values.values():
        if isinstance(value, str):
            known.update(NUMBER.findall(value))
        else:
            forms = (plain(value), size(value), f"{100 * value:.3g}", f"{100 * value:+.3g}")
            known.update(number for form in forms for number in NUMBER.findall(form))
    assert set(NUMBER.findall(NAMES.sub("", reason.text))) <= known, reason


def test_a_line_at_one_broker() -> None:
    present = replace(DEFAULTS, linger_ms=0.0)
    nodes = [(replace(load, rate=112), cost) for load, cost in SLOW]
    (reason,) = reasons(outcome(replace(present, linger_ms=10.0, in_flight=2), present=present), nodes)
    assert reason.kind == "change"
    assert reason.cause == (
        "broker 3 serves one request in 8 ms, and 3 stand in its line, and a request takes along 1 ▸ 2.12 records"
    )
    assert reason.effect == "p99 48 ▸ 23 ms, p50 44 ▸ 18 ms, requests -24 %"
    assert reason.price == "no cost"
    assert reason.text == f"linger.ms 0 ▸ 10, in flight 5 ▸ 2: {reason.cause}; {reason.effect}, {reason.price}."
    assert reason.values["service_ms"] == pytest.approx(8, rel=0.01)
    assert (reason.values["requests_before"], reason.values["requests_after"]) == (300, 228)


def test_few_records_a_request_and_what_more_cost() -> None:
    nodes = [(NodeLoad(1000, ONE_SIZE), NodeCost(1.0, 0.4))]
    after = Figures(24, 52, 20, memory=100_000 + 2 * MIB, bytes=48_000)
    (reason,) = reasons(outcome(replace(DEFAULTS, linger_ms=50.0), after=after), nodes)
    assert reason.cause == "a request takes along 6 ▸ 51 records"
    assert reason.effect == "p50 44 ▸ 24 ms, requests -93.3 %, bytes -4 %"
    assert reason.price == "price: p99 48 ▸ 52 ms, 2 MiB of the pool more"


def test_a_batch_that_takes_one_of_two_sizes() -> None:
    nodes = [(NodeLoad(118, ((5010.0, 0.5), (12010.0, 0.5)), in_turn=True), NodeCost(1.0, 0.4))]
    present = replace(DEFAULTS, linger_ms=7.4)
    (reason,) = reasons(outcome(replace(present, batch_size=17_200), present=present), nodes)
    assert reason.text.startswith(
        "batch.size 16 KiB ▸ 16.8 KiB: a batch has room for 1 ▸ 2 records, and gets 1 ▸ 1.58;"
    )


def test_slots_that_answers_far_away_keep() -> None:
    nodes = [(NodeLoad(2000, ONE_SIZE, (1.0,) * 4), NodeCost(40.0, 0.5))]
    present = replace(DEFAULTS, in_flight=1)
    (reason,) = reasons(outcome(replace(present, in_flight=5), present=present), nodes)
    assert "with 1 in flight a record waits" in reason.cause and "answers after 40.5 ms" in reason.cause


def test_a_linger_that_is_most_of_the_latency() -> None:
    nodes = [(NodeLoad(1000, ONE_SIZE), NodeCost(1.0, 0.4))]
    present = replace(DEFAULTS, linger_ms=100.0)
    (reason,) = reasons(outcome(replace(present, linger_ms=5.0), present=present), nodes)
    assert reason.cause.startswith("a record waits 50.")
    assert reason.cause.endswith("for its batch to close")


def test_a_linger_where_more_comes_than_the_broker_takes() -> None:
    nodes = [(NodeLoad(1000, ONE_SIZE), NodeCost(1.0, 0.4)), (NodeLoad(10_000, ONE_SIZE, (1.0,)), NodeCost(90.0, 90.0))]
    before, after = (estimate(nodes, replace(DEFAULTS, linger_ms=linger)) for linger in (100.0, 5.0))
    found = Reasons(outcome(DEFAULTS), Objective(), before, after)
    facts = Facts()
    assert found.linger(facts, 1).endswith("for its batch to close, and more records come than broker 2 takes")
    assert all(math.isfinite(value) for value in facts.values.values() if isinstance(value, float))


def test_compression() -> None:
    nodes = [(NodeLoad(1000, ONE_SIZE), NodeCost(1.0, 0.4))]
    best = replace(DEFAULTS, compression="zstd", compression_ratio=0.25)
    (reason,) = reasons(outcome(best), nodes)
    assert reason.text.startswith("compression none ▸ zstd: zstd leaves 25 % of the bytes;")


def test_memory_and_timeout_for_an_outage() -> None:
    outages = (Outage((0,), 5000), Outage((2,), 150_000, election_ms=500))
    best = replace(DEFAULTS, buffer_memory=64 * MIB, delivery_timeout_ms=153_000.0)
    present = replace(DEFAULTS, buffer_memory=MIB // 16)
    memory, timeout = reasons(outcome(best, present=present), outages=outages)
    assert memory.kind == "memory"
    assert memory.text.startswith("buffer.memory 64 KiB ▸ 64 MiB: outage 2 of 150 s needs ")
    assert memory.price == "price: 63.9 MiB of memory"
    assert "send() does not wait" in memory.effect
    assert timeout.text.startswith("delivery.timeout.ms 120,000 ▸ 153,000: with ")
    assert timeout.price == "price: a failure is told later"


def test_memory_for_what_is_on_its_way() -> None:
    (reason,) = reasons(outcome(replace(DEFAULTS, buffer_memory=MIB)))
    assert reason.text.startswith("buffer.memory 32 MiB ▸ 1 MiB: ")
    assert reason.price == "no cost"


def test_what_has_no_room_below_a_limit_is_left() -> None:
    best = replace(DEFAULTS, linger_ms=20)
    found = outcome(best, verdict="leave", gains={"present": Paired(0.5, 0.01, 5)})
    (reason,) = reasons(found, objective=Objective(p99_ms=1.1 * AFTER.p99))
    assert reason.text.startswith("Leave it: linger.ms 5 ▸ 20 would be better (")
    assert reason.text.endswith(" ms, nearer to the limit than a prediction may be off by.")
    assert reason.values["value"] == AFTER.p99


def test_what_is_over_a_limit_is_left_and_told_so() -> None:
    best = replace(DEFAULTS, linger_ms=20)
    found = outcome(best, verdict="leave", gains={"present": Paired(0.5, 0.01, 5)})
    (reason,) = reasons(found, objective=Objective(p99_ms=22))
    assert reason.text.endswith("but p99 is 23 ms, and 22 are allowed.")
    assert (reason.values["value"], reason.values["allowed"]) == (AFTER.p99, 22)


def test_nothing_better_is_left() -> None:
    (reason,) = reasons(outcome(DEFAULTS, verdict="leave", gains={}))
    assert reason.text == ("Leave it: of 440 settings, 14 of them simulated, none is better than the present ones.")


def test_a_gain_that_is_too_small_is_told() -> None:
    best = replace(DEFAULTS, linger_ms=6.0)
    gains = {"present": Paired(0.03, 0.02, 5), "defaults": Paired(0.5, 0.02, 5)}
    (reason,) = reasons(outcome(best, verdict="leave", settings=DEFAULTS, gains=gains, loss=2.0))
    assert "linger.ms 5 ▸ 6, gains +1.5 % over the present settings, with a standard error of 1 %" in reason.text


def test_one_pair_of_runs_has_no_standard_error() -> None:
    best = replace(DEFAULTS, linger_ms=6.0)
    gains = {"present": Paired(-0.03, math.inf, 1)}
    (reason,) = reasons(outcome(best, verdict="leave", settings=DEFAULTS, gains=gains, loss=2.0))
    assert reason.text.endswith("over the present settings, with a standard error that one pair of runs does not tell.")


def test_a_trial_that_failed_is_told() -> None:
    best = replace(DEFAULTS, linger_ms=50.0)
    failed = Trial("a rate +30 %", AFTER, (Broken("p99_ms", 80, 81.4, 0.02),))
    (reason,) = reasons(outcome(best, verdict="leave", settings=DEFAULTS, failed=failed))
    assert reason.kind == "trial"
    assert reason.text.endswith("but fails a trial: a rate +30 %: p99 is 81.4 ms, and 80 are allowed.")


def test_a_limit_that_nothing_keeps_is_named_with_what_binds() -> None:
    best = replace(DEFAULTS, linger_ms=0.0)
    reason, change = reasons(outcome(best, verdict="unmet"), objective=Objective(p99_ms=6))
    assert reason.text == (
        "Nothing keeps the limits: the nearest is linger.ms 5 ▸ 0; p99 is 23 ms, and 6 are allowed; "
        "broker 3 alone takes 8.5 ms to answer."
    )
    assert change.kind == "change"


def test_a_limit_that_nothing_keeps_in_a_trial() -> None:
    failed = Trial("broker 3 twice as slow", AFTER, (Broken("p99_ms", 30, 36.5, 0.2),))
    best = replace(DEFAULTS, linger_ms=0.0)
    reason = reasons(outcome(best, verdict="unmet", failed=failed), objective=Objective(p99_ms=30))[0]
    assert reason.cause == "broker 3 twice as slow: p99 is 36.5 ms, and 30 are allowed"


def test_limits_of_memory_and_records() -> None:
    after = replace(AFTER, memory=3 * MIB, lost=12)
    best = replace(DEFAULTS, linger_ms=0.0)
    lost = reasons(outcome(best, verdict="unmet", after=after), objective=Objective(lost=0))[0]
    assert lost.cause == "records lost are 12, and 0 are allowed"
    used = reasons(outcome(best, verdict="unmet", after=after), objective=Objective(memory=MIB))[0]
    assert used.cause == "3 MiB of the pool are used, and 1 MiB are allowed"


def test_an_overload_is_named() -> None:
    nodes = [(NodeLoad(10_000, ((16_000.0, 1.0),)), NodeCost(1.0, 1.0, per_mib_ms=30.0))]
    (reason,) = reasons(outcome(DEFAULTS, verdict="unmet", after=BEFORE), nodes, objective=Objective(p99_ms=6))
    assert reason.text.endswith("the load is more than the brokers take.")
    assert "the present settings are nearest" in reason.text


def test_names_of_brokers() -> None:
    found = outcome(replace(DEFAULTS, linger_ms=0.0), verdict="unmet")
    before, after = estimate(SLOW, found.present), estimate(SLOW, found.best)
    reason = Reasons(found, Objective(p99_ms=6), before, after, nodes=("a", "b", "kafka-7")).all()[0]
    assert "kafka-7 alone takes" in reason.text
    assert reason.values["broker"] == "kafka-7"


def test_a_line_that_is_short() -> None:
    nodes = [(replace(load, rate=60), cost) for load, cost in SLOW]
    present = replace(DEFAULTS, linger_ms=0.0)
    (reason,) = reasons(outcome(replace(present, in_flight=1), present=present), nodes)
    assert reason.cause.startswith("broker 3 serves one request in 8 ms, and another one waits 3.")
