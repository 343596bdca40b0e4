"""Faults of the embedded broker for the length of a ``with`` block; behind it there is no fault of that kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from forebay._protocol.versions import SUPPORTED, ApiKey, api_name
from forebay.errors import IllegalArgumentError, KafkaError

MANY = 10_000
"""Errors that are kept ready for a block without a number of its own."""


class FaultyBroker(Protocol):
    """What faults are made with; ``EmbeddedBroker`` says what each call does."""

    def node_down(self, node: int | None = None) -> None: ...
    def node_up(self, node: int | None = None) -> None: ...
    def set_rtt(self, rtt_ms: int, node: int | None = None) -> None: ...
    def push_request_errors(self, api_key: int, *codes: int | type[KafkaError]) -> None: ...
    def clear_request_errors(self, api: int) -> None: ...
    def set_topic_error(self, name: str, code: int | type[KafkaError]) -> None: ...
    def set_api_versions(self, api_key: int, lowest: int, highest: int) -> None: ...
    def set_leader(self, topic: str, partition: int, node: int | None) -> None: ...


class Faults:
    """``broker.faults``; each method is a context.

    ::

        with kafka_broker.faults.refuse("Produce", NotLeaderOrFollowerError, times=3):
            ...

    Faults of different kinds may be nested.  An error is given as its class, or as the protocol's number.
    """

    def __init__(self, broker: FaultyBroker) -> None:
        self._broker = broker

    @contextmanager
    def down(self, node: int | None = None) -> Iterator[None]:
        """``node`` (None: every node) cuts its connections and takes no new ones."""
        self._broker.node_down(node)
        try:
            yield
        finally:
            self._broker.node_up(node)

    @contextmanager
    def slow(self, delay_ms: int, node: int | None = None) -> Iterator[None]:
        """Each answer of ``node`` (None: of every node) comes ``delay_ms`` later."""
        self._broker.set_rtt(delay_ms, node)
        try:
            yield
        finally:
            self._broker.set_rtt(0, node)

    @contextmanager
    def refuse(self, api: str | int, error: type[KafkaError] | int, *, times: int | None = None) -> Iterator[None]:
        """Requests of an API are refused with ``error``, ``times`` of them or all of the block's.

        Args:
            api: Kafka's name for it, such as ``"Produce"`` or ``"InitProducerId"``, or its number.  Metadata answers
                have no such error: see ``topic_error``.
            error: ``forebay.testing.DISCONNECT`` closes the connection instead.

        Raises:
            IllegalArgumentError: there is no such API, or ``times`` is below 1.
        """
        key = api_key(api)
        if times is not None and times < 1:
            raise IllegalArgumentError(f"times must be at least 1, not {times}")
        self._broker.push_request_errors(key, *[error] * (MANY if times is None else times))
        try:
            yield
        finally:
            self._broker.clear_request_errors(key)

    @contextmanager
    def topic_error(self, topic: str, error: type[KafkaError] | int) -> Iterator[None]:
        """Metadata names ``error`` for the topic, as when it is unknown or not authorized."""
        self._broker.set_topic_error(topic, error)
        try:
            yield
        finally:
            self._broker.set_topic_error(topic, 0)

    @contextmanager
    def without_leader(self, topic: str, partition: int = 0, *, back_to: int = 1) -> Iterator[None]:
        """Nobody leads the partition; behind the block node ``back_to`` does.

        The broker takes no Produce above version 9 from then on, which only a log of its requests shows.
        """
        lowest, highest = SUPPORTED[ApiKey.PRODUCE]
        # The mock ends when Produce v10 asks for a partition without a leader.
        self._broker.set_api_versions(ApiKey.PRODUCE, lowest, min(highest, 9))
        self._broker.set_leader(topic, partition, None)
        try:
            yield
        finally:
            self._broker.set_leader(topic, partition, back_to)


def api_key(api: str | int) -> int:
    """The number of an API.

    Raises:
        IllegalArgumentError: unknown; names those that are known.
    """
    if isinstance(api, int):
        return api
    names = {api_name(key): int(key) for key in ApiKey}
    if api not in names:
        raise IllegalArgumentError(f"API {api!r} is not known; there are {', '.join(names)}")
    return names[api]
