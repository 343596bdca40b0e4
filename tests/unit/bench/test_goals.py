from __future__ import annotations

from typing import Any

import pytest

from bench import goals
from bench.goals import GOALS, MET, MISSED, UNKNOWN, Goal, NotMeasured, Results, Verdict, number, verdicts

CPU, RATE = "cpu_s_per_million", "records_per_s"


def result(**labels: Any) -> dict[str, Any]:
    return {"figures": labels}


def of(what: str, measure: str, by_name: dict[str, Any]) -> Verdict:
    (found,) = [one for one in verdicts(by_name) if (one.goal.what, one.goal.measure) == (what, measure)]
    return found


def test_every_goal_is_one_of_its_kind_and_nothing_is_met_without_a_result() -> None:
    found = verdicts({})
    assert len({(goal.what, goal.measure) for goal in GOALS}) == len(GOALS) == len(found)
    assert {one.met for one in found} == {UNKNOWN}
    assert all(one.value is None and one.cells()[3] == "" for one in found)


@pytest.mark.parametrize(
    ("at_most", "value", "met"),
    [(True, 3.0, MET), (True, 3.1, MISSED), (False, 3.0, MET), (False, 2.9, MISSED)],
)
def test_the_limit_itself_is_met(at_most: bool, value: float, met: str) -> None:
    assert Verdict(Goal("what", "measure", at_most, 3, lambda results: 0), value).met == met


def test_a_peer_counts_with_its_better_batch_size() -> None:
    rows = {"forebay": {CPU: [0.3, 0.1, 0.9]}, "confluent-kafka": {CPU: [1.5, 1, 2]}}
    assert of("send()", "client CPU over confluent-kafka", {"peers": result(**rows)}).value == pytest.approx(0.2)
    rows["confluent-kafka, 16 KiB batches"] = {CPU: [0.6, 0.5, 0.7]}
    found = of("send()", "client CPU over confluent-kafka", {"peers": result(**rows)})
    assert found.value == pytest.approx(0.5)
    assert found.met == MISSED


def test_the_real_broker_does_not_stand_for_the_sink() -> None:
    rows = {"forebay": {RATE: [4e6, 4e6, 4e6]}, "confluent-kafka": {RATE: [1e6, 1e6, 1e6]}}
    assert of("send(), sink", "records/s over confluent-kafka", {"peers": result(**rows)}).met == UNKNOWN
    found = of("send(), sink", "records/s over confluent-kafka", {"peers-sink": result(**rows)})
    assert (found.value, found.met) == (4, MET)


def test_the_worst_number_of_threads_counts() -> None:
    rates = {"1 thread": 2.0, "2 threads": 3.0, "4 threads": 1.0, "8 threads": 2.0}
    rows = {label: {RATE: [rate, rate, rate]} for label, rate in rates.items()}
    found = of("2, 4, 8 threads", "records/s of the worst over one", {"threads": result(**rows)})
    assert (found.value, found.met) == (0.5, MISSED)
    assert (
        of("2, 4, 8 threads, callback", "records/s of the worst over one", {"threads": result(**rows)}).met == UNKNOWN
    )


def test_a_codec_is_compared_at_each_clients_better_batch_size() -> None:
    rates = {("forebay", "16 KiB"): 8, ("forebay", "1024 KiB"): 9, ("confluent-kafka", "16 KiB"): 3}
    rows = {f"{client}, lz4 fast, {size}": {RATE: [rate] * 3} for (client, size), rate in rates.items()}
    found = of("columns of JSON, lz4", "rows/s over confluent-kafka", {"codecs": result(**rows)})
    assert (found.value, found.met) == (3, MET)


def test_a_figure_that_is_missing_is_named() -> None:
    with pytest.raises(NotMeasured, match="peers: forebay: cpu"):
        Results({"peers": result(forebay={})}).value("peers", "forebay", "cpu")
    with pytest.raises(NotMeasured, match="peers: a, b: cpu"):
        Results({}).best("peers", ("a", "b"), "cpu", min)


@pytest.mark.parametrize(("value", "text"), [(0.3, "0.3"), (0.4567, "0.457"), (99.96, "100"), (1e7, "10,000,000")])
def test_numbers_have_three_digits_or_all_of_them(value: float, text: str) -> None:
    assert number(value) == text


def test_the_table_counts_what_was_met(capsys: pytest.CaptureFixture[str]) -> None:
    low, high = (Goal("what", name, True, 3, lambda results: 0) for name in ("low", "high"))
    goals.show([Verdict(low, 2), Verdict(high, 4), Verdict(high, None)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["what", "low", "<=", "3", "2", "yes"]
    assert lines[3].split() == ["what", "high", "<=", "3", "4", "NO"]
    assert lines[-1] == "1 of 3 met, 1 missed, 1 not measured"
