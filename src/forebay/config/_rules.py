"""Rules between options: what is refused, and what is adjusted and said.

Each rule gets the parsed values, which it may change, and what the user gave; it returns what to log.  The order
matters: idempotence may be switched off before transactions ask for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from forebay.config._option import INT_MAX
from forebay.config._proxy import parse_proxy
from forebay.config._security_rules import placeholder_rule, sasl_rule, tls_rule
from forebay.errors import ConfigError
from forebay.model._wire import shown, text_fault

Values = MutableMapping[str, Any]
Explicit = Collection[str]


class Note(NamedTuple):
    """Something that was adjusted, or looks wrong but is allowed."""

    level: int
    text: str


def _delivery_timeout(values: Values, explicit: Explicit) -> Iterator[Note]:
    linger, request = min(values["linger.ms"], INT_MAX), values["request.timeout.ms"]
    least = min(linger + request, INT_MAX)
    given = values["delivery.timeout.ms"]
    if given >= least:
        return
    sums = f"linger.ms + request.timeout.ms ({linger} + {request} = {least})"
    if "delivery.timeout.ms" in explicit:
        raise ConfigError(f"delivery.timeout.ms is {given}: must be at least {sums}")
    values["delivery.timeout.ms"] = least
    yield Note(logging.WARNING, f"delivery.timeout.ms is raised from its default {given} to {sums}")


def _idempotence(values: Values, explicit: Explicit) -> Iterator[Note]:
    if not values["enable.idempotence"]:
        return
    in_flight = "max.in.flight.requests.per.connection"
    needs = (
        (values["retries"] > 0, "retries", "at least 1", logging.INFO),
        (values["acks"] == -1, "acks", "all", logging.WARNING),
        (values[in_flight] <= 5, in_flight, "at most 5", logging.WARNING),
    )
    for met, name, wanted, level in needs:
        if met:
            continue
        if "enable.idempotence" in explicit:
            raise ConfigError(f"{name} is {values[name]}: must be {wanted} with enable.idempotence=true")
        values["enable.idempotence"] = False
        yield Note(level, f"Idempotence is switched off, since {name} is {values[name]} and would have to be {wanted}")


def _transactions(values: Values, explicit: Explicit) -> Iterator[Note]:
    if "transactional.id" in explicit and not values["enable.idempotence"]:
        raise ConfigError(
            "transactional.id needs idempotence: enable.idempotence=true (the default), acks=all, retries above 0 "
            "and max.in.flight.requests.per.connection at most 5"
        )
    yield from ()


def _client_id(values: Values, explicit: Explicit) -> Iterator[Note]:
    made = client_id_of(values, explicit, iter((0,)))
    fault = text_fault(made)
    if fault is not None:
        raise ConfigError(f"Of transactional.id the client.id '{shown(made)}' is made, and {fault}; give a client.id")
    yield from ()


def client_id_of(values: Mapping[str, Any], explicit: Explicit, counter: Iterator[int]) -> str:
    """``client.id`` as given (even empty), else ``producer-`` and the transactional.id or the counter's next number."""
    if "client.id" in explicit:
        return str(values["client.id"])
    transactional_id = values["transactional.id"]
    return f"producer-{transactional_id if transactional_id is not None else next(counter)}"


def _backoffs(values: Values, explicit: Explicit) -> Iterator[Note]:
    if "reconnect.backoff.ms" in explicit and "reconnect.backoff.max.ms" not in explicit:
        values["reconnect.backoff.max.ms"] = values["reconnect.backoff.ms"]
    pairs = (
        ("retry.backoff.ms", "retry.backoff.max.ms"),
        ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
        ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
    )
    for first, limit in pairs:
        if values[first] > values[limit]:
            yield Note(
                logging.WARNING,
                f"{first} ({values[first]}) is above {limit} ({values[limit]}): it is always {values[limit]}",
            )


def _node_share(values: Values, explicit: Explicit) -> Iterator[Note]:
    share, memory = values["buffer.memory.max.node.share"], values["buffer.memory"]
    if share == 1:
        return
    for name in ("batch.size", "max.request.size"):
        # More than the whole buffer is refused record by record.
        needed = min(values[name], memory)
        if share * memory < needed:
            raise ConfigError(
                f"buffer.memory.max.node.share is {share:g}: of buffer.memory ({memory}) that is "
                f"{int(share * memory)} bytes a broker, which must be at least {name} ({needed})"
            )
    yield from ()


def _security(values: Values, explicit: Explicit) -> Iterator[Note]:
    for rule in (placeholder_rule, tls_rule, sasl_rule):
        yield from (Note(*message) for message in rule(values, explicit))


def _proxy(values: Values, explicit: Explicit) -> Iterator[Note]:
    if values["proxy.url"] is not None:
        if not values["proxy.url"].deferred:  # else it is read where the producer is made
            parse_proxy(values["proxy.url"])
        if values["client.dns.lookup"] == "resolve_canonical_bootstrap_servers_only":
            raise ConfigError(
                "client.dns.lookup=resolve_canonical_bootstrap_servers_only looks names up here, and with proxy.url "
                "the proxy does; give one of them"
            )
    yield from ()


def _partitioner(values: Values, explicit: Explicit) -> Iterator[Note]:
    chosen = values["partitioner.class"]
    if chosen is None:
        return
    if not (isinstance(chosen, str) or callable(chosen) or callable(getattr(chosen, "partition", None))):
        raise ConfigError(f"partitioner.class must be callable or have partition(...), got {type(chosen).__name__}")
    for name in ("partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable"):
        if name in explicit and values[name]:
            yield Note(logging.WARNING, f"{name} has no effect: it is for the built-in partitioner")


RULES: tuple[Callable[[Values, Explicit], Iterator[Note]], ...] = (
    _delivery_timeout,
    _idempotence,
    _transactions,
    _client_id,
    _backoffs,
    _node_share,
    _security,
    _proxy,
    _partitioner,
)
