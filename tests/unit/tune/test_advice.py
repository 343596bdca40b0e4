"""Advice for loads of which it is known what helps."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.errors import ConfigError
from forebay.tune import Advice, Broker, Brokers, Goal, Outage, Workload, advise, predict
from forebay.tune.advice import effort_for
from forebay.tune.racing import Effort
from forebay.tune.report import advice_page
from forebay.tune.text import advice_text

QUICK = Effort(first_seeds=2, first_seconds=0.5, last=2, last_seeds=2, last_seconds=1.0, trial_seconds=0.5)
SLOW = Brokers((Broker(), Broker(fixed_ms=8.0)))
KEYED: Any = {"count": 100}


def quick(load: Workload, goal: Goal | None = None, **more: Any) -> Advice:
    return advise(load, goal, effort=QUICK, **more)


def test_fewer_requests_within_the_limit_of_latency() -> None:
    load = Workload(rate=1000, sizes=200, topics={"t": 4})
    found = quick(load, Goal(p99_ms=40), settings={"linger.ms": 0})
    assert found.verdict == "change" and found.met
    assert 0 < float(found.settings["linger.ms"]) <= 40
    assert found.figures["best"].requests < found.figures["present"].requests / 4
    assert found.proposed.latency.p99 <= 40
    assert found.reasons[0].kind == "change" and "linger.ms 0 ▸" in found.reasons[0].text
    assert min(found.gains["present"]) > 0
    assert all(figures.p99 <= 40 for figures in found.trials.values())


def test_where_the_best_is_in_use_it_is_left() -> None:
    load = Workload(rate=1000, sizes=200, topics={"t": 4})
    goal = Goal(p99_ms=40)
    once = quick(load, goal)
    again = quick(load, goal, settings=once.settings)
    assert (again.verdict, dict(again.settings)) == ("leave", {})
    assert again.reasons[0].kind == "leave" and again.reasons[0].text.startswith("Leave it: ")
    assert again.proposed == again.present


def test_requests_do_not_stand_in_line_at_a_slow_broker() -> None:
    """Those that stand in its line wait for nothing else: one in flight, or requests no faster than it takes them."""
    load = Workload(rate=500, sizes=100, keys=KEYED, topics={"t": 4})
    found = quick(load, Goal(least="latency"), brokers=SLOW, settings={"linger.ms": 0})
    assert found.verdict == "change"
    one = {"linger.ms": 0, "max.in.flight.requests.per.connection": 1}
    assert found.proposed.latency.p99 <= predict(load, one, brokers=SLOW).latency.p99
    assert found.figures["best"].p99 < found.figures["present"].p99 / 1.5


def test_batches_have_room_for_a_burst() -> None:
    load = Workload(rate=20_000, sizes=200, burst={"on_ms": 50, "off_ms": 450})
    found = quick(load, Goal(p99_ms=60))
    lingers = int(found.settings["linger.ms"]) / 1000
    assert found.verdict == "change" and int(found.settings["batch.size"]) >= 20_000 * lingers * 200
    assert found.figures["best"].requests < found.figures["defaults"].requests / 6


def test_a_goal_that_nothing_meets_names_the_limit_and_the_nearest() -> None:
    load = Workload(rate=500, sizes=100, keys=KEYED, topics={"t": 4})
    found = quick(load, Goal(p99_ms=5), brokers=SLOW)
    assert found.verdict == "unmet" and not found.met
    assert found.reasons[0].text.startswith("Nothing keeps the limits")
    assert "5 are allowed" in found.reasons[0].text


def test_order_without_idempotence_is_kept() -> None:
    settings = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1, "linger.ms": 0}
    found = quick(Workload(rate=500, sizes=100, topics={"t": 1}), settings=settings)
    assert "max.in.flight.requests.per.connection" not in found.settings
    assert {settings["max.in.flight.requests.per.connection"] for settings, *_ in found.front} == {1}


def test_a_codec_is_proposed_only_where_its_ratio_is_known() -> None:
    load = Workload(rate=200, sizes=1000, topics={"t": 1}, compression={"ratio": 0.2})
    found = quick(load, Goal(least="bytes"))
    assert found.settings["compression.type"] == "zstd"
    plain = quick(Workload(rate=200, sizes=1000, topics={"t": 1}), Goal(least="bytes"))
    assert "compression.type" not in plain.settings


def test_an_outage_asks_for_memory() -> None:
    """A second of it, and what is in flight."""
    load = Workload(rate=2000, sizes=1000, topics={"t": 1})
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(1, 2), kind="refused")])
    settings = {"buffer.memory": 1 << 20, "batch.size": 16384}
    found = quick(load, Goal(hold_ms=0), brokers=brokers, settings=settings)
    assert float(found.settings["buffer.memory"]) >= 2_000_000
    assert any(reason.kind == "memory" for reason in found.reasons)


def test_the_same_seed_gives_the_same_text_and_another_one_may_not() -> None:
    load = Workload(rate=300, sizes=100, topics={"t": 2})
    one, same = (quick(load, seed=3).as_json() for _ in range(2))
    assert one == same
    found = json.loads(one)
    assert (found["version"], found["seed"]) == (1, 3)
    assert found["reasons"][0]["values"] and found["front"]


@pytest.mark.parametrize("settings", [{"lingers.ms": 5}, {"linger.ms": -1}, {"transactional.id": "t"}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        quick(Workload(rate=100), settings=settings)


def test_a_fleet_is_told_to_spare_its_brokers() -> None:
    """Without linger 60 producers keep both handlers of each node busy all of the time."""
    load = Workload(rate=100, sizes=100, topics={"t": 4}, producers=60)
    brokers = Brokers.alike(2, fixed_ms=1, handlers=2)
    found = quick(load, Goal(p99_ms=60), brokers=brokers, settings={"linger.ms": 0})
    assert found.verdict == "change" and found.met
    assert float(found.settings["linger.ms"]) > 0
    assert (found.present.fleet.producers, found.present.fleet.simulated) == (60, 4)
    assert max(node.busy for node in found.present.nodes) > 0.9
    assert max(node.busy for node in found.proposed.nodes) < 0.8
    assert found.figures["best"].requests < found.figures["present"].requests
    fewest = min(requests for _settings, _p99, requests, _memory in found.front)
    assert fewest > 60, "those of all producers"


def test_runs_are_shorter_where_more_records_come() -> None:
    slow, fast = (effort_for(Workload(rate=rate), Brokers()) for rate in (100, 100_000))
    assert (slow.first_seconds, slow.last_seconds) == (5.0, 20.0)
    assert (fast.first_seconds, fast.last_seconds, fast.trial_seconds) == (0.5, 2.0, 1.0)
    fleet = effort_for(Workload(rate=1000, producers=104), Brokers())
    assert fleet.first_seconds == pytest.approx(6 / 5)


def test_runs_are_long_enough_for_a_quota() -> None:
    brokers = Brokers.alike(1, quota=200_000.0)
    slow, fast = (effort_for(Workload(rate=rate), brokers) for rate in (1000, 100_000))
    assert slow.first_seconds == slow.last_seconds == slow.trial_seconds == 20.0
    assert fast.first_seconds == fast.last_seconds == 3.0


def test_what_is_not_served_is_null_in_the_json_and_said_in_the_text() -> None:
    """Of a load that no settings serve, closed forms give infinite latency and memory."""
    load = Workload(rate=2000, sizes=1000, topics={"t": 1})
    brokers = Brokers.alike(1, fixed_ms=50, per_mib_ms=2000, handlers=1)
    found = quick(load, brokers=brokers)
    assert found.front and all(math.isinf(p99) for _settings, p99, *_ in found.front)

    def refused(name: str) -> None:
        raise AssertionError(name)

    front = json.loads(found.as_json(), parse_constant=refused)["front"]
    assert front[0][1] is None and front[0][3] is None
    text = advice_text(found, load, brokers, found.goal)
    assert "front     not served, by closed forms: more comes than the brokers take: linger" in text
    assert " inf " not in text
    assert "<td>not served</td>" in advice_page(dataclasses.asdict(found))


def test_what_is_done_is_told() -> None:
    told: list[str] = []
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(0.2, 0.4), kind="refused")])
    load = Workload(rate=300, sizes=100, topics={"t": 2})
    found = quick(load, brokers=brokers, progress=told.append)
    seen, simulated = found.tried
    assert told[0] == "1 settings looked at by formulas, 0 runs of the race, 0 trials"
    looked_at, runs, trials = (int(part.split()[0].replace(",", "")) for part in told[-1].split(", "))
    assert looked_at == seen + 1
    assert runs >= 2 * simulated and trials >= 3
    assert quick(load, brokers=brokers).as_json() == found.as_json()


def test_what_if_begins_with_the_proposed_settings_and_is_in_the_json() -> None:
    load = Workload(rate=1000, sizes=200, topics={"t": 4}, producers=2)
    found = quick(load, Goal(p99_ms=40), settings={"linger.ms": 0})
    own, *others = found.what_if
    assert own.option == "" and {each.option for each in others} >= {"linger.ms", "buffer.memory"}
    assert own.requests_s == pytest.approx(found.figures["best"].requests, rel=0.3)
    assert json.loads(found.as_json())["what_if"][0]["requests_s"] == own.requests_s
    assert {each.value for each in others if each.option == "linger.ms"}.isdisjoint({found.settings["linger.ms"]})
    assert json.loads(found.as_json())["goal"]["p99_ms"] == 40


def test_each_step_of_a_rate_is_seen_by_the_search() -> None:
    load = Workload(rate=[[0, 0], [60, 4000]], sizes=200, topics={"t": 3})
    found = quick(load, Goal(p99_ms=40))
    assert (found.verdict, found.met) == ("change", True)
    assert found.figures["present"].requests == pytest.approx(found.present.requests_s, rel=0.2)
    effort = effort_for(load, Brokers())
    assert effort.first_seconds == pytest.approx(5)
    assert effort_for(Workload(rate=[[0, 500], [1, 8000], [2, 500]]), Brokers()).first_seconds == pytest.approx(17)


@pytest.mark.parametrize(
    ("settings", "goal"),
    [
        ({"buffer.memory": 64 << 20, "buffer.memory.max.node.share": 0.02}, Goal(p99_ms=40)),
        ({"buffer.memory.max.node.share": 0.5}, Goal(memory=1 << 20)),
        ({"max.request.size": 100_000}, Goal(p99_ms=400)),
    ],
)
def test_what_is_proposed_is_what_a_producer_takes(settings: dict[str, Any], goal: Goal) -> None:
    found = quick(Workload(rate=3000, sizes=1000), goal, settings=settings)
    taken = ProducerConfig({"bootstrap.servers": "localhost:9092", **settings, **found.settings})
    assert found.verdict in ("change", "unmet")
    assert taken["batch.size"] <= taken["max.request.size"] == settings.get("max.request.size", 1 << 20)


def test_the_least_of_the_processor_counts_by_what_it_takes_today() -> None:
    found = quick(Workload(rate=3000, sizes=100), Goal(least="cpu", p99_ms=50))
    assert found.verdict == "change" and found.figures["best"].cpu < found.figures["present"].cpu
    assert 0 < found.gains["present"][0] < 1
