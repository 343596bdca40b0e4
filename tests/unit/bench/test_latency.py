from __future__ import annotations

import argparse
from collections import Counter
from typing import Any, NamedTuple

import pytest

from bench import latency
from bench.arrival import Moments
from bench.latency import CLIENTS, JAVA, LOGGED, PART, Runs, Samples, distribution, rounds_of, settings_of, shares_of


def test_shares_are_in_ms_whatever_the_order_of_arrival() -> None:
    taken = [number * 1_000_000 for number in range(1000, 0, -1)]
    found = shares_of(taken)
    assert (found["p50"], found["p99"], found["p99.9"]) == (501, 991, 1000)
    assert taken[0] == 1_000_000_000


def test_a_distribution_is_closer_towards_its_end() -> None:
    points = distribution(list(range(10_000)))
    percents = [percent for percent, _ in points]
    assert percents == sorted(percents)
    assert percents[0] == 0 and percents[-1] == 99.99
    assert sum(percent >= 99 for percent in percents) > 10


def test_java_has_no_interpreter_to_be_kept_from() -> None:
    found = settings_of(PART.parse(["--linger-ms", "0", "5"]))
    assert len({one.label() for one in found}) == len(found) == 14
    assert not any(one.computing for one in found if one.client == JAVA)


def test_a_sample_is_two_numbers_and_nothing_is_kept_of_the_record_without_the_library() -> None:
    samples = Samples()
    samples.callback()(None, None)
    assert samples.metadata is None
    assert len(samples.taken) == len(samples.begun) == 1
    assert samples.taken[0] >= 0


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int


def test_the_wires_moments_count_from_the_handing_over_of_each_record() -> None:
    samples = Samples()
    samples.begun = [0, 1_000_000, 5_000_000]
    samples.metadata = [Place("t", 0, 0), Place("t", 1, 7), Place("t", 1, 8)]
    asked = []

    def find(topic: str, partition: int, offset: int) -> Moments:
        asked.append((topic, partition, offset))
        return Moments(6_000_000, 8_000_000, 9_000_000)

    found = samples.of_wire(find, first=1)
    assert asked == [("t", 1, 7), ("t", 1, 8)]
    assert (found["sent_p50"], found["received_p50"], found["arrival_p50"]) == (5, 7, 8)
    assert {name for name in found if name.endswith("p99")} == {"sent_p99", "received_p99", "arrival_p99"}
    samples.begun.pop()
    with pytest.raises(ValueError, match="longer"):
        samples.of_wire(find, first=0)


def test_every_setting_is_run_each_round_and_none_is_always_the_first() -> None:
    settings = settings_of(PART.parse([]))
    order = list(rounds_of(settings, 3))
    assert Counter(order) == dict.fromkeys(settings, 3)
    firsts = [order[number * len(settings)].client for number in range(3)]
    assert firsts == list(CLIENTS)
    assert [one.case for one in order[: len(settings)]] == [one.case for one in settings]


class Broker:
    name = "a broker"
    bootstrap_servers = "127.0.0.1:9"
    kafka = None

    def fresh_topic(self) -> str:
        return "fresh"


@pytest.mark.parametrize("wire", LOGGED)
def test_only_forebay_is_logged_and_when_is_an_option(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool, Any]] = []

    def run_child(module: str, work: dict[str, Any], environment: Any) -> dict[str, Any]:
        seen.append((work["client"], work["computing"], environment))
        return {}

    monkeypatch.setattr(latency, "run_child", run_child)
    monkeypatch.setattr(latency, "jars_alone", lambda everything: None)
    options = PART.parse(["--wire", wire, "--linger-ms", "0", "--switch-ms", "5"])
    broker: Any = Broker()
    runs = Runs(options, broker, {"LD_PRELOAD": "x"})
    for one in settings_of(options):
        if one.client != JAVA:
            runs.once(one, 1)
    assert len(seen) == 4
    logged = {(client, computing) for client, computing, environment in seen if environment}
    plain, beside = ("forebay", False), ("forebay", True)
    assert logged == {"never": set(), "computing": {beside}, "always": {plain, beside}}[wire]


def test_the_first_run_of_all_does_not_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[tuple[str, bool, float]] = []

    class Counted(Runs):
        def once(self, one: latency.Setting, seconds: float) -> dict[str, Any]:
            order.append((one.client, one.computing, seconds))
            return {"p50": float(len(order)), "p99": 1.0}

    class Started:
        def __enter__(self) -> Broker:
            return Broker()

        def __exit__(self, *exception: object) -> None:
            pass

    monkeypatch.setattr(latency, "Runs", Counted)
    monkeypatch.setattr(latency, "jars_alone", lambda everything: None)
    monkeypatch.setattr(latency, "target", lambda sink: Started())
    given = vars(PART.parse(["--rounds", "2", "--linger-ms", "0", "--switch-ms", "5"]))
    result = latency.measure(argparse.Namespace(**{**given, "seconds": 60}))
    trials = 2 * len(latency.WAYS)
    assert order[0] == ("forebay", False, latency.FIRST_RUN_S)
    assert {(client, seconds) for client, _, seconds in order[1 : 1 + trials]} == {(latency.CONFLUENT, latency.TRIAL_S)}
    assert len(order) == 1 + trials + 2 * 4 == 1 + trials + len(result["runs"])
    assert all(seconds == 60 for _, _, seconds in order[1 + trials :])
    assert min(run["p50"] for run in result["runs"]) == 2 + trials


def test_confluent_is_polled_in_the_way_that_was_best_in_a_trial() -> None:
    class Trials:
        def once(self, one: latency.Setting, seconds: float) -> dict[str, float]:
            return {"p99": 1.0 if one.way == latency.WAYS[3].name else 2.0}

    trials: Any = Trials()
    tried = latency.Setting(latency.CONFLUENT, 0, True)
    assert latency.with_best_way(trials, tried) == tried._replace(way=latency.WAYS[3].name)
    assert latency.with_best_way(trials, latency.Setting("forebay", 0, True)).way == ""


@pytest.mark.parametrize("way", latency.WAYS, ids=[way.name for way in latency.WAYS])
def test_every_way_to_poll_hands_over_each_record_and_polls(way: latency.Way, monkeypatch: pytest.MonkeyPatch) -> None:
    class Producer:
        def __init__(self, config: dict[str, Any]) -> None:
            self.waiting: list[Any] = []

        def list_topics(self, topic: str, timeout: float) -> None:
            pass

        def produce(self, topic: str, value: bytes, on_delivery: Any) -> None:
            self.waiting.append(on_delivery)

        def poll(self, seconds: float) -> None:
            while self.waiting:
                self.waiting.pop()(None, None)

        flush = lambda self: self.poll(0)  # noqa: E731

    monkeypatch.setattr("confluent_kafka.Producer", Producer)
    called: list[int] = []

    def drive(send: latency.Send, rest: latency.Rest) -> None:
        for number in range(3):
            send(lambda one, other, number=number: called.append(number))
            rest(0)

    latency.with_confluent({"bootstrap": "", "topic": "t", "linger_ms": 0, "way": way.name}, drive)
    assert sorted(called) == [0, 1, 2]


@pytest.mark.parametrize("linger", ["0", "5"])
def test_labels_are_those_that_the_goals_read(linger: str) -> None:
    labels = [one.label() for one in settings_of(PART.parse(["--linger-ms", linger]))]
    assert f"forebay, linger {linger}, computing thread" in labels
    assert f"forebay, linger {linger}, computing thread, switch interval 0.5 ms" in labels
    assert f"Java, linger {linger}" in labels
