"""Calibration against scripted brokers whose times are known."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.errors import ConfigError, TopicAuthorizationError
from forebay.tune import Brokers, TuneError
from forebay.tune.calibration import Calibration, calibrate, measure, median, sigma
from tests.fakes.broker import Topic
from tests.unit.admin.world import AdminWorld
from tests.unit.tune.real import Speed, real_world


def found_in(world: AdminWorld, topic: str = "t") -> Calibration:
    return measure(ProducerConfig(**world.config), topic, around=world.around)


def test_each_time_is_found_again() -> None:
    world = real_world(Speed(rtt=2.0, fixed=0.5, per_mib=4.0, replication=1.5), replicas=2)
    (node,) = found_in(world).nodes
    assert node.broker.fixed_ms == pytest.approx(0.5, rel=0.02)
    assert node.broker.replication_ms == pytest.approx(1.5, rel=0.02)
    assert node.broker.rtt_ms == pytest.approx(2.0, rel=0.02)
    assert node.broker.per_mib_ms == pytest.approx(4.0, rel=0.02)
    assert node.broker.jitter == pytest.approx(0, abs=0.01)
    assert node.trip_ms == pytest.approx(2.0)
    assert node.lone_ms == pytest.approx(4.0, rel=0.02)


def test_without_followers_nothing_is_asked_of_them() -> None:
    world = real_world(Speed(replication=7.0))
    found = found_in(world)
    assert found.nodes[0].broker.replication_ms == 0
    assert found.nodes[0].broker.fixed_ms == pytest.approx(0.5, rel=0.02)
    assert len(world.asked(0)) == found.records


def test_each_leader_is_measured_by_itself(tmp_path: Path) -> None:
    world = real_world(Speed(fixed=0.5), Speed(fixed=8.0, rtt=1.0))
    found = found_in(world)
    assert [node.id for node in found.nodes] == [1, 2]
    path = tmp_path / "load.toml"
    path.write_text('[load]\nrate = 10\n[cluster]\nfile = "cluster.toml"\n', encoding="utf-8")
    (tmp_path / "cluster.toml").write_text(found.as_toml(), encoding="utf-8")
    assert Brokers.from_toml(path).nodes == tuple(node.broker for node in found.nodes)
    assert found.nodes[1].broker.fixed_ms == pytest.approx(8.0, rel=0.02)
    assert tomllib.loads(found.as_toml())["cluster"]["nodes"] == 2


def test_a_very_slow_broker_is_asked_less() -> None:
    found = found_in(real_world(Speed(fixed=40.0)))
    assert found.nodes[0].broker.fixed_ms == pytest.approx(40, rel=0.02)
    assert found.records < 200


def test_large_requests_are_as_large_as_the_topic_takes() -> None:
    world = real_world(Speed(per_mib=10.0, most=200_000))
    (node,) = found_in(world).nodes
    assert node.broker.per_mib_ms == pytest.approx(10.0, rel=0.05)


def test_its_own_records_of_an_earlier_time_do_not_matter() -> None:
    world = real_world(Speed())
    world.log.write(b"a", b"b", headers=[("forebay-tune", b"1")])
    assert found_in(world).nodes[0].broker.fixed_ms == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("world", "topic", "said"),
    [
        (real_world(Speed()), "none", "topic none: there is none; make one for the tuner alone"),
        (real_world(Speed(ends_after=150)), "t", "the calibration ended half way, because a broker went away: "),
    ],
    ids=["no topic", "a broker went away"],
)
def test_what_ends_it_is_one_sentence(world: AdminWorld, topic: str, said: str) -> None:
    with pytest.raises(TuneError) as caught:
        found_in(world, topic)
    assert caught.value.message.startswith(said)
    assert "\n" not in caught.value.message


def test_records_of_others_are_left_alone() -> None:
    world = real_world(Speed())
    world.log.write(b"a", headers=[("forebay-tune", b"1")])
    world.log.write(b"order")
    with pytest.raises(TuneError, match="partition 0 holds a record at offset 1 that is not the tuner's"):
        found_in(world)
    assert not world.asked(0)


def test_nobody_is_there() -> None:
    world = real_world(Speed(), max_block_ms=300)
    world.cluster.down(1)
    with pytest.raises(TuneError, match=r"127\.0\.0\.1:9001 did not answer within 0\.3 s"):
        found_in(world)


def test_what_is_refused_is_the_brokers_error() -> None:
    world = real_world(Speed())
    world.cluster.topics["t"] = Topic(error=29)
    with pytest.raises(TopicAuthorizationError):
        found_in(world)


def test_a_partition_without_a_leader_is_said() -> None:
    world = real_world(Speed())
    world.cluster.topics["t"].partitions[0].leader = -1
    with pytest.raises(TuneError, match="topic t: partition 0 has no leader"):
        found_in(world)


@pytest.mark.parametrize(("values", "found"), [([1, 1, 1], 0), ([0, 0, 0], 0), ([1.0, 2.0, 3.0, 4.0, 99.0], 0.4265116)])
def test_the_spread_of_a_lognormal_time(values: list[Any], found: float) -> None:
    assert sigma(values) == pytest.approx(found)
    assert median(values) == sorted(values)[1 if len(values) == 3 else 2]


def test_what_was_measured_can_be_predicted_with_and_read_by_programs() -> None:
    world = real_world(Speed(rtt=2, fixed=0.5), Speed(rtt=2, fixed=4))
    told: list[str] = []
    found = measure(ProducerConfig(**world.config), "t", around=world.around, tell=told.append)
    assert found.brokers == Brokers(tuple(node.broker for node in found.nodes), measured=True) and len(told) == 2
    values = json.loads(found.as_json())
    assert (values["version"], values["topic"], len(values["nodes"])) == (1, "t", 2)
    assert values["nodes"][1]["broker"]["fixed_ms"] == found.nodes[1].broker.fixed_ms


def test_the_call_for_programs_takes_settings_by_name() -> None:
    with pytest.raises(ConfigError, match="Unknown option"):
        calibrate({"bootstrap.servers": "localhost:1", "bootstrap.server": "a"}, "t")
    with pytest.raises(TuneError, match="did not answer within 0.05 s"):
        calibrate({"bootstrap.servers": "localhost:1", "max.block.ms": 50}, "t")
