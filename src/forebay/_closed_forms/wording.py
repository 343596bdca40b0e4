"""Numbers in sentences: each is written once, for people, and kept once, for programs; and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forebay._closed_forms.node import LEAST_RATIO, MIB, Settings

KIB = 1 << 10
OPTIONS = {
    "linger_ms": "linger.ms",
    "batch_size": "batch.size",
    "in_flight": "max.in.flight.requests.per.connection",
    "compression": "compression.type",
    "buffer_memory": "buffer.memory",
    "delivery_timeout_ms": "delivery.timeout.ms",
    "max_request_size": "max.request.size",
}
"""The fields of settings that are options, and their names."""
SHORT = {"max.in.flight.requests.per.connection": "in flight", "compression.type": "compression"}
"""What an option is called in a sentence, if not by its name."""
PARTS = {
    "held": "held in send",
    "closing": "until its batch was closed",
    "waiting": "until the node took it",
    "flight": "in flight",
}
CAUSES = {
    "full": "full",
    "next": "no room for the next record",
    "linger": "linger over",
    "along": "taken along",
    "memory": "memory exhausted",
}
UNITS = ("B", "KiB", "MiB", "GiB")
VERDICTS = {
    "change": "set",
    "leave": "leave the settings as they are",
    "unmet": "nothing that was tried keeps the goal; the nearest is",
}
COLUMNS = {"present": "today", "defaults": "defaults", "best": "best found"}
ONE_SEED = "one seed was run, so no interval is known"
NOT_SERVED = "not served, by closed forms: more comes than the brokers take"
OF_SIZE = ("batch.size", "buffer.memory", "max.request.size")

Value = float | int | str


def plain(value: float) -> str:
    """Three digits that count, or a whole number with its thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def size(value: float) -> str:
    """Bytes, in MiB or KiB where that is a whole number or nearly one."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if value >= unit and (value % unit == 0 or value >= 10 * unit):
            return f"{plain(value / unit)} {name}"
    return f"{plain(value)} bytes"


def counted(number: int, what: str) -> str:
    """``2 nodes``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def in_bytes(size: float) -> str:
    """``12.3 KiB``."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:,.0f} {UNITS[unit]}" if unit == 0 or number >= 100 else f"{number:,.1f} {UNITS[unit]}"


def option_value(name: str, value: Value) -> str:
    """As it stands in a sentence."""
    if isinstance(value, str):
        return value
    return size(value) if name in OF_SIZE else plain(value)


def settings_of(config: Mapping[str, Any], ratio: float) -> Settings:
    """Those of a producer; of a ``batch.size`` of 0 each record is a batch, as of one of 1."""
    values: dict[str, Any] = {name: config[option] for name, option in OPTIONS.items()}
    values["batch_size"] = max(1, values["batch_size"])
    return Settings(
        **values,
        compression_ratio=max(LEAST_RATIO, ratio),
        request_timeout_ms=config["request.timeout.ms"],
        retry_backoff_max_ms=config["retry.backoff.max.ms"],
    )


def options_of(settings: Settings) -> dict[str, int | str]:
    """The options by name, as a producer takes them: whole numbers of ms and of bytes."""
    values = {option: getattr(settings, each) for each, option in OPTIONS.items()}
    return {option: value if isinstance(value, str) else round(value) for option, value in values.items()}


def options_changed(present: Settings, settings: Settings) -> dict[str, int | str]:
    """The options that are to be others."""
    before = options_of(present)
    return {name: value for name, value in options_of(settings).items() if value != before[name]}


def changed(present: Settings, settings: Settings) -> dict[str, tuple[Value, Value]]:
    """The options that differ, by name: what they are, and what they are to be."""
    pairs = {option: (getattr(present, each), getattr(settings, each)) for each, option in OPTIONS.items()}
    return {option: pair for option, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(slots=True)
class Facts:
    """Writes numbers for a sentence and keeps each under a name."""

    values: dict[str, Value] = field(default_factory=dict)

    def number(self, name: str, value: float, unit: str = "") -> str:
        self.values[name] = value
        return f"{plain(value)} {unit}".rstrip()

    def size(self, name: str, value: float) -> str:
        """Bytes."""
        self.values[name] = value
        return size(value)

    def share(self, name: str, value: float, *, signed: bool = False) -> str:
        """A share, as per cent."""
        self.values[name] = value
        return f"{100 * value:+.3g} %" if signed else f"{100 * value:.3g} %"

    def change(self, name: str, before: float, after: float, unit: str = "") -> str:
        """A number before and after."""
        self.values[f"{name}_before"], self.values[f"{name}_after"] = before, after
        return f"{plain(before)} ▸ {plain(after)} {unit}".rstrip()

    def options(self, pairs: dict[str, tuple[Value, Value]]) -> str:
        """Options before and after, one after the other."""
        said = []
        for name, (before, after) in pairs.items():
            self.values[f"{name}_before"], self.values[f"{name}_after"] = before, after
            said.append(f"{SHORT.get(name, name)} {option_value(name, before)} ▸ {option_value(name, after)}")
        return ", ".join(said)
