"""tune.trace: what was recorded is read, refused in one sentence, and replayed as it came."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.errors import ConfigError
from forebay.tune import Brokers, Trace, Workload, predict
from forebay.tune.trace import is_trace, merged, removed, spread
from tests.support.costs import NO_COSTS
from tests.unit.tune.traces import Sent, file_of, steady, trace_of


def test_records_come_in_the_order_of_their_times_whatever_their_batch(tmp_path: Path) -> None:
    first = Sent(1000, [(0, -1, 10), (4000, -1, 30)])
    other = Sent(2000, [(0, 5, 20)], topic=1)
    found = Trace.open(file_of(tmp_path / "a.trace", first, other))
    replayed = list(found.replay(500.0, 1500.0))
    assert [round(each[0] - 500, 3) for each in replayed] == [1, 2, 5]
    assert [each[1] for each in replayed] == ["a", "b", "a"]
    assert [len(each[2]) for each in replayed] == [10, 20, 30]
    assert [(each[3], each[4]) for each in replayed] == [(None, None), (bytes(5), 0), (None, None)]


def test_a_trace_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    path = file_of(tmp_path / "a.trace", *steady(50), phase_us=7)
    assert is_trace(path) and not is_trace(tmp_path / "none")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[load]\nrate = 1\n", "is no trace of forebay"),
        (b"", "is no trace of forebay"),
        (b'{"forebay-trace":2}\n', "is a trace of version 2; this forebay reads version 1"),
        (b'{"forebay-trace":1}\n', "is damaged: KeyError"),
        (b'{"forebay-trace":1,"kept":9,"every":10000000,"blocks":1}\n', "has 90,000,000 records; at most 10,000,000"),
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.trace").write_bytes(data)
    with pytest.raises(ConfigError, match=said) as caught:
        Trace.open(tmp_path / "a.trace")
    assert str(tmp_path / "a.trace") in str(caught.value) and "\n" not in str(caught.value)


def test_a_trace_that_is_cut_short_or_empty_or_not_there_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path / "a.trace", *steady(10))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ConfigError, match="is cut short"):
        Trace.open(path)
    with pytest.raises(ConfigError, match="the trace has no record"):
        Trace.open(file_of(tmp_path / "b.trace", blocks=0))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Trace.open(tmp_path / "none")


def test_records_of_one_millisecond_are_spread_over_what_is_left_of_it() -> None:
    assert spread([700, 700, 700, 1000, 1000, 2000], 0, 9000) == [700, 800, 900, 1000, 1500, 2000]
    assert spread([700, 700], 200, 9000) == [700, 750]
    assert spread([1000] * 4, 0, 1200) == [1000, 1050, 1100, 1150]
    assert spread([1000, 1000], 0, 900) == [1000, 1000]
    assert spread([], 0, 0) == []


def test_holds_are_taken_out_of_later_times() -> None:
    assert merged([[5, 9], [1, 3], [3, 4], [8, 12], [7, 7]]) == [(1, 4), (5, 12)]
    assert list(removed([0, 1, 2, 4, 5, 6, 12, 20], [(1, 4), (5, 12)])) == [0, 1, 1, 1, 2, 2, 2, 10]
    found = trace_of(*steady(10), holds=[[250_000, 650_000]])
    assert found.held_s == pytest.approx(0.4) and found.seconds == pytest.approx(0.6)
    assert list(found.arrivals.times) == [0, 100_000, 200_000, *[250_000] * 4, 300_000, 400_000, 500_000]


def test_what_came_before_the_recording_or_after_it_is_left_out() -> None:
    found = trace_of(Sent(-3000, [(0, -1, 1), (4000, -1, 2)]), Sent(999_000, [(0, -1, 3), (2000, -1, 4)]))
    assert list(found.arrivals.values) == [2, 3]


def test_a_moment_of_a_sample_stands_for_those_that_were_left_out() -> None:
    found = trace_of(Sent(0, [(0, -1, 1), (3000, -1, 2)]), every=3, share=1 / 3)
    assert list(found.arrivals.times) == [0, 1000, 2000, 3000, 4000, 5000]
    assert list(found.arrivals.values) == [1, 1, 1, 2, 2, 2]


def test_a_replay_begins_anew_at_its_end_and_where_it_is_told() -> None:
    found = trace_of(*steady(4))
    assert [each[0] for each in found.replay(0.0, 2000.0)] == [250.0 * at for at in range(8)]
    assert [each[0] for each in found.replay(100.0, 1100.0, 0.6)] == [250.0, 500.0, 750.0, 1000.0]


def test_a_faster_replay_has_the_same_records_in_less_time() -> None:
    found = trace_of(*steady(4)).scaled(2)
    assert (found.seconds, found.rate) == (0.5, 8.0)
    assert [each[0] for each in found.replay(0.0, 1000.0)] == [125.0 * at for at in range(8)]
    assert [each[0] for each in found.replay(0.0, 300.0, 0.25)] == [0.0, 125.0, 250.0]


def test_who_led_what_is_kept_where_the_cluster_is_as_large() -> None:
    found = trace_of(*steady(4), nodes=[7, 9], leaders={"a": [9, 7, -1], "b": []})
    assert found.topics == (("a", 3), ("b", 1))
    assert found.homes(2) == {"a": [2, 1, 1], "b": [1]}
    assert found.homes(3) is None


def test_answers_and_compression_are_those_of_batches_that_went_well() -> None:
    well, late = Sent(0, [(0, -1, 92)], answer_us=3000), Sent(1, [(0, -1, 92)], outcome=2)
    found = trace_of(well, late, well._replace(answer_us=1000))
    assert found.answers_ms() == {1: [1.0, 3.0], 2: []}
    assert found.compression() is None
    assert trace_of(well, settings={"compression.type": "lz4"}).compression() == 1.0


def test_a_prediction_replays_each_record() -> None:
    found = trace_of(*steady(200, key=4, partition=2))
    said = predict(found, {"linger.ms": 0}, costs=NO_COSTS)
    assert (said.sent, said.acknowledged, said.seconds) == (200, 200, 1.0)
    assert [node.records_s for node in said.nodes] == [200, 0]
    assert predict(found, {"linger.ms": 0}, costs=NO_COSTS).as_json() == said.as_json()
    assert said.doubts[0] == "the times of the brokers are guessed from the fast answers in the trace"
    slow = predict(found, brokers=Brokers.alike(3, fixed_ms=20), costs=NO_COSTS)
    assert slow.settings == {"linger.ms": 5} and slow.latency.p50 > 20 > said.latency.p50
    assert slow.doubts[0] == "the times of the brokers are guesses"


def test_what_is_not_known_of_a_trace_is_assumed_aloud() -> None:
    found = trace_of(*steady(20), every=2, left_out={"batches": 1, "records": 7})
    said = predict(found, costs=NO_COSTS)
    assert any("7 records are not in the trace" in each for each in said.doubts)
    assert any("stands for 2" in each for each in said.assumptions)


def test_stalls_that_the_recorder_saw_are_those_of_its_replay() -> None:
    """A fiftieth of its looks fell into one, and saw 10 ms of it."""
    plain = trace_of(*steady(200))
    assert plain.stalls is None  # of a recorder that did not note them
    assert trace_of(*steady(200), stalls={"looks": 5, "long": [[50.0, 4.0]]}).stalls is None
    found = trace_of(*steady(200), stalls={"looks": 1000, "long": [[50.0 * at, 10.0] for at in range(20)]})
    assert found.stalls is not None
    assert found.stalls.seconds == pytest.approx(10)  # a fiftieth of it is in stalls
    said = predict(found, costs=NO_COSTS)
    assert said.latency.p999 > predict(plain, costs=NO_COSTS).latency.p999
    assert "stalls as it was seen to: 2 times a second" in said.assumptions[1]
    calm = trace_of(*steady(200), stalls={"looks": 1000, "long": []})
    assert predict(calm, costs=NO_COSTS).latency == predict(plain, costs=NO_COSTS).latency
    assert not any("stalls" in each for each in predict(calm, costs=NO_COSTS).doubts)


def test_a_part_of_a_trace_is_another_one_for_each_seed() -> None:
    batches = [each for at in range(10) for each in steady(10 + 10 * at)]
    moved = [each._replace(created=each.created + 1_000_000 * at) for at in range(10) for each in steady(10 + 10 * at)]
    load = Workload.replaying(trace_of(*moved, seconds=10.0))
    sent = {predict(load, costs=NO_COSTS, seconds=1.0, seed=seed).sent for seed in range(5)}
    assert len(sent) > 2 and predict(load, costs=NO_COSTS).sent == len(batches)


def test_a_hold_of_the_replay_delays_what_comes_later() -> None:
    load = Workload.replaying(trace_of(*steady(1000, size=1000)))
    small = {"buffer.memory": 20_000, "batch.size": 10_000, "linger.ms": 0}
    said = predict(load, small, brokers=Brokers.alike(2, fixed_ms=100), costs=NO_COSTS)
    assert said.holds > 0 and said.backlog > 0
    assert said.latency.longest < 1.5 * said.longest_hold_ms + 500


def test_a_file_names_a_trace_beside_it(tmp_path: Path) -> None:
    file_of(tmp_path / "a.trace", *steady(100))
    path = tmp_path / "load.toml"
    path.write_text('[load]\ntrace = "a.trace"\nproducers = 2\ncompression = {ratio = 0.5}\n', encoding="utf-8")
    load = Workload.from_toml(path)
    assert load.trace is not None and (load.producers, load.rate, load.topics[0]) == (2, 100.0, ("a", 3))
    assert load.compression is not None and load.compression.ratio == 0.5
    assert load.scaled(2).trace is not None and load.scaled(2).rate == 200
    for text, said in (
        ('trace = "a.trace"\nrate = 3', "left out beside a trace"),
        ("trace = 3", "trace is 3; it must be the name of a file"),
        ('trace = "none.trace"', "cannot be read"),
    ):
        path.write_text(f"[load]\n{text}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=said):
            Workload.from_toml(path)
