"""What a scratch topic is asked, and what is made of the times."""

from __future__ import annotations

import pytest

from forebay._records.reader import read_batches
from forebay.admin._session import Timed
from forebay.tune._probe import ALL, HEADER, Probe, places_of, spacings
from tests.unit.tune.real import Speed, real_world


def test_a_place_for_each_leader() -> None:
    world = real_world(Speed(), Speed(), replicas=2)
    places = places_of(world.session(), "t", world.deadline())
    assert [(place.partition, place.leader.id, place.replicas) for place in places] == [(0, 1, 2), (1, 2, 2)]


def test_each_record_says_whose_it_is() -> None:
    world = real_world(Speed())
    session = world.session()
    (place,) = places_of(session, "t", world.deadline())
    probe = Probe(session, place, lambda: 1234, 5000)
    found = probe.produce(b"value", acks=ALL, count=7, in_flight=3)
    assert (len(found), probe.written) == (7, 7)
    for request in world.asked(0):
        (batch,) = read_batches(request.body.topic_data[0].partition_data[0].records)
        (record,) = batch.records
        assert (record.value, record.timestamp, record.headers) == (b"value", 1234, ((HEADER, b"1"),))
        assert request.body.acks == ALL


def test_requests_in_line_are_as_far_apart_as_one_takes() -> None:
    world = real_world(Speed(rtt=10.0, fixed=3.0, per_mib=0))
    session = world.session()
    (place,) = places_of(session, "t", world.deadline())
    probe = Probe(session, place, world.clock.wall, 5000)
    lone = probe.produce(b"", acks=1, count=10, in_flight=1)
    line = probe.produce(b"", acks=1, count=41, in_flight=5)
    assert [each.received - each.sent for each in lone] == pytest.approx([13.0] * 10)
    assert [*spacings(line)] == pytest.approx([3.0, 3.0])
    assert probe.round_trips(3) == pytest.approx([10.0] * 3)


def test_few_answers_are_one_piece() -> None:
    answers = [Timed(0, at, None) for at in (1.0, 2.0, 3.0, 7.0)]
    assert [*spacings(answers)] == [2.0]
    assert [*spacings(answers, 2)] == [1.0]
