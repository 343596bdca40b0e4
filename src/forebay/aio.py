"""The producer for asyncio; it is written in ``forebay.producer.aio``."""

from __future__ import annotations

from forebay.producer.aio import AsyncKafkaProducer

__all__ = ["AsyncKafkaProducer"]


def __dir__() -> list[str]:
    return sorted(__all__)
