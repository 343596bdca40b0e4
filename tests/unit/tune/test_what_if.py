"""What if: the neighbours of settings, and what closed forms say of them."""

from __future__ import annotations

from dataclasses import replace

from forebay._closed_forms.estimate import Estimate, estimate
from forebay._closed_forms.node import MIB, NodeCost, NodeLoad, Settings
from forebay.tune.outages import Outage
from forebay.tune.search import grid
from forebay.tune.what_if import WhatIf, neighbours, what_if

SIZES = ((108.0, 1.0),)
OWN = Settings(linger_ms=10, in_flight=2)
LOOKED_AT = grid(Settings(), SIZES)
AWAY = Outage(nodes=(0,), away_ms=10_000)


def of_load(settings: Settings, rate: float = 500) -> Estimate:
    return estimate([(NodeLoad(rate, SIZES), NodeCost(1.0, 2.0))], settings)


def by_option(rows: tuple[WhatIf, ...]) -> dict[str, list[WhatIf]]:
    found: dict[str, list[WhatIf]] = {}
    for row in rows:
        found.setdefault(row.option, []).append(row)
    return found


def test_each_option_goes_one_step_down_and_up() -> None:
    found = by_option(what_if(of_load, OWN, LOOKED_AT))
    assert {option: [row.value for row in rows] for option, rows in found.items()} == {
        "": [""],
        "linger.ms": [7, 15],
        "batch.size": [32768],
        "max.in.flight.requests.per.connection": [1, 3],
        "buffer.memory": [16 * MIB, 64 * MIB],
    }
    (own,) = found[""]
    below, above = found["linger.ms"]
    assert below.requests_s > own.requests_s > above.requests_s
    assert below.p99_ms is not None and own.p99_ms is not None and above.p99_ms is not None
    assert below.p99_ms < own.p99_ms < above.p99_ms


def test_only_one_field_differs_and_codecs_are_those_that_were_looked_at() -> None:
    looked_at = grid(Settings(), SIZES, ratios={"zstd": 0.3})
    for field, other in neighbours(OWN, looked_at, [AWAY]):
        ratio = other.compression_ratio
        assert replace(OWN, **{field: getattr(other, field), "compression_ratio": ratio}) == other != OWN
    codecs = [other for field, other in neighbours(OWN, looked_at, ()) if field == "compression"]
    assert [(each.compression, each.compression_ratio) for each in codecs] == [("zstd", 0.3)]


def test_an_outage_says_whether_send_is_held_and_records_expire() -> None:
    own = replace(OWN, buffer_memory=MIB, delivery_timeout_ms=60_000)
    needed = what_if(of_load, own, LOOKED_AT, [AWAY])[0].memory
    assert needed is not None
    tight = replace(own, buffer_memory=int(needed / 1.5), request_timeout_ms=5_000, delivery_timeout_ms=20_000)
    found = by_option(what_if(of_load, tight, LOOKED_AT, [AWAY]))
    assert found[""][0].held_ms and not found[""][0].expires
    half, twice = found["buffer.memory"]
    assert half.held_ms is None or half.held_ms > found[""][0].held_ms
    assert twice.held_ms == 0
    assert [row.expires for row in found["delivery.timeout.ms"]] == [True, False]


def test_more_than_the_brokers_take_has_no_latency() -> None:
    row = what_if(lambda settings: of_load(settings, 1e9), OWN, LOOKED_AT)[0]
    assert row.p50_ms is None and row.p99_ms is None
