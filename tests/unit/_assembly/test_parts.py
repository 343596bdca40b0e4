"""From a configuration to parts: which are made, what they are told, and that none is left open when one fails."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from forebay._assembly import Components, Surroundings, assemble
from forebay._runtime.version import VERSION
from forebay.config import ProducerConfig
from forebay.errors import ConfigError, KafkaError
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
from forebay.testing.resolver import StaticResolver
from tests.fakes.broker import API_VERSIONS
from tests.fakes.world import HandDriven, World
from tests.unit.producer.test_threads import Part


class Stage:
    """Surroundings that know what was made in them."""

    def __init__(self, *, fails: str = "") -> None:
        self.fails = fails
        self.resolvers: list[StaticResolver] = []
        self.selectors: list[MemorySelector] = []

    def around(self) -> Surroundings:
        return Surroundings(clock=ManualClock(), random=lambda: 0.5, selector=self.selector, resolver=self.resolver)

    def selector(self) -> MemorySelector:
        if self.fails == "selector":
            raise OSError("no descriptors left")
        self.selectors.append(MemorySelector(ManualClock()))
        return self.selectors[-1]

    def resolver(self) -> StaticResolver:
        self.resolvers.append(StaticResolver())
        return self.resolvers[-1]


def assembled(**options: Any) -> Components:
    """The parts for options by Kafka's names, with underscores."""
    return assemble(ProducerConfig(bootstrap_servers="127.0.0.1:9092", **options), Stage().around())


def test_everybody_sees_the_generated_client_id() -> None:
    """H configurableObjectsShouldSeeGeneratedClientId: serializers, partitioner and interceptor."""
    seen: list[str] = []

    class Seeing(Part):
        def configure(self, configs: Any, is_key: bool = False) -> None:
            seen.append(configs["client.id"])

    parts = assembled(
        key_serializer=Seeing, value_serializer=Seeing, interceptor_classes=[Seeing], partitioner_class=Seeing
    )
    assert seen == [parts.client_id] * 4
    assert parts.client_id.startswith("producer-")


@pytest.mark.parametrize("platform", ["linux", "darwin", "other"])
@pytest.mark.parametrize("given", [None, -1, 131_072, 65_536])
def test_the_send_buffer_grows_by_itself_where_none_is_given(
    monkeypatch: pytest.MonkeyPatch, platform: str, given: int | None
) -> None:
    opened: list[tuple[int, int]] = []

    class Opening(MemorySelector):
        def open(self, address: Any, *, send_buffer: int, receive_buffer: int, **more: Any) -> Any:
            opened.append((send_buffer, receive_buffer))
            return super().open(address, send_buffer=send_buffer, receive_buffer=receive_buffer, **more)

    monkeypatch.setattr("forebay._assembly.parts.sys.platform", platform)
    around = Stage().around()._replace(selector=lambda: Opening(ManualClock()))
    config = ProducerConfig(bootstrap_servers="127.0.0.1:9092", send_buffer_bytes=given)
    assemble(config, around).sender.run_once(0.0)
    grows = given is None and platform != "other"
    assert opened == [(-1 if grows else given or 131_072, 32_768)]
    assert config["send.buffer.bytes"] == (given or 131_072)


def test_no_two_producers_share_a_generated_client_id() -> None:
    assert assembled().client_id != assembled().client_id


def test_the_configuration_s_own_client_id() -> None:
    parts = assembled(client_id="orders")
    assert parts.client_id == "orders"
    assert parts.thread.name == "kafka-producer-network-thread | orders"


@pytest.mark.parametrize("broken", range(3))
def test_what_was_made_is_closed_when_a_later_part_fails(broken: int) -> None:
    """H testInterceptorConstructorConfigurationWithExceptionShouldCloseRemainingInstances"""
    made: list[Part] = []
    numbers = itertools.count()

    class Counted(Part):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

        def configure(self, configs: Any, is_key: bool = False) -> None:
            if next(numbers) == broken:
                raise ValueError("of configure")

    with pytest.raises(Exception, match="of configure"):
        assembled(key_serializer=Counted, interceptor_classes=[Counted, Counted])
    assert [part.closed for part in made[:broken]] == [1] * broken
    assert all(part.closed <= 1 for part in made)


def test_nothing_is_left_open_when_the_network_cannot_be_made() -> None:
    """H testConstructorFailureCloseResource: closed once each, and one error that says so."""
    stage = Stage(fails="selector")
    part = Part()
    with pytest.raises(KafkaError, match="Failed to construct kafka producer: no descriptors left") as caught:
        HandDriven._with(stage.around(), {"bootstrap.servers": "127.0.0.1:9092", "key.serializer": part})
    assert isinstance(caught.value.__cause__, OSError)
    assert [resolver.closed for resolver in stage.resolvers] == [True]
    assert part.closed == 1


def test_a_bad_configuration_makes_nothing() -> None:
    stage = Stage()
    with pytest.raises(ConfigError, match="acks"):
        HandDriven._with(stage.around(), {"bootstrap.servers": "127.0.0.1:9092", "acks": "2"})
    with pytest.raises(ConfigError, match="on_send"):
        HandDriven._with(stage.around(), {"bootstrap.servers": "127.0.0.1:9092", "interceptor.classes": [object()]})
    assert (stage.resolvers, stage.selectors) == ([], [])


def test_options_reach_their_parts() -> None:
    parts = assembled(
        buffer_memory=100_000,
        batch_size=2_000,
        compression_type="lz4",
        delivery_timeout_ms=50_000,
        request_timeout_ms=20_000,
    )
    assert (parts.accumulator.pool.total, parts.accumulator.pool.poolable_size) == (100_000, 2_000)
    assert parts.accumulator.appender.batch_size == 2_000
    assert parts.accumulator.appender.codec_id == 3
    assert parts.thread.patience_ms == 70_000
    assert [(node.host, node.port) for node in parts.metadata.cluster().nodes] == [("127.0.0.1", 9092)]


def test_batches_of_one_record() -> None:
    """``batch.size`` 0 switches batching off, as in Java."""
    world = World(batch_size=0)
    futures = [world.send(), world.send()]
    world.settle()
    assert [future.result(0).offset for future in futures] == [0, 1]
    assert len(world.cluster.logs["test", 0].batches) == 2


def test_a_callback_s_error_is_reported_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    world = World()

    def told(report: Any) -> None:
        raise ValueError("of the callback")

    for _ in range(100):
        world.send(on_delivery=told)
    world.settle()
    lines = [record for record in caplog.records if record.name == "forebay.callbacks" and record.levelname == "ERROR"]
    assert len(lines) == 1
    assert "test-0 raised ValueError('of the callback')" in lines[0].getMessage()
    # Where it was raised, not only that it was.
    assert lines[0].exc_info is not None and 'raise ValueError("of the callback")' in caplog.text
    assert world.values() == [b"v"] * 100


def of_two(metadata: object, error: object) -> None: ...


def not_inside(report: object) -> None:
    of_two(report)  # type: ignore[call-arg]


@pytest.mark.parametrize(("given", "hint"), [(of_two, True), (not_inside, False)])
def test_a_callback_of_another_shape_is_told_its_shape(
    given: Any, hint: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.send(on_delivery=given)
    world.settle()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "forebay.callbacks"]
    assert "missing 1 required positional argument: 'error'" in line
    assert ("on_delivery is called with one argument, a DeliveryReport" in line) == hint


def test_the_version_is_told_to_brokers_and_to_readers_of_the_metrics() -> None:
    world = World()
    asked = {
        request.body.client_software_version
        for node in world.cluster.brokers.values()
        for request in node.of(API_VERSIONS)
    }
    assert asked == {VERSION}
    assert world.parts.metrics.snapshot(world.now).value("version", "app-info") == VERSION
