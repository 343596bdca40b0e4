"""Client telemetry (KIP-714) of a whole producer: what brokers are asked and told, and that no record notices."""

from __future__ import annotations

import random
from typing import Any

import pytest

from forebay.errors import KafkaError
from tests.fakes.broker import METADATA, PRODUCE
from tests.fakes.damage import SENSELESS, Damager
from tests.fakes.telemetry import GET, INSTANCE, INSTANCE_TEXT, INTERVAL_MS, PUSH, Receiver, world_with_receiver
from tests.fakes.world import World
from tests.property.frames import printed_seed

MINUTES_5 = 300_000
START_MS = 100
UNKNOWN_SUBSCRIPTION, UNSUPPORTED_CODEC, TOO_LARGE, THROTTLED = 117, 76, 118, 89
INVALID_REQUEST, INVALID_RECORD, UNSUPPORTED_VERSION = 42, 87, 35
DELTA, CUMULATIVE = 1, 2


def state_of(world: World) -> str:
    return str(world.sender.telemetry.dialog.state.value)


def first_push(receiver: Receiver) -> Any:
    """Lets the first push come."""
    receiver.world.until(lambda: bool(receiver.pushes), limit_ms=3 * receiver.interval_ms, step=100)
    return receiver.pushes[0]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "forebay.telemetry"]


def test_a_cluster_that_takes_no_metrics_is_never_asked() -> None:
    world = World()
    world.send()
    world.run(2 * MINUTES_5, 10_000)
    assert world.sender.telemetry is None
    assert {request.api_key for request in world.cluster.brokers[0].requests} == {18, METADATA, PRODUCE}


def test_with_metrics_push_off_nobody_is_asked() -> None:
    world, receiver = world_with_receiver(enable_metrics_push=False)
    world.send()
    world.run(MINUTES_5, 10_000)
    assert receiver.asked == [] and world.sender.telemetry is None


def test_what_a_push_says() -> None:
    """Names by KIP-714, totals as sums, the rest as gauges, no client id."""
    world, receiver = world_with_receiver()
    for _ in range(3):
        world.send(b"v" * 10)
    world.settle()
    push = first_push(receiver)
    assert (push.node, push.subscription_id, push.terminating, push.codec) == (0, 7, False, 0)
    assert push.value("producer.record.send.total") == 3
    assert push.value("producer.topic.record.send.total", topic="test") == 3
    assert push.value("producer.node.request.total", node_id="node-0") >= 1
    assert push.value("producer.connection.creation.total") == 2
    metrics = push.metrics()
    assert metrics["org.apache.kafka.producer.record.queue.time.max"].WhichOneof("data") == "gauge"
    total = metrics["org.apache.kafka.producer.record.send.total"]
    assert total.WhichOneof("data") == "sum" and total.sum.is_monotonic
    assert total.sum.aggregation_temporality == CUMULATIVE
    (point,) = total.sum.data_points
    assert point.start_time_unix_nano == 1_700_000_000_000 * 10**6
    assert abs(point.time_unix_nano - world.clock.wall() * 10**6) <= 200 * 10**6
    assert not any("client" in each.key for each in point.attributes)
    assert list(push.data.resource_metrics[0].resource.attributes) == []


@pytest.mark.parametrize(
    "name",
    [
        "connection.creation.rate",
        "connection.creation.total",
        "node.request.latency.avg",
        "node.request.latency.max",
        "produce.throttle.time.avg",
        "produce.throttle.time.max",
        "record.queue.time.avg",
        "record.queue.time.max",
    ],
)
def test_the_metrics_that_kip_714_requires(name: str) -> None:
    world, receiver = world_with_receiver()
    world.send()
    world.settle()
    assert f"org.apache.kafka.producer.{name}" in first_push(receiver).metrics()


def test_a_transactional_producer_says_its_id() -> None:
    _, receiver = world_with_receiver(idempotent=True, transactional_id="ours")
    (label,) = first_push(receiver).data.resource_metrics[0].resource.attributes
    assert (label.key, label.value.string_value) == ("transactional_id", "ours")


@pytest.mark.parametrize(("dice", "share"), [(0.0, 0.5), (0.5, 1.0), (0.999, 1.499)])
def test_the_first_push_comes_at_a_time_of_its_own_and_the_next_after_the_interval(dice: float, share: float) -> None:
    """Between half of the interval and one and a half."""
    world, receiver = world_with_receiver(random=lambda: dice)
    world.run(4 * INTERVAL_MS, 10)
    (asked, _), *_ = receiver.asked
    assert receiver.pushes[0].at - asked == pytest.approx(share * INTERVAL_MS, abs=20)
    assert receiver.pushes[1].at - receiver.pushes[0].at == pytest.approx(INTERVAL_MS, abs=20)
    assert len(receiver.asked) == 1


def test_the_instance_id_comes_from_the_broker_and_stays() -> None:
    world, receiver = world_with_receiver()
    receiver.refuse = [UNKNOWN_SUBSCRIPTION]
    world.run(2 * INTERVAL_MS, 100)
    assert [instance for _, instance in receiver.asked] == [None, INSTANCE]
    assert receiver.asked[1][0] - receiver.pushes[0].at <= 1, "at once"
    # A broker need not repeat it.
    receiver.instance, receiver.refuse = None, [UNKNOWN_SUBSCRIPTION]
    world.run(5 * INTERVAL_MS, 100)
    assert receiver.asked[2][1] == INSTANCE and receiver.pushes[-1].at > receiver.asked[2][0]


def test_a_cluster_that_wants_nothing_is_asked_again_later() -> None:
    world, receiver = world_with_receiver()
    receiver.metrics = ()
    world.run(2.5 * INTERVAL_MS, 100)
    assert [round((at - receiver.asked[0][0]) / INTERVAL_MS, 1) for at, _ in receiver.asked] == [0, 1, 2]
    assert receiver.pushes == [] and world.sender.telemetry._payloads is None
    receiver.metrics = ("org.apache.kafka.producer.topic.", "org.apache.kafka.producer.record.send")
    world.send()
    world.settle()
    push = first_push(receiver)
    assert set(push.metrics()) <= {name for name in push.metrics() if ".topic." in name or ".record.send." in name}
    assert push.value("producer.topic.record.send.total") == push.value("producer.record.send.total") == 1
    receiver.metrics, receiver.subscription_id = (), 8
    count = len(receiver.pushes)
    world.run(3 * INTERVAL_MS, 100)
    assert len(receiver.pushes) == count + 1, "the one that was refused, because the subscription had changed"


@pytest.mark.parametrize("everything", [("",), ("*",), ("x", "*")])
def test_both_words_for_everything(everything: tuple[str, ...]) -> None:
    _, receiver = world_with_receiver()
    receiver.metrics = everything
    assert len(first_push(receiver).metrics()) > 50


@pytest.mark.parametrize(
    ("offered", "used"), [((4, 3), 4), ((3,), 3), ((1,), 1), ((2,), 2), ((99, -1, 1), 1), ((0, 4), 0), ((77,), 0)]
)
def test_the_first_codec_that_is_there_is_used(offered: tuple[int, ...], used: int) -> None:
    _, receiver = world_with_receiver()
    receiver.codecs = offered
    push = first_push(receiver)
    assert push.codec == used and len(push.metrics()) > 50
    assert not used or push.size < len(push.data.SerializeToString()) / 2


def test_a_codec_that_the_broker_refuses_is_not_used_again() -> None:
    world, receiver = world_with_receiver()
    receiver.codecs, receiver.refuse = (4, 1), [UNSUPPORTED_CODEC]
    world.run(4 * INTERVAL_MS, 100)
    assert [push.codec for push in receiver.pushes[:2]] == [4, 1]
    assert len(receiver.asked) == 2


def test_totals_as_differences() -> None:
    """Each push says what came since the one that was taken before it."""
    world, receiver = world_with_receiver()
    receiver.delta = True
    world.run(2 * START_MS, 10)
    for count in (3, 2, 0):
        for _ in range(count):
            world.send()
        world.run(INTERVAL_MS, 100)
    assert [push.value("producer.record.send.total") for push in receiver.pushes] == [3, 2, 0]
    assert [push.value("producer.topic.record.send.total") for push in receiver.pushes] == [3, 2, 0]
    first, second, third = (push.point("producer.record.send.total") for push in receiver.pushes)
    assert first.time_unix_nano == second.start_time_unix_nano
    assert second.time_unix_nano == third.start_time_unix_nano
    total = receiver.pushes[0].metrics()["org.apache.kafka.producer.record.send.total"]
    assert total.sum.aggregation_temporality == DELTA


def test_what_a_refused_push_said_is_said_again() -> None:
    world, receiver = world_with_receiver()
    receiver.delta, receiver.refuse = True, [THROTTLED]
    world.send()
    world.run(6 * INTERVAL_MS, 100)
    assert [push.value("producer.record.send.total") for push in receiver.pushes[:3]] == [1, 1, 0]


@pytest.mark.parametrize("code", [THROTTLED, TOO_LARGE])
def test_a_push_that_is_refused_for_now(code: int, caplog: pytest.LogCaptureFixture) -> None:
    """The subscription is asked for after the interval; said once."""
    world, receiver = world_with_receiver()
    receiver.refuse = [code] * 4
    world.run(15 * INTERVAL_MS, 100)
    assert receiver.asked[1][0] - receiver.pushes[0].at == pytest.approx(INTERVAL_MS, abs=100)
    assert len(receiver.pushes) >= 5
    refusals = [line for line in lines(caplog) if "refused metrics" in line]
    assert len(refusals) == 1 and "it is tried again after the push interval" in refusals[0]


@pytest.mark.parametrize("code", [INVALID_REQUEST, INVALID_RECORD, UNSUPPORTED_VERSION, 31, 999])
def test_a_push_that_is_refused_for_good(code: int, caplog: pytest.LogCaptureFixture) -> None:
    """Records go on as before."""
    world, receiver = world_with_receiver()
    receiver.refuse = [code]
    first_push(receiver)
    future = world.send()
    world.run(2 * MINUTES_5, 10_000)
    assert future.result(0).offset == 0
    assert (len(receiver.pushes), len(receiver.asked), state_of(world)) == (1, 1, "terminated")
    (line,) = [line for line in lines(caplog) if "No metrics are sent to brokers any more" in line]
    assert "node 0 refused them with " in line
    assert world.producer.client_instance_id(0) == INSTANCE_TEXT


@pytest.mark.parametrize("code", [UNKNOWN_SUBSCRIPTION, UNSUPPORTED_CODEC, THROTTLED])
def test_a_refused_subscription_is_not_asked_for_again_at_once(code: int) -> None:
    """A broker that always says so would else be asked all the time."""
    world, receiver = world_with_receiver()
    receiver.refuse_asking = [code] * 2
    world.run(2.5 * MINUTES_5, 1_000)
    assert [round((at - receiver.asked[0][0]) / MINUTES_5, 1) for at, _ in receiver.asked] == [0, 1, 2]


def test_a_subscription_that_is_refused_for_good() -> None:
    world, receiver = world_with_receiver()
    receiver.refuse_asking = [INVALID_REQUEST]
    world.run(MINUTES_5 * 2, 10_000)
    assert len(receiver.asked) == 1 and receiver.pushes == []
    with pytest.raises(KafkaError, match="no client instance id: node 0 refused them with INVALID_REQUEST"):
        world.producer.client_instance_id(0)


def test_more_than_the_cluster_takes_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    world, receiver = world_with_receiver()
    receiver.max_bytes = 100
    world.run(5 * INTERVAL_MS, 100)
    assert receiver.pushes == [] and len(receiver.asked) == 1
    (line,) = [line for line in lines(caplog) if "Metrics of " in line]
    assert "the cluster takes 100 at most" in line
    assert state_of(world) == "push needed"


@pytest.mark.parametrize(("said", "used"), [(0, MINUTES_5), (-5, MINUTES_5), (1, 100), (2**31 - 1, 2**31 - 1)])
def test_push_intervals_that_make_no_sense(said: int, used: int) -> None:
    """5 minutes; one that is too short would be all that the sender's thread does."""
    world, receiver = world_with_receiver()
    receiver.interval_ms = said
    world.run(200, 1)
    subscription = world.sender.telemetry.dialog.subscription
    assert subscription.interval_ms == used
    if used > 100:
        future = world.send()
        world.settle()
        assert future.done() and receiver.pushes == []


def test_a_broker_that_gives_no_instance_id(caplog: pytest.LogCaptureFixture) -> None:
    world, receiver = world_with_receiver()
    receiver.instance = None
    world.run(2 * MINUTES_5, 10_000)
    assert len(receiver.asked) == 1 and receiver.pushes == []
    with pytest.raises(KafkaError, match="gave this client no instance id"):
        world.producer.client_instance_id(0)


@pytest.mark.parametrize("api", [GET, PUSH])
def test_a_senseless_answer_ends_telemetry_alone(api: int, caplog: pytest.LogCaptureFixture) -> None:
    world, _ = world_with_receiver(idempotent=True)
    world.cluster.brokers[0].script[api] = lambda request: request.answer_bytes(b"\0\xff\xff")
    world.run(3 * INTERVAL_MS, 100)
    future = world.send()
    world.run(2 * MINUTES_5, 1_000)
    assert future.result(0).offset == 0 and world.values() == [b"v"]
    assert len(world.cluster.brokers[0].of(api)) == 1 and state_of(world) == "terminated"
    assert len([line for line in lines(caplog) if "No metrics are sent" in line]) == 1


@pytest.mark.parametrize("kind", SENSELESS)
@pytest.mark.parametrize("api", [GET, PUSH])
def test_whatever_an_answer_is_records_arrive_once_and_in_order(api: int, kind: str) -> None:
    world, _ = world_with_receiver(nodes=2, idempotent=True, delivery_timeout_ms=3_600_000)
    left = [SENSELESS[kind]]
    damager = Damager(
        world, lambda request: left.pop() if left and request.api_key == api else None, random.Random(printed_seed())
    )
    damager.install()
    sent = 0
    while not damager.done:
        assert world.now < 60_000
        world.send(b"%d" % sent)
        sent += 1
        world.run(500, 100)
    futures = [world.send(b"%d" % number) for number in range(sent, sent + 5)]
    world.until(lambda: all(future.done() for future in futures))
    assert world.values() == [b"%d" % number for number in range(sent + 5)]


def test_a_broker_that_does_not_answer_costs_its_connection_once() -> None:
    """Records behind it on the same connection are sent again.  As in Java it is tried again after five minutes."""
    world, receiver = world_with_receiver(idempotent=True)
    broker = world.cluster.brokers[0]
    broker.held |= {PUSH, PRODUCE}
    world.until(lambda: bool(broker.of(PUSH)))
    future = world.send()
    world.settle()
    broker.waiting.clear()
    broker.held.remove(PRODUCE)
    world.run(6_000, 100)
    assert future.result(0).offset == 0 and world.values() == [b"v"]
    world.run(MINUTES_5 * 0.9, 1_000)
    assert (len(broker.of(PUSH)), len(receiver.asked)) == (1, 1)
    broker.held.clear()
    world.run(MINUTES_5 * 0.3, 1_000)
    assert len(receiver.asked) == 2 and receiver.pushes


def test_one_broker_is_told_as_long_as_it_is_there() -> None:
    """M testTelemetryRequest: the same node for the subscription and the pushes; then another one."""
    world, receiver = world_with_receiver(nodes=3)
    world.run(5 * INTERVAL_MS, 100)
    told = {push.node for push in receiver.pushes}
    assert len(told) == 1 and len(receiver.pushes) >= 3
    (chosen,) = told
    world.cluster.down(chosen)
    count = len(receiver.pushes)
    world.run(MINUTES_5 + 3 * INTERVAL_MS, 100)
    assert {push.node for push in receiver.pushes[count:]} and chosen not in {p.node for p in receiver.pushes[count:]}


def test_it_waits_for_a_free_place_of_a_busy_connection() -> None:
    world, receiver = world_with_receiver(max_in_flight_requests_per_connection=1)
    world.run(INTERVAL_MS - 1_000, 10)
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send()
    world.run(3_000, 100)
    assert not future.done() and receiver.pushes == [] and world.sender.telemetry.dialog.due < world.now
    waiting = world.send()
    world.cluster.brokers[0].release()
    world.settle()
    assert receiver.pushes and future.done() and waiting.done()


def test_no_connection_is_made_while_one_is_there() -> None:
    world, receiver = world_with_receiver(nodes=3)
    before = world.metric("connection-creation-total")
    world.run(5 * INTERVAL_MS, 100)
    assert len(receiver.pushes) >= 3 and world.metric("connection-creation-total") == before


def test_a_cluster_whose_connected_brokers_take_metrics_no_more() -> None:
    world, receiver = world_with_receiver()
    world.run(2 * INTERVAL_MS, 100)
    broker = world.cluster.brokers[0]
    del broker.ranges[GET], broker.ranges[PUSH]
    broker.drop()
    count = len(receiver.pushes)
    world.run(MINUTES_5 / 2, 1_000)
    assert len(receiver.pushes) == count
    broker.ranges |= {GET: (0, 0), PUSH: (0, 0)}
    broker.drop()
    world.run(2 * MINUTES_5, 1_000)
    assert len(receiver.pushes) > count


def test_an_error_in_the_making_of_a_push_ends_telemetry_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(now: float, wanted: Any) -> Any:
        raise RuntimeError("no readings")

    world, receiver = world_with_receiver()
    world.run(START_MS + 50, 10)
    reporter = world.sender.telemetry
    reporter._source = reporter._source._replace(readings=broken)
    future = world.send()
    world.run(3 * INTERVAL_MS, 100)
    assert future.done() and receiver.pushes == [] and state_of(world) == "terminated"
    (line,) = [line for line in lines(caplog) if "they cannot be made" in line]
    assert "RuntimeError('no readings')" in line
