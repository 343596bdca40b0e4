"""Configurations with a bootstrap server, and the table by name."""

from __future__ import annotations

from typing import Any

from forebay.config import ProducerConfig, table
from forebay.config._option import Feature

EVERYTHING = frozenset(Feature)
OPTIONS = {option.name: option for option in table()}


def config(values: dict[str, Any] | None = None, **options: Any) -> ProducerConfig:
    return ProducerConfig({"bootstrap.servers": "localhost:9999", **(values or {})}, **options)


def with_all(values: dict[str, Any]) -> ProducerConfig:
    """With every feature, to test rules of what is refused in this version."""
    return ProducerConfig({"bootstrap.servers": "localhost:9999", **values}, features=EVERYTHING)
