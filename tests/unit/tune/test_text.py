"""The text of a prediction: at most 40 lines, whatever there is to say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from forebay._closed_forms.wording import in_bytes
from forebay.tune import advise, predict
from forebay.tune.brokers import Brokers, Outage
from forebay.tune.goal import Goal
from forebay.tune.racing import Effort
from forebay.tune.text import advice_text, prediction_text
from forebay.tune.workload import Stream, Workload


def text(load: Workload, settings: dict[str, Any], brokers: Brokers, goal: Goal, seconds: float = 2) -> str:
    return prediction_text(predict(load, settings, brokers=brokers, seconds=seconds), load, brokers, goal)


def test_a_plain_load() -> None:
    found = text(Workload(rate=1000, topics={"orders": 3}), {"linger.ms": 5}, Brokers(), Goal(p99_ms=50))
    assert "load      1,000 records/s, values of 100 B\n" in found
    assert "topics    orders (3); 1 node, 1 producer\n" in found
    assert "settings  linger.ms=5\n" in found
    assert "goal      kept: p99_ms 50\n" in found
    assert "from the call" not in found
    assert "held" not in found
    assert "not served" not in found


def test_a_load_with_everything_that_can_be_said_has_at_most_40_lines() -> None:
    kinds: list[Any] = [
        {"rate": 4000, "sizes": {"median": 300, "sigma": 1, "most": 9000}},
        {"rate": [[0, 100], [1, 300]], "sizes": [1, 2, 3, 4], "keys": {"count": 10}, "topic": "a1"},
        {"rate": 900, "sizes": {5: 1, 6: 1}, "burst": {"on_ms": 100, "off_ms": 100}, "topic": "a2"},
        {"callers": "closed", "think_ms": 5, "threads": 2},
        {"rate": 3, "sizes": 2_000_000},
    ]
    load = Workload([Stream(**kind) for kind in kinds], topics={f"a{number}": 2 for number in range(9)}, producers=2)
    outages = [Outage(node=number, seconds=(0.5 + number / 10, 1.5)) for number in range(1, 7)]
    brokers = Brokers.alike(9, outages, quota=20_000)
    memory: dict[str, Any] = {"buffer.memory": 100_000, "batch.size": 1000, "max.block.ms": 100, "acks": "1"}
    memory |= {"max.request.size": 50_000, "enable.idempotence": False, "delivery.timeout.ms": 31_000}
    limits: Any = {"p50_ms": 0.1, "p99_ms": 0.1, "memory": 1, "lost": 0, "hold_ms": 0}
    found = text(load, memory, brokers, Goal(**limits))
    assert found.count("\n") <= 40
    assert max(map(len, found.splitlines())) <= 130
    for said in ("and 3 more", "and 5 more", "100 to 300 records/s", "10 keys", "to a1", "300 B in the median"):
        assert said in found
    assert "values of 1 and 2 and 3 B and others" in found
    for said in ("from the call of send", "held in send", "of send, the longest for", "nodes that are less busy"):
        assert said in found
    for said in ("outage    node 1 silent, 0.6 to 1.5 s", "lost      ", "not kept: p50_ms", "not served"):
        assert said in found


def test_an_outage_from_the_beginning_is_not_said_to_be_over_at_once() -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(0, 1))])
    said = next(line for line in text(Workload(rate=100), {}, brokers, Goal()).splitlines() if "outage    " in line)
    assert said.startswith("outage    node 1 silent, 0 to 1 s: memory up to ")
    assert said.endswith(", not seen to be over in the simulated time")


def test_bursts_and_closed_callers() -> None:
    burst: Any = {"on_ms": 100, "off_ms": 900}
    assert "1,000 records/s for 100 ms, none for 900 ms" in text(
        Workload(rate=1000, burst=burst), {}, Brokers(), Goal()
    )
    closed = Workload(callers="closed", think_ms=5, threads=2)
    assert "2 threads, 5 ms between calls, values of 100 B" in text(closed, {}, Brokers(), Goal())


def test_a_fleet_and_what_is_too_much_for_its_brokers() -> None:
    load = Workload(rate=40, sizes=50_000, producers=200, topics={"t": 8})
    brokers = Brokers.alike(2, fixed_ms=0.5, per_mib_ms=20, handlers=2)
    found = prediction_text(predict(load, brokers=brokers, seconds=5), load, brokers, Goal())
    assert "records of 4 producers, seed 1" in found and "2 nodes, 200 producers" in found
    assert "capacity  node 1, 2: more comes than the handlers can do" in found
    assert re.search(r"the nearest that is served: \d+ producers of this kind\n", found)
    assert "the load is not served by these settings" in found
    assert "the requests of 196 producers are those of 4 that ran, at other times" in found


def test_tables_are_named() -> None:
    load = Workload(rate=1000, batch_rows=250)
    assert "1,000 records/s in tables of 250, values of 100 B" in text(load, {}, Brokers(), Goal())


def advice_of(load: Workload, goal: Goal, brokers: Brokers | None = None, **more: Any) -> str:
    brokers = brokers or Brokers()
    effort = Effort(first_seeds=2, first_seconds=0.3, last=2, last_seeds=2, last_seconds=0.5, trial_seconds=0.3)
    return advice_text(advise(load, goal, brokers=brokers, effort=effort, **more), load, brokers, goal)


def test_advice_says_what_to_set_why_and_what_it_gives() -> None:
    found = advice_of(Workload(rate=1000, sizes=200, topics={"t": 4}), Goal(p99_ms=40), settings={"linger.ms": 0})
    assert "\nadvice    set linger.ms=" in found
    assert "          linger.ms 0 ▸" in found and "requests -" in found
    assert re.search(r"^ +today +defaults +best found$", found, re.MULTILINE)
    assert re.search(r"^p99, ms( +[\d.,]+ \([\d.,]+.[\d.,]+\)){3}$", found, re.MULTILINE)
    assert "trust     lower: the times of the brokers and of the client's own work are guesses; stalls" in found
    assert "goal      kept: p99_ms 40\n" in found
    assert "tried     the load as it is: p99 " in found and "a rate +30 %: p99 " in found
    assert "front     about p99 " in found


def test_advice_to_leave_it_and_advice_that_meets_nothing() -> None:
    load = Workload(rate=100, sizes=100, topics={"t": 1})
    assert "advice    leave the settings as they are\n          Leave it: " in advice_of(
        load, Goal(least="latency"), settings={"linger.ms": 0}
    )
    unmet = advice_of(load, Goal(p99_ms=0.01))
    assert "advice    nothing that was tried keeps the goal; the nearest is" in unmet
    assert "goal      not kept: p99_ms" in unmet


def test_advice_with_everything_that_can_be_said_has_at_most_40_lines() -> None:
    outages = [Outage(node=number, seconds=(0.2, 0.4), kind="refused") for number in range(1, 6)]
    kinds: list[Any] = [{"rate": 300, "topic": name} for name in ("a", "b", "c", "d")]
    load = Workload([Stream(**kind) for kind in kinds], topics=dict.fromkeys("abcdef", 2))
    limits: Any = {"p50_ms": 0.1, "p99_ms": 0.1, "memory": 1, "lost": 0, "hold_ms": 0}
    found = advice_of(load, Goal(**limits), Brokers.alike(6, outages))
    assert found.count("\n") <= 40
    assert max(map(len, found.splitlines())) <= 130


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1536, "1.5 KiB"),
        (200_000, "195 KiB"),
        (5 << 20, "5.0 MiB"),
        (5 << 40, "5,120 GiB"),
    ],
)
def test_bytes(size: float, shown: str) -> None:
    assert in_bytes(size) == shown
