"""Numbers in sentences, and that each is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forebay._closed_forms.node import MIB, Settings
from forebay._closed_forms.wording import Facts, changed, option_value, options_of, plain, size
from forebay.config import ProducerConfig


@pytest.mark.parametrize(
    ("value", "said"),
    [(5.0, "5"), (8.246, "8.25"), (0.4321, "0.432"), (0.0, "0"), (117.6, "118"), (120_000, "120,000")],
)
def test_numbers(value: float, said: str) -> None:
    assert plain(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (17_200, "16.8 KiB"),
        (16_384, "16 KiB"),
        (MIB, "1 MiB"),
        (96 * MIB + 5, "96 MiB"),
        (500, "500 bytes"),
        (1500, "1,500 bytes"),
    ],
)
def test_sizes(value: float, said: str) -> None:
    assert size(value) == said


def test_options_that_differ_have_their_names() -> None:
    present = Settings()
    pairs = changed(present, replace(present, linger_ms=10.0, in_flight=2, compression="zstd", batch_size=65536))
    assert pairs == {
        "linger.ms": (5.0, 10.0),
        "batch.size": (16384, 65536),
        "max.in.flight.requests.per.connection": (5, 2),
        "compression.type": ("none", "zstd"),
    }
    facts = Facts()
    said = facts.options(pairs)
    assert said == "linger.ms 5 ▸ 10, batch.size 16 KiB ▸ 64 KiB, in flight 5 ▸ 2, compression none ▸ zstd"
    assert facts.values["max.in.flight.requests.per.connection_after"] == 2
    assert changed(present, present) == {}
    assert option_value("delivery.timeout.ms", 120_000) == "120,000"


def test_what_is_written_is_kept() -> None:
    facts = Facts()
    said = [
        facts.number("one", 8.0, "ms"),
        facts.share("part", 0.25),
        facts.share("less", -0.24, signed=True),
        facts.change("p99", 48.0, 23.0, "ms"),
        facts.size("memory", 2 * MIB),
    ]
    assert said == ["8 ms", "25 %", "-24 %", "48 ▸ 23 ms", "2 MiB"]
    assert facts.values == {
        "one": 8.0,
        "part": 0.25,
        "less": -0.24,
        "p99_before": 48.0,
        "p99_after": 23.0,
        "memory": 2 * MIB,
    }


def test_options_are_what_a_producer_takes() -> None:
    options = options_of(Settings(linger_ms=7.0))
    assert options["linger.ms"] == 7 and isinstance(options["linger.ms"], int)
    assert options["compression.type"] == "none"
    config = ProducerConfig({"bootstrap.servers": "b:1", **options})
    assert config["max.in.flight.requests.per.connection"] == 5
