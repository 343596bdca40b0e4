"""What a scratch topic is asked to learn how fast its brokers are: whether it may be written to, and times of answers.

Requests are made by hand, one record each, so that nothing of a producer is in the times.  Every record carries a
header that says whose it is, and a topic that holds any other record is left alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from forebay._assembly import Surroundings, system_surroundings
from forebay._protocol.api_versions import decode_api_versions, encode_api_versions
from forebay._protocol.list_offsets import READ_UNCOMMITTED
from forebay._protocol.produce import PartitionRecords, encode_produce
from forebay._protocol.produce_response import ProduceResponse, decode_produce
from forebay._protocol.versions import ApiKey
from forebay._records.batch_v2 import append_record, batch_header
from forebay._records.layout import BATCH_OVERHEAD
from forebay._runtime.clock import Clock
from forebay._runtime.version import VERSION
from forebay.admin._assembly import assemble_admin
from forebay.admin._session import AdminSession, Deadline, Question, Timed, raise_for
from forebay.admin._tail import PartitionReader
from forebay.admin._topics import describe_topics, described
from forebay.config import ProducerConfig
from forebay.errors import KafkaTimeoutError, RetriableError, UnknownTopicOrPartitionError
from forebay.model import Node, PartitionInfo, TopicPartition
from forebay.tune._checks import TuneError

HEADER = "forebay-tune"
"""Of every record that the tuner writes to a real cluster."""
# By the topic's name, which the versions with its id do not take; the first one has the record format of today.
PRODUCE_VERSIONS = (3, 12)
SLOWEST_MS = 1000.0
"""Of a request."""
ONE, ALL = 1, -1
"""``acks``."""


class Place(NamedTuple):
    """A partition to write to, and its leader."""

    topic: str
    partition: int
    leader: Node
    replicas: int


@contextlib.contextmanager
def asking(config: ProducerConfig, what: str, around: Surroundings | None) -> Iterator[tuple[AdminSession, Clock]]:
    """Connections to a cluster that answers, and the clock of their times.

    Args:
        config: says how the cluster is reached, and how long its first answer may take (``max.block.ms``).
        what: they are for.
        around: clock and network; None: the machine's.

    Raises:
        TuneError: nobody answers, or a broker goes away meanwhile.
    """
    around = around or system_surroundings()
    session = assemble_admin(config, around)
    timeout_ms: float = config["max.block.ms"]
    try:
        try:
            session.any_node(session.deadline("the first answer", timeout_ms))
        except (RetriableError, KafkaTimeoutError) as error:
            servers = ",".join(map(str, config.bootstrap))
            why = session.last_error() or error
            raise TuneError(f"{servers} did not answer within {timeout_ms / 1000:g} s: {why}") from error
        yield session, around.clock
    except (RetriableError, KafkaTimeoutError) as error:
        raise TuneError(f"{what} ended half way, because a broker went away: {error.message}") from error
    finally:
        session.close()


def parts_of(session: AdminSession, topic: str, deadline: Deadline) -> tuple[PartitionInfo, ...]:
    """A topic's partitions, each with its leader.

    Raises:
        TuneError: there is no such topic, or it has a partition without a leader.
        KafkaError: the brokers do not tell.
    """
    (found,) = described(describe_topics(session, topic, deadline, create=False)).topics
    if isinstance(found.error, UnknownTopicOrPartitionError):
        raise TuneError(f"topic {topic}: there is none; make one for the tuner alone, which it may fill")
    if found.error is not None:
        raise found.error
    for part in found.partitions:
        if part.leader is None:
            raise TuneError(f"topic {topic}: partition {part.partition} has no leader")
    return found.partitions


def places_of(session: AdminSession, topic: str, deadline: Deadline) -> list[Place]:
    """A partition of each broker that leads one.

    Raises:
        TuneError: as ``parts_of``; or it has records that are not the tuner's.
    """
    parts = parts_of(session, topic, deadline)
    places: dict[int, Place] = {}
    for part in parts:
        if part.leader is not None:
            place = Place(topic, part.partition, part.leader, len(part.replicas))
            places.setdefault(part.leader.id, place)
    check_own(session, topic, parts, deadline)
    return [places[node] for node in sorted(places)]


def check_own(
    session: AdminSession, topic: str, parts: tuple[PartitionInfo, ...], deadline: Deadline, *, first: bool = False
) -> None:
    """Reads the topic to its end.

    Args:
        first: only the first record of each partition is looked at.

    Raises:
        TuneError: it holds a record without the tuner's header.
    """
    for part in parts:
        reader = PartitionReader(session, TopicPartition(topic, part.partition), READ_UNCOMMITTED)
        position, end = reader.start(deadline), reader.end(deadline)
        while position < end:
            records, position = reader.step(position, end, deadline)
            for record in records[:1] if first else records:
                if all(name != HEADER for name, _value in record.headers):
                    raise TuneError(
                        f"topic {topic}: partition {part.partition} holds a record at offset {record.offset} that is "
                        "not the tuner's; name a topic that is for the tuner alone"
                    )
            if first and records:
                break


class Probe:
    """Asks the leader of one partition.

    Args:
        wall: of records; the Unix time in ms.
        timeout_ms: in which a broker begins to answer.
    """

    def __init__(self, session: AdminSession, place: Place, wall: Callable[[], int], timeout_ms: float) -> None:
        self._session = session
        self._place = place
        self._wall = wall
        self._timeout_ms = timeout_ms
        self.written: int = 0
        """Records that are in the topic for it."""

    def round_trips(self, count: int, pause_ms: float = 0.0) -> list[float]:
        """Ms of requests that a broker answers without any work, one after the other, each after a pause."""
        question = Question(
            ApiKey.API_VERSIONS,
            lambda version: encode_api_versions(version, HEADER, VERSION),
            decode_api_versions,
        )
        return [each.received - each.sent for each in self._timed(question, count, 1, pause_ms)]

    def produce(self, value: bytes, *, acks: int, count: int, in_flight: int = 1, pause_ms: float = 0.0) -> list[Timed]:
        """So many requests of one record; with one in flight, each after a pause.

        Raises:
            KafkaError: the broker refused one, or there was no answer.
        """
        records = bytearray()
        append_record(records, 0, 0, None, value, ((HEADER, b"1"),))
        payload = bytes(records)
        now = self._wall()
        header = bytes(
            batch_header(payload=[payload], attributes=0, record_count=1, base_timestamp=now, max_timestamp=now)
        )
        entry = PartitionRecords(
            self._place.topic, self._place.partition, header, [payload], BATCH_OVERHEAD + len(payload)
        )
        timeout_ms = int(self._session.request_timeout_ms)
        question = Question(
            ApiKey.PRODUCE,
            lambda version: encode_produce(version, None, acks, timeout_ms, [entry]),
            decode_produce,
            PRODUCE_VERSIONS,
        )
        found = self._timed(question, count, in_flight, pause_ms)
        for each in found:
            answer: ProduceResponse = each.body
            for part in answer.partitions:
                raise_for(part.error_code, part.error_message, topic=self._place.topic, partition=part.partition)
        self.written += count
        return found

    def _timed(self, question: Question, count: int, in_flight: int, pause_ms: float) -> list[Timed]:
        # Slow answers are what is measured; a broker that gives none is given up after request.timeout.ms.
        deadline = self._session.deadline("the measuring", self._timeout_ms + (SLOWEST_MS + pause_ms) * count)
        return self._session.timed(
            self._place.leader, question, deadline, count=count, in_flight=in_flight, pause_ms=pause_ms
        )


def spacings(answers: list[Timed], piece: int = 20) -> Iterator[float]:
    """Ms between answers that came behind each other, as the mean of each ``piece`` of them.

    Not one by one: answers that one turn of the client read have the same time.
    """
    bounds = [answers[at].received for at in range(0, len(answers), piece)]
    if len(bounds) < 2:
        bounds, piece = [answers[0].received, answers[-1].received], len(answers) - 1
    for before, after in pairwise(bounds):
        yield (after - before) / piece
