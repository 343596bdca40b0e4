"""From a configuration to a producer's parts: the only place that calls constructors.

Clock, network and randomness are parameters, so that a test assembles the same producer around its own.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay._accumulator.account import BATCH_COST, BATCH_COST_FREE
from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.partitioner import BuiltInPartitioner
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.schedule import BatchSchedule
from forebay._assembly.insight import show, socket_of, telemetry_of
from forebay._assembly.security import login_helper, mechanism, proxy
from forebay._assembly.surroundings import Components, Surroundings
from forebay._assembly.tls import credential_files, tls_filters
from forebay._assembly.user_parts import make_user_parts, partition_random
from forebay._delivery.callback_thread import hint_of
from forebay._delivery.sender_lock import SenderLock
from forebay._metrics.producer import ProducerMetrics
from forebay._network.client import NetworkClient
from forebay._network.metadata import Metadata
from forebay._network.options import NetworkOptions
from forebay._network.resolver import FAMILIES
from forebay._records.compression import CompressionType
from forebay._records.ratio import CompressionRatioEstimator
from forebay._runtime.backoff import ExponentialBackoff
from forebay._runtime.clock import Clock
from forebay._runtime.log import RateLimitedLogger
from forebay._runtime.threads import get_ident
from forebay._runtime.version import VERSION
from forebay._sender.sender import Sender, SenderOptions
from forebay._sender.thread import SenderThread
from forebay._transactions.manager import TransactionManager
from forebay.config import ProducerConfig, next_client_id
from forebay.errors import KafkaError
from forebay.model import Node

if TYPE_CHECKING:
    from forebay._sender.transactional import TransactionalRequests
    from forebay._transactions.session import TransactionCalls

logger = logging.getLogger("forebay.producer")

GROWING = ("linux", "darwin")
"""Systems whose send buffers grow with what a connection takes."""

# Process-wide on purpose, as in Java: two producers of a process never share a generated client.id.
_client_numbers: Iterator[int] = itertools.count(1)


class _Built:
    """The parts of a producer that exist so far; if a later part fails, they are closed in reverse order."""

    def __init__(self) -> None:
        self._closers: list[Callable[[], object]] = []

    def keep(self, part: Any, close: Callable[[], object] | None = None) -> Any:
        self._closers.append(part.close if close is None else close)
        return part

    def close(self) -> None:
        for close in reversed(self._closers):
            try:
                close()
            except Exception:  # the error that led here is the one to be raised
                logger.exception("While closing the parts of a producer that could not be made")


def not_made(what: str, error: Exception) -> KafkaError:
    """The error for the user, whatever was missing: a descriptor, a thread or memory (MemoryError has no message)."""
    return KafkaError(f"Failed to construct {what}: {str(error) or repr(error)}")


def assemble(config: ProducerConfig, around: Surroundings) -> Components:
    """Makes every part of a producer but its started thread; closes them again if one cannot be made."""
    built = _Built()
    try:
        return _assemble(config, around, built)
    except BaseException:
        built.close()
        raise


def _assemble(config: ProducerConfig, around: Surroundings, built: _Built) -> Components:
    client_id = next_client_id(config, _client_numbers)
    prefix = f"[Producer clientId={client_id}] "
    users = make_user_parts(config, {**dict(config.items()), "client.id": client_id}, around.random, built.keep)
    clock = around.clock
    metrics = built.keep(_metrics(config, client_id, clock))
    accumulator = _accumulator(config, around)
    metadata = _metadata(config, around, prefix)
    resolver = built.keep(around.resolver())
    options = _network_options(config, client_id, prefix, around)
    client = _client(around, resolver, metadata, metrics, options=options, built=built)
    accumulator.closer.wake, metadata.in_use = client.wakeup, accumulator.in_use
    report = _reporter(prefix, clock)
    transactions = _transactions(config, around)
    session = _session(config, around, transactions, accumulator)
    requests = None if session is None else _transactional_requests(config, around, session, client)
    sender = Sender(
        accumulator=accumulator,
        client=client,
        metadata=metadata,
        transactions=transactions,
        metrics=metrics,
        options=_sender_options(config, prefix),
        report=report,
        requests=requests,
    )
    shown = socket_of(config, client_id, prefix, built.keep) if around.shows else None
    telemetry = telemetry_of(config, around, prefix, sender=sender, client=client, metrics=metrics, session=session)
    ends = _ends(client, clock, metadata, resolver, options.helper, metrics, shown, telemetry)
    thread = SenderThread(
        name=f"kafka-producer-network-thread | {client_id}",
        sender=sender,
        clock=clock,
        patience_ms=config["delivery.timeout.ms"] + config["request.timeout.ms"],
        # The last once no request keeps a batch.
        resources=(accumulator.closer.end, *ends, users.close_all, sender.outcomes.unheard.end),
    )
    others = (users, report, transactions, session, getattr(options.sasl, "login", None), shown, telemetry)
    parts = Components(config, client_id, clock, metrics, metadata, accumulator, client, sender, thread, *others)
    show(parts, prefix, traces=around.shows)
    return parts


def _client(
    around: Surroundings,
    resolver: Any,
    metadata: Metadata,
    metrics: ProducerMetrics,
    *,
    options: NetworkOptions,
    built: _Built,
) -> NetworkClient:
    if options.helper is not None:
        built.keep(options.helper)
    selector = around.selector()
    built.keep(selector, selector.close_after_fork)
    return NetworkClient(
        selector=selector,
        resolver=resolver,
        metadata=metadata,
        options=options,
        metrics=metrics,
        clock=around.clock,
        random=around.random,
    )


def _metrics(config: ProducerConfig, client_id: str, clock: Clock) -> ProducerMetrics:
    metrics = ProducerMetrics(
        client_id,
        clock.now(),
        num_samples=config["metrics.num.samples"],
        window_ms=config["metrics.sample.window.ms"],
    )
    metrics.app_info(VERSION, "", clock.wall())
    return metrics


def _accumulator(config: ProducerConfig, around: Surroundings) -> RecordAccumulator:
    kind = CompressionType.of(config["compression.type"])
    levels = {
        CompressionType.GZIP: "compression.gzip.level",
        CompressionType.LZ4: "compression.lz4.level",
        CompressionType.ZSTD: "compression.zstd.level",
    }
    batch_size = max(config["batch.size"], 1)
    adaptive = config["partitioner.adaptive.partitioning.enable"] and config["partitioner.class"] is None
    schedule = BatchSchedule(
        linger_ms=config["linger.ms"],
        delivery_timeout_ms=config["delivery.timeout.ms"],
        backoff=_retry_backoff(config, around),
        adaptive=adaptive,
        availability_timeout_ms=config["partitioner.availability.timeout.ms"],
    )
    return RecordAccumulator(
        pool=_pool(config, batch_size),
        schedule=schedule,
        batch_size=batch_size,
        make_partitioner=lambda topic: BuiltInPartitioner(topic, batch_size, partition_random(around.random)),
        compressor=around.compressor(kind, config[levels[kind]] if kind in levels else None, get_ident),
        estimator=CompressionRatioEstimator(),
        max_raw_size=config["max.request.size"],
        clock=around.clock,
    )


def _pool(config: ProducerConfig, batch_size: int) -> BufferPool:
    total: int = config["buffer.memory"]
    share: float = config["buffer.memory.max.node.share"]
    return BufferPool(total, batch_size, 0 if share == 1 else max(1, int(share * total)), BATCH_COST, BATCH_COST_FREE)


def _retry_backoff(config: ProducerConfig, around: Surroundings) -> ExponentialBackoff:
    return ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], around.random)


def _metadata(config: ProducerConfig, around: Surroundings, prefix: str) -> Metadata:
    metadata = Metadata(
        refresh_backoff_ms=config["retry.backoff.ms"],
        refresh_backoff_max_ms=config["retry.backoff.max.ms"],
        max_age_ms=config["metadata.max.age.ms"],
        max_idle_ms=config["metadata.max.idle.ms"],
        random=around.random,
        logger=RateLimitedLogger("forebay.network", prefix=prefix),
    )
    metadata.bootstrap([Node(-1 - index, host, port) for index, (host, port) in enumerate(config.bootstrap)])
    return metadata


def _network_options(config: ProducerConfig, client_id: str, prefix: str, around: Surroundings) -> NetworkOptions:
    return NetworkOptions(
        client_id=client_id,
        request_timeout_ms=config["request.timeout.ms"],
        max_in_flight=config["max.in.flight.requests.per.connection"],
        reconnect_backoff_ms=config["reconnect.backoff.ms"],
        reconnect_backoff_max_ms=config["reconnect.backoff.max.ms"],
        setup_timeout_ms=config["socket.connection.setup.timeout.ms"],
        setup_timeout_max_ms=config["socket.connection.setup.timeout.max.ms"],
        connections_max_idle_ms=config["connections.max.idle.ms"],
        send_buffer_bytes=_send_buffer(config),
        receive_buffer_bytes=config["receive.buffer.bytes"],
        canonical_bootstrap=config["client.dns.lookup"] == "resolve_canonical_bootstrap_servers_only",
        rebootstrap=config["metadata.recovery.strategy"] == "rebootstrap",
        rebootstrap_trigger_ms=config["metadata.recovery.rebootstrap.trigger.ms"],
        software_version=VERSION,
        tls=tls_filters(config, around.clock),
        sasl=mechanism(config, around.clock, around.random),
        helper=login_helper(config, client_id),
        files=credential_files(config),
        proxy=proxy(config),
        address_map=config["broker.address.map"] or None,
        family=FAMILIES[config["broker.address.family"]],
        log_prefix=prefix,
    )


def _send_buffer(config: ProducerConfig) -> int:
    # A size that is set ends the growth of Linux's and macOS's own buffers, which come to several times the default: a
    # large request then waits for each of its parts.  The road not taken: -1 as the default, which Kafka has not.
    given = config.explicit("send.buffer.bytes") or sys.platform not in GROWING
    return int(config["send.buffer.bytes"]) if given else -1


def _transactions(config: ProducerConfig, around: Surroundings) -> TransactionManager | None:
    if not config["enable.idempotence"]:
        return None
    return TransactionManager(_retry_backoff(config, around), config["max.in.flight.requests.per.connection"])


def _session(
    config: ProducerConfig, around: Surroundings, manager: TransactionManager | None, accumulator: RecordAccumulator
) -> TransactionCalls | None:
    if manager is None or config["transactional.id"] is None:
        return None
    # Imported only here, because a producer without transactions starts faster without them.  Not imported later,
    # because a signal handler could interrupt an import; ``offsets`` is for later calls.
    import forebay._transactions.offsets  # noqa: F401
    from forebay._transactions.dialog import TransactionMachine
    from forebay._transactions.session import TransactionCalls

    dialog = TransactionMachine(
        config["transactional.id"],
        timeout_ms=config["transaction.timeout.ms"],
        manager=manager,
        accumulator=accumulator,
        backoff=_retry_backoff(config, around),
        lock=SenderLock(),
    )
    session = TransactionCalls(dialog)
    accumulator.appender.guard = session
    return session


def _transactional_requests(
    config: ProducerConfig,
    around: Surroundings,
    session: TransactionCalls,
    client: NetworkClient,
) -> TransactionalRequests:
    from forebay._sender.transactional import TransactionalRequests

    return TransactionalRequests(
        dialog=session.dialog,
        client=client,
        backoff=_retry_backoff(config, around),
        request_timeout_ms=config["request.timeout.ms"],
        patience_ms=config["delivery.timeout.ms"],
    )


def _sender_options(config: ProducerConfig, prefix: str) -> SenderOptions:
    max_in_flight = config["max.in.flight.requests.per.connection"]
    return SenderOptions(
        acks=config["acks"],
        retries=config["retries"],
        max_request_size=config["max.request.size"],
        request_timeout_ms=config["request.timeout.ms"],
        delivery_timeout_ms=config["delivery.timeout.ms"],
        guarantee_order=max_in_flight == 1,
        max_in_flight=max_in_flight,
        max_sparse=config["max.sparse.batches.in.flight"],
        log_prefix=prefix,
    )


def _reporter(prefix: str, clock: Clock) -> Callable[[BaseException, Any], None]:
    limited = RateLimitedLogger("forebay.callbacks", prefix=prefix)

    def report(error: BaseException, result: Any) -> None:
        key = (type(error), result.topic)
        where = f"{result.topic}-{result.partition}"
        hint = hint_of(error)
        limited.error(key, clock.now(), "A delivery callback for %s raised %r%s", where, error, hint, raised=error)

    return report


def _ends(client: NetworkClient, clock: Clock, metadata: Metadata, *others: Any) -> tuple[Callable[[], object], ...]:
    """The calls that end the network's parts, in order; one of ``others`` is None if there is no such part."""
    return (metadata.close, lambda: client.close(clock.now()), *(part.close for part in others if part is not None))


class Connections(NamedTuple):
    """What asks brokers without being a producer."""

    client: NetworkClient
    metadata: Metadata
    backoff: ExponentialBackoff
    closers: tuple[Callable[[], object], ...]
    """The calls that end them, in order."""


def assemble_connections(config: ProducerConfig, around: Surroundings, client_id: str, prefix: str) -> Connections:
    """Makes connections by the options of a producer, for an AdminClient; closes what exists if one part fails.

    Raises:
        KafkaError: a part cannot be made; its error is the cause.
    """
    built = _Built()
    try:
        return _assemble_connections(config, around, client_id, prefix, built)
    except Exception as error:
        built.close()
        raise not_made("the connections of an AdminClient", error) from error
    except BaseException:
        built.close()
        raise


def _assemble_connections(
    config: ProducerConfig, around: Surroundings, client_id: str, prefix: str, built: _Built
) -> Connections:
    metrics = built.keep(_metrics(config, client_id, around.clock))
    metadata = _metadata(config, around, prefix)
    resolver = built.keep(around.resolver())
    options = _network_options(config, client_id, prefix, around)
    client = _client(around, resolver, metadata, metrics, options=options, built=built)
    ends = _ends(client, around.clock, metadata, resolver, options.helper, metrics)
    return Connections(client, metadata, _retry_backoff(config, around), ends)
