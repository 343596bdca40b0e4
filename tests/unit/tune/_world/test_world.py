"""Real producers in a simulated world, without costs of the client: times that can be worked out by hand."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune._world import world as module
from forebay.tune._world.costs import Costs
from forebay.tune._world.world import World
from forebay.tune.brokers import Brokers, Outage
from forebay.tune.measures import Recorder
from forebay.tune.workload import Workload
from tests.support.costs import NO_COSTS

REGULAR: dict[str, Any] = {"arrivals": "regular", "topics": {"orders": 1}}


def run(
    load: Workload,
    settings: dict[str, Any] | None = None,
    brokers: Brokers | None = None,
    *,
    costs: Costs = NO_COSTS,
    seconds: float = 2.0,
) -> tuple[Recorder, World]:
    """A run, after which nothing may be left over."""
    world = World(
        load, brokers or Brokers.alike(1, rtt_ms=1, fixed_ms=2, per_mib_ms=0), settings or {}, costs=costs, seed=1
    )
    found = world.run(seconds)
    for producer in world.producers:
        pool = producer.parts.accumulator.pool
        assert pool.available() == pool.total, "memory was not given back"
        assert not producer.parts.accumulator.has_incomplete()
        assert not producer._entries
    world.close()
    assert found.sent == found.acknowledged + sum(found.failed.values())
    return found, world


def test_a_lone_record_lingers_and_then_takes_the_way_there_and_back() -> None:
    found, _world = run(Workload(rate=10, **REGULAR), {"linger.ms": 5})
    assert (found.sent, found.acknowledged) == (19, 19)
    assert found.from_due.quantile(0) == found.from_due.quantile(1) == pytest.approx(5 + 3, abs=0.002)
    assert found.closing.quantile(0.5) == pytest.approx(5, abs=0.002)
    assert found.waiting.quantile(1) == pytest.approx(0, abs=0.002)
    assert found.flight.quantile(0.5) == pytest.approx(3, abs=0.002)
    assert found.causes == {"linger": 19}


def test_without_linger_each_record_goes_at_once() -> None:
    found, _world = run(Workload(rate=10, **REGULAR), {"linger.ms": 0})
    assert found.from_due.quantile(1) == pytest.approx(3, abs=0.002)
    assert found.nodes[1].requests == 19


def test_what_is_in_flight_waits_in_the_line_of_the_broker() -> None:
    """With 1 ms between records and 8 ms for a request, each of five in flight waits for the four before it."""
    slow = Brokers.alike(1, rtt_ms=1, fixed_ms=8, per_mib_ms=0)
    settings = {"linger.ms": 0, "max.in.flight.requests.per.connection": 5}
    many, _world = run(Workload(rate=1000, **REGULAR), settings, slow)
    few, _world = run(
        Workload(rate=1000, **REGULAR), {"linger.ms": 0, "max.in.flight.requests.per.connection": 2}, slow
    )
    assert many.from_due.quantile(0.5) == pytest.approx(5 * 8 + 4, abs=1.5)
    assert few.from_due.quantile(0.5) == pytest.approx(2 * 8 + 4, abs=1.5)
    assert few.nodes[1].requests == pytest.approx(many.nodes[1].requests, rel=0.05)
    assert many.nodes[1].busy_ms == pytest.approx(2000, rel=0.01)


@pytest.mark.parametrize(
    ("batch_size", "fill", "records"), [(16_384, 17_122 / 32_768, 1.0), (17_200, None, None)], ids=["16 KiB", "17,200"]
)
def test_values_of_5000_and_12000_bytes_in_turn(batch_size: int, fill: float | None, records: float | None) -> None:
    """Two of them need more than 16 KiB: each batch has one.  With room for one of each a batch takes what comes."""
    load = Workload(rate=176.5, sizes=[5000, 12_000], topics={"orders": 1})
    found, _world = run(load, {"batch.size": batch_size, "linger.ms": 5}, seconds=60)
    node = found.nodes[1]
    if fill is None or records is None:
        # The second comes within the linger of the first with this chance, and then the batch is full.  The rate is
        # such that the fill becomes 0.785.
        pair = 1 - 2.718281828 ** (-0.1765 * 5)
        records = 1 + pair
        fill = (pair * 17_080 + (1 - pair) * 8570) / batch_size
        assert fill == pytest.approx(0.785, abs=0.005)
    assert found.batch_bytes / node.batches / batch_size == pytest.approx(fill, abs=0.006)
    assert node.records / node.batches == pytest.approx(records, abs=0.02)


def test_the_fill_of_the_example_is_exact() -> None:
    load = Workload(rate=1000, sizes=[5000, 12_000], topics={"orders": 1})
    found, _world = run(load, {"batch.size": 16_384})
    assert found.batch_bytes / found.nodes[1].batches / 16_384 == pytest.approx(0.523, abs=0.0005)
    assert found.nodes[1].records == found.nodes[1].batches
    assert found.causes["next"] + found.causes["full"] > 0.9 * found.nodes[1].batches


def test_a_silence_fills_the_memory_and_holds_the_call() -> None:
    """1,000 records a second of 1,000 B fill 1 MiB in a second; the silence lasts three."""
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(1, 4))])
    load = Workload(rate=1000, sizes=1000, **REGULAR)
    found, _world = run(load, {"buffer.memory": 1 << 20}, brokers, seconds=6)
    assert max(found.holds) == pytest.approx(3000 - 1000 * (1 << 20) / 1_010_000, rel=0.03)
    assert found.pool_peak >= 0.98 * (1 << 20)
    assert found.nodes[1].memory == pytest.approx(1 << 20, rel=0.03)
    assert (found.acknowledged, sum(found.failed.values()), found.backlog) == (5999, 0, 0)
    assert found.from_due.quantile(1) > 2900
    assert found.from_due.quantile(0.6) > found.from_call.quantile(0.6)


def test_records_fail_when_a_silence_outlasts_their_time() -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(1, 9))])
    settings = {"delivery.timeout.ms": 2000, "request.timeout.ms": 1000}
    found, _world = run(Workload(rate=100, **REGULAR), settings, brokers, seconds=12)
    lost = sum(found.failed.values())
    assert 500 < lost < 900
    assert all(phase in ("queued", "in flight", "no leader known") for phase in found.failed)
    assert found.acknowledged == found.sent - lost


def test_a_call_that_is_held_too_long_is_refused() -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(0, 9))])
    settings = {"buffer.memory": 1 << 18, "max.block.ms": 500}
    found, _world = run(Workload(rate=1000, sizes=1000, **REGULAR), settings, brokers, seconds=5)
    assert found.refused > 5
    assert sum(found.failed.values()) == found.refused
    assert max(found.holds) == pytest.approx(500, abs=0.01)


def test_records_that_no_caller_came_to_send() -> None:
    load = Workload(rate=1000, sizes=10_000, **REGULAR)
    found, _world = run(load, {"buffer.memory": 1 << 20}, Brokers.alike(1, bandwidth=1_000_000), seconds=5)
    assert found.backlog > 3000
    assert found.sent + found.backlog == 4999


@pytest.mark.parametrize("kind", ["refused", "not_leader"])
def test_a_node_that_comes_back_loses_nothing(kind: str) -> None:
    brokers = Brokers.alike(3, [Outage(node=2, seconds=(1, 3), kind=kind)])
    found, _world = run(Workload(rate=1000, keys={"count": 100}, topics={"orders": 6}), {}, brokers, seconds=6)
    assert (found.acknowledged, dict(found.failed)) == (found.sent, {})
    assert found.from_due.quantile(1) > 900
    assert min(node.requests for node in found.nodes.values()) > 100


def test_an_election_ends_the_wait_before_the_node_is_back() -> None:
    def longest(kind: str) -> float:
        brokers = Brokers.alike(3, [Outage(node=2, seconds=(1, 9), kind=kind)])
        found, _world = run(Workload(rate=300, keys={"count": 100}, topics={"orders": 6}), {}, brokers, seconds=12)
        return found.from_due.quantile(1)

    assert longest("not_leader") < 4000 < longest("refused")


def test_acks_0_counts_what_is_written() -> None:
    found, _world = run(Workload(rate=100, **REGULAR), {"acks": "0", "enable.idempotence": "false"})
    assert found.acknowledged == 199
    assert found.from_due.quantile(1) == pytest.approx(5, abs=0.01)


def test_closed_callers_wait_for_their_own_calls_alone() -> None:
    found, _world = run(Workload(callers="closed", think_ms=10, threads=4, topics={"orders": 1}))
    assert found.sent == pytest.approx(4 * 200, abs=4)


def test_threads_share_the_records_of_a_stream() -> None:
    one, _world = run(Workload(rate=1000, threads=1, **REGULAR))
    four, _world = run(Workload(rate=1000, threads=4, **REGULAR))
    assert one.sent == four.sent == 1999


def test_several_producers_have_records_of_their_own() -> None:
    found, world = run(Workload(rate=500, producers=3, topics={"orders": 4}), brokers=Brokers.alike(2))
    assert len(world.producers) == 3
    assert found.sent == pytest.approx(3000, rel=0.1)


def test_compression_makes_batches_smaller_and_takes_time() -> None:
    load = Workload(rate=1000, sizes=1000, compression={"ratio": 0.25, "ms_per_mib": 500}, topics={"orders": 1})
    plain, _world = run(load)
    packed, _world = run(load, {"compression.type": "zstd"})
    assert packed.batch_bytes / packed.nodes[1].batches < 0.35 * plain.batch_bytes / plain.nodes[1].batches
    assert plain.cpu_ms < 20
    assert packed.cpu_ms == pytest.approx(2000 * 1010 / (1 << 20) * 500, rel=0.1)


def test_a_codec_needs_its_ratio() -> None:
    with pytest.raises(ConfigError, match=r"compression.type=zstd needs .* compression = \{ratio = 0.3\}"):
        World(Workload(rate=1), Brokers(), {"compression.type": "zstd"}, costs=NO_COSTS, seed=1)


def test_the_clients_own_time_slows_it_down() -> None:
    load = Workload(rate=2000, **REGULAR)
    quick = Brokers.alike(1, rtt_ms=0.1, fixed_ms=0)
    none, _world = run(load, {"linger.ms": 0}, quick)
    some, _world = run(load, {"linger.ms": 0}, quick, costs=Costs(wake=1, turn=1, request=1))
    assert some.nodes[1].requests < 0.7 * none.nodes[1].requests
    assert some.from_due.quantile(0.5) > none.from_due.quantile(0.5) + 1


def test_what_simulated_producers_log_is_not_seen(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(0.5, 1), kind="refused")])
    with caplog.at_level(logging.DEBUG, "forebay"):
        run(Workload(rate=100, **REGULAR), {"delivery.timeout.ms": 300, "request.timeout.ms": 200}, brokers)
        logging.getLogger("forebay.sender").warning("of a real one")
    assert [line.getMessage() for line in caplog.records if line.levelno >= logging.INFO] == ["of a real one"]


def test_a_world_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.World, "next_at", lambda self: 1e12)
    world = World(Workload(rate=10), Brokers(), {}, costs=NO_COSTS, seed=1)
    with pytest.raises(module.Simulation, match="have no outcome"):
        world.run(1)
    world.close()


def test_tables_come_at_the_rate_of_their_records() -> None:
    found, _world = run(Workload(rate=1000, batch_rows=100, **REGULAR), {"linger.ms": 5})
    assert found.sent == 1900
    assert found.nodes[1].batches == 19
    assert found.from_due.quantile(1) == pytest.approx(5 + 3, abs=0.002)


def test_a_closed_caller_hands_over_its_next_table_after_the_last_one() -> None:
    load = Workload(callers="closed", think_ms=10, batch_rows=50, threads=2, topics={"orders": 1})
    found, _world = run(load)
    assert found.sent == pytest.approx(2 * 200 * 50, abs=200)


def test_rows_of_tables_that_were_not_sent_are_counted() -> None:
    load = Workload(rate=1000, sizes=10_000, batch_rows=100, **REGULAR)
    found, _world = run(load, {"buffer.memory": 1 << 20}, Brokers.alike(1, bandwidth=1_000_000), seconds=5)
    assert found.backlog > 3000
    assert found.sent + found.backlog == 4900
