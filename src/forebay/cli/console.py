"""``forebay console-producer``: the flags of kafka-console-producer as a job of ``forebay produce``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.cli import flags
from forebay.cli.failure import CommandError
from forebay.cli.input.files import STDIN, Layout
from forebay.cli.input.lines import LineFormat, console_format
from forebay.cli.produce import ProduceJob
from forebay.cli.properties import Given, pairs, read_lines

READERS = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
"""Kafka's own reader, by its new and its old name."""


def job_of(values: Mapping[str, Any]) -> ProduceJob:
    """What the flags say.

    Raises:
        CommandError: an unknown reader or reader property, or a value that cannot be.
        ConfigError: an option that is unknown, or has a value that cannot be.
    """
    if values["topic"] is None:
        raise CommandError("--topic is missing: name the topic")
    if values["line_reader"] not in (None, *READERS):
        raise CommandError(
            f"--line-reader {values['line_reader']!r} is a Java class, which this command cannot run; there is "
            f"{READERS[0]}"
        )
    given = flags.given_options(values, "--producer-property")
    if values["linger"] is not None:
        given = given.plus({"linger.ms": values["linger"]}, "--timeout")
    config = flags.configuration(given, 0)
    reader = _reader(values)
    lines, skip_bad = console_format(reader.values, LineFormat(text=True), reader.origins, escapes=False)
    return ProduceJob(
        config=config,
        topic=values["topic"],
        wait_s=flags.wait_s(None, config),
        paths=(STDIN,),
        layout=Layout("lines", lines, limit=config["max.request.size"]),
        skip_bad=skip_bad,
        skip_flag="--property ignore.error=true",
        sync=values["sync"],
        quiet=True,
    )


def _reader(values: Mapping[str, Any]) -> Given:
    """The reader's properties: files first, then single ones."""
    found = Given()
    for path in values["reader_files"]:
        found = found.with_lines(read_lines(path))
    return found.plus(pairs(values["reader"], "--reader-property"), "--reader-property")
