"""Brokers whose answers are damaged on their way: framing, correlation and contents, and what else may arrive."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from forebay._protocol.add_offsets_to_txn import decode_add_offsets_to_txn
from forebay._protocol.add_partitions_to_txn import decode_add_partitions_to_txn
from forebay._protocol.api_versions import decode_api_versions
from forebay._protocol.end_txn import decode_end_txn
from forebay._protocol.find_coordinator import decode_find_coordinator
from forebay._protocol.get_telemetry_subscriptions import decode_get_telemetry_subscriptions
from forebay._protocol.init_producer_id import decode_init_producer_id
from forebay._protocol.metadata import decode_metadata
from forebay._protocol.produce_response import decode_produce
from forebay._protocol.push_telemetry import decode_push_telemetry
from forebay._protocol.txn_offset_commit import decode_txn_offset_commit
from forebay.errors import ProtocolError
from forebay.testing.memory import Link
from tests.fakes.broker import API_VERSIONS, INIT_PRODUCER_ID, METADATA, PRODUCE, Received, ScriptedBroker
from tests.fakes.produce import NOT_LEADER, Answer, answer_produce, batches_of
from tests.fakes.world import World
from tests.property.frames import damaged
from tests.support.refusal import ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT, refusing
from tests.support.rewrite import FIND_COORDINATOR

GET_TELEMETRY, PUSH_TELEMETRY = 71, 72
DECODERS: dict[int, Callable[[int, bytes], Any]] = {
    API_VERSIONS: decode_api_versions,
    METADATA: decode_metadata,
    INIT_PRODUCER_ID: decode_init_producer_id,
    PRODUCE: decode_produce,
    FIND_COORDINATOR: decode_find_coordinator,
    ADD_PARTITIONS_TO_TXN: decode_add_partitions_to_txn,
    ADD_OFFSETS_TO_TXN: decode_add_offsets_to_txn,
    TXN_OFFSET_COMMIT: decode_txn_offset_commit,
    END_TXN: decode_end_txn,
    GET_TELEMETRY: decode_get_telemetry_subscriptions,
    PUSH_TELEMETRY: decode_push_telemetry,
}
FLEXIBLE_HEADER_SINCE = {
    METADATA: 9,
    INIT_PRODUCER_ID: 2,
    PRODUCE: 9,
    API_VERSIONS: 99,
    GET_TELEMETRY: 0,
    PUSH_TELEMETRY: 0,
}
"""3 for all others."""

NOT_COORDINATOR = 16

Damage = Callable[["Reply", random.Random], None]


class Recorder:
    """Stands in for the link while the broker answers, and keeps the answer."""

    def __init__(self) -> None:
        self.data = b""

    def send(self, data: bytes, delay_ms: float = 0) -> None:
        self.data += data


@dataclass
class Reply:
    """A truthful answer, not sent yet; ``data`` begins with its length."""

    request: Received
    data: bytes

    @property
    def link(self) -> Link:
        return self.request.link

    @property
    def head(self) -> int:
        """Bytes before the body."""
        return 9 if self.request.version >= FLEXIBLE_HEADER_SINCE.get(self.request.api_key, 3) else 8

    def framed(self, rest: bytes) -> bytes:
        return struct.pack(">i", len(rest)) + rest

    def with_body(self, body: bytes) -> bytes:
        return self.framed(self.data[4 : self.head] + body)

    def means_something(self, body: bytes) -> bool:
        try:
            DECODERS[self.request.api_key](self.request.version, body)
        except ProtocolError:
            return False
        return True


def wrong_correlation(reply: Reply, draw: random.Random) -> None:
    wrong = reply.request.correlation_id ^ (1 << draw.randrange(32))
    reply.link.send(reply.data[:4] + struct.pack(">I", wrong & 0xFFFFFFFF) + reply.data[8:])


def impossible_size(reply: Reply, draw: random.Random) -> None:
    size = draw.choice((-1, -2, -(2**31), 0, 3, (100 << 20) + 1, 2**31 - 1))
    reply.link.send(struct.pack(">i", size) + reply.data[4:])


def larger_size(reply: Reply, draw: random.Random) -> None:
    """The rest never comes."""
    reply.link.send(struct.pack(">i", len(reply.data) + draw.choice((1, 1000, 90 << 20))) + reply.data[4:])


def smaller_size(reply: Reply, draw: random.Random) -> None:
    """The frame ends early, and its last bytes pass for the beginning of the next."""
    size = draw.randrange(4, len(reply.data) - 4)
    if reply.means_something(reply.data[reply.head : size + 4]):
        size = 4
    reply.link.send(struct.pack(">i", size) + reply.data[4:])


def cut_and_closed(reply: Reply, draw: random.Random) -> None:
    reply.link.send(reply.data[: draw.randrange(len(reply.data))])
    reply.link.close()


def cut_short(reply: Reply, draw: random.Random) -> None:
    """A whole frame with a part of the body."""
    body = reply.data[reply.head :]
    body = body[: draw.randrange(len(body))]
    reply.link.send(reply.with_body(b"" if reply.means_something(body) else body))


def garbage(reply: Reply, draw: random.Random) -> None:
    """No Kafka at all; what looks like a length could be one, and is waited for."""
    reply.link.send(draw.choice((b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\0\2\2\x16", draw.randbytes(64))))


def silence(reply: Reply, draw: random.Random) -> None:
    """Only the announcement of an answer."""
    reply.link.send(reply.data[: draw.choice((1, 3, 4, 7, 8))])


def of_another_api(reply: Reply, draw: random.Random) -> None:
    """A valid answer to something that was not asked."""
    body = struct.pack(">i", -2) + draw.randbytes(3)
    reply.link.send(reply.with_body(b"" if reply.means_something(body) else body))


def senseless_body(reply: Reply, draw: random.Random) -> None:
    """Damaged so that it cannot be read."""
    body = reply.data[reply.head :]
    for _ in range(200):
        changed = damaged(body, draw)
        if not reply.means_something(changed):
            break
    else:
        changed = b""
    reply.link.send(reply.with_body(changed))


SENSELESS: dict[str, Damage] = {
    damage.__name__: damage
    for damage in (
        wrong_correlation,
        impossible_size,
        larger_size,
        smaller_size,
        cut_and_closed,
        cut_short,
        garbage,
        silence,
        of_another_api,
        senseless_body,
    )
}
"""None of these says anything about the request, and each costs the connection."""


def longer_body(reply: Reply, draw: random.Random) -> None:
    """The truth, with bytes behind it inside its frame: fields of a newer broker, ignored as in Java."""
    reply.link.send(reply.framed(reply.data[4:] + draw.randbytes(9)))


def in_pieces(reply: Reply, draw: random.Random) -> None:
    """The truth, byte by byte."""
    for at in range(len(reply.data)):
        reply.link.send(reply.data[at : at + 1], delay_ms=at * 0.1)


def twice(reply: Reply, draw: random.Random) -> None:
    """The truth, and again: the second costs the connection, the first counts."""
    reply.link.send(reply.data * 2)


def frame_behind(reply: Reply, draw: random.Random) -> None:
    """The truth, and something nobody asked for."""
    reply.link.send(reply.data + reply.framed(draw.randbytes(20)))


TRUE: dict[str, Damage] = {damage.__name__: damage for damage in (longer_body, in_pieces, twice, frame_behind)}
"""With these the answer arrives."""


def lie(reply: Reply, draw: random.Random) -> None:
    """Damaged, but it can be read: a well-formed answer that is not what the broker said."""
    body = reply.data[reply.head :]
    for _ in range(100):
        changed = damaged(body, draw)
        if changed != body and reply.means_something(changed):
            reply.link.send(reply.with_body(changed))
            return
    reply.link.send(reply.data)


@dataclass
class Damaged:
    """Which answer met with what."""

    api_key: int
    what: str
    link: Link
    when: float


@dataclass
class Damager:
    """Stands before the brokers' own answers.

    Args:
        choose: what becomes of an answer; None sends it as it is.
        processed: whether the broker does what a produce request asks for when its answer is damaged.
    """

    world: World
    choose: Callable[[Received], Damage | None]
    draw: random.Random
    processed: Callable[[], bool] = lambda: True
    done: list[Damaged] = field(default_factory=list)

    def install(self) -> None:
        for broker in self.world.cluster.brokers.values():
            for api_key in DECODERS:
                own = broker.script.get(api_key) or self._default(broker, api_key)
                if own is not None:
                    broker.script[api_key] = partial(self._answer, own)

    def _default(self, broker: ScriptedBroker, api_key: int) -> Callable[[Received], None] | None:
        if api_key == API_VERSIONS:
            return broker.answer_versions
        if api_key != METADATA:
            return None
        return lambda request: request.answer(self.world.cluster.metadata(request), broker.delay_ms)

    def _answer(self, own: Callable[[Received], None], request: Received) -> None:
        damage = self.choose(request)
        if damage is None:
            own(request)
            return
        recorder = Recorder()
        recorded = replace(request, link=cast("Link", recorder))
        if request.api_key in UNDONE and damage.__name__ not in TRUE and not self.processed():
            UNDONE[request.api_key](recorded)
        else:
            own(recorded)
        assert recorder.data, "the broker had nothing to say"
        self.done.append(Damaged(request.api_key, damage.__name__, request.link, self.world.now))
        damage(Reply(request, recorder.data), self.draw)


def _refuse_records(request: Received) -> None:
    answer_produce(request, {where: Answer(NOT_LEADER) for where in batches_of(request)})


def _refuse(request: Received) -> None:
    request.answer(refusing(request.api_key, request.version, request.body, NOT_COORDINATOR))


UNDONE: dict[int, Callable[[Received], None]] = {
    PRODUCE: _refuse_records,
    **dict.fromkeys((ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, END_TXN), _refuse),
}
"""Answers of brokers that did not do what was asked, for requests that leave something behind if it is done."""
