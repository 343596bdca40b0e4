"""``forebay doctor --spark``: what ``forebay.spark.doctor`` says, without a job of one's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from forebay.cli.failure import FAILED, OK, CommandError
from forebay.cli.properties import BROKERS


def run(
    given: Mapping[str, str],
    topic: str | None,
    master: str | None,
    write: Callable[[str], object],
    start: Callable[[str | None], Any] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Writes the diagnosis; 0 if nothing is in the way of a write.

    Args:
        given: options of the sink.
        topic: one that is to be written.
        start: makes a session; None: Spark's own.

    Raises:
        CommandError: a topic, or options, but no brokers.
        ConfigError: an option is wrong; before Spark starts.
    """
    options = dict(given)
    servers = "kafka.bootstrap.servers"
    if environment.get(BROKERS):
        options.setdefault(servers, environment[BROKERS])
    if topic is not None:
        options["topic"] = topic
    if options and servers not in options:
        raise CommandError(f"no broker is named: give --bootstrap-server host:port, or set {BROKERS}")
    from forebay.spark import doctor
    from forebay.spark.diagnosis import session_at
    from forebay.spark.options import parse

    if options:
        parse(options)
    session = (start or session_at)(master)
    try:
        found = doctor(session, options or None)
    finally:
        session.stop()
    write(str(found))
    return OK if found.ok else FAILED
