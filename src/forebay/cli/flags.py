"""The flags of ``produce`` and ``perf`` as click options, with the names that kcat's and Kafka's own tools have."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from forebay._runtime.extras import of_extra

with of_extra(__name__, "cli"):
    import click

from forebay.cli.failure import CommandError
from forebay.cli.input.files import FORMATS, Layout
from forebay.cli.input.jsonl import JsonFormat
from forebay.cli.input.lines import LineFormat, console_format
from forebay.cli.input.rows import HeaderPairs, unescape
from forebay.cli.input.tables import TableFormat
from forebay.cli.properties import Given, load_properties, pairs
from forebay.cli.report.progress import WAIT_S, Display, LogLines
from forebay.config import ProducerConfig
from forebay.model._wire import shown, topic_fault

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[[Any], Any]

SEEN = "`ps` shows it to everybody on this machine: a password belongs into a file, or into ${env:NAME}."
"""The end of the help of flags that take options; ``docs/command_line.md`` has the whole."""

CONSOLE_OPTIONS = {
    "--compression-codec": "compression.type",
    "--batch-size": "batch.size",
    "--max-partition-memory-bytes": "batch.size",
    "--max-block-ms": "max.block.ms",
    "--max-memory-bytes": "buffer.memory",
    "--message-send-max-retries": "retries",
    "--metadata-expiry-ms": "metadata.max.age.ms",
    "--request-required-acks": "acks",
    "--request-timeout-ms": "request.timeout.ms",
    "--retry-backoff-ms": "retry.backoff.ms",
    "--socket-buffer-size": "send.buffer.bytes",
}
"""kafka-console-producer's flags that are producer options; not in the help, for -X does the same."""

LONGEST_S = 2**31 // 1000


class _Seconds(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """A time that is to be waited."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails for what is none, for NaN, and for times that are too short or too long."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0.001 <= number <= LONGEST_S:
            self.fail(f"{value!r}: write seconds, from 0.001 to {LONGEST_S}", param, ctx)
        return number


class _Topic(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """A topic's name, which Kafka allows."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name; fails for one that no topic can have, before any broker is asked."""
        fault = topic_fault(value)
        if fault is not None:
            self.fail(f"'{shown(value)}' names no topic that can be: {fault}", param, ctx)
        return str(value)


TOPIC: Any = _Topic()
"""The type of every option and argument that names a topic."""


def _wait(what: str) -> Option:
    return click.option(
        "--timeout", "wait_s", type=_Seconds(), help=f"Seconds to wait for {what}: max.block.ms if given, else 10."
    )


VERBOSE = click.option("-v", "--verbose", count=True, help="Show the producer's warnings too; twice: what it does.")


def apply(options: Iterable[Option]) -> Callable[[Decorated], Decorated]:
    """One decorator for all ``options``, which the help shows in this order."""

    def decorate(function: Decorated) -> Decorated:
        for option in reversed(list(options)):
            function = option(function)
        return function

    return decorate


def _connection(property_flags: Sequence[str], file_flags: Sequence[str]) -> list[Option]:
    return [
        click.option(
            "-b",
            "--bootstrap-server",
            "--bootstrap-servers",
            "--broker-list",
            "bootstrap",
            metavar="HOST:PORT[,...]",
            help="Brokers to begin with.",
        ),
        click.option(
            *property_flags,
            "options",
            multiple=True,
            metavar="NAME=VALUE",
            help=f"A producer option by Java's name.  {SEEN}",
        ),
        click.option(
            *file_flags, "files", multiple=True, metavar="FILE", help="Producer options in a Java properties file."
        ),
    ]


PRODUCE: list[Option] = [
    click.option("-t", "--topic", type=TOPIC, required=True, help="The topic to write to."),
    *_connection(("-X", "--command-property", "--producer-property"), ("-F", "--command-config", "--producer.config")),
    click.option(
        "--format", "form", type=click.Choice(FORMATS), help="Of all inputs; else each file's suffix says it."
    ),
    click.option("-K", "key_delimiter", metavar="DELIM", help="Split each line into key and value here (-K:)."),
    click.option("-D", "delimiter", default=r"\n", show_default=True, metavar="DELIM", help="Ends a line."),
    click.option("-k", "key", metavar="KEY", help="The key of records that have none."),
    click.option("-H", "headers", multiple=True, metavar="NAME=VALUE", help="A header for each record; NAME: null."),
    click.option("-p", "partition", type=click.IntRange(-1), metavar="N", help="The partition of every record."),
    click.option("-z", "codec", metavar="CODEC", help="Compression: gzip, snappy, lz4, zstd or none."),
    click.option("-c", "count", type=click.IntRange(1), metavar="N", help="End after N records."),
    click.option("-l", "by_line", is_flag=True, help="Files are read by lines, as they always are; for kcat's users."),
    click.option("-Z", "empty_is_null", is_flag=True, help="Send empty keys and values as null."),
    click.option("--key-field", metavar="NAME", help="JSON: the object's field that is the key."),
    click.option("--envelope", is_flag=True, help="JSON: objects with key, value, headers, partition, timestamp."),
    click.option("--key-column", metavar="NAME", help="CSV, Parquet: the column that is the key."),
    click.option("--value-column", metavar="NAME", help="CSV, Parquet: the column that is the value, not the row."),
    click.option("--separator", default=",", metavar="CHAR", help="CSV: between fields (comma; .tsv: tab)."),
    _wait("the topic"),
    click.option("--skip-bad", is_flag=True, help="Report input that makes no record, and go on after it."),
    click.option(
        "--property",
        "--reader-property",
        "reader",
        multiple=True,
        metavar="NAME=VALUE",
        help="kafka-console-producer's: parse.key, key.separator, parse.headers, null.marker, ...",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Neither progress nor summary; errors only."),
    VERBOSE,
    *(
        click.option(flag, name, hidden=True)
        for flag, name in ((flag, flag.strip("-").replace("-", "_")) for flag in CONSOLE_OPTIONS)
    ),
]


def _of_kcat_only(*names: str, takes: str | None = None) -> Option:
    """A flag of kcat's that is taken only to say why it is refused."""
    if takes is None:
        return click.option(*names, hidden=True, is_flag=True)
    return click.option(*names, metavar=takes, hidden=True)


CLUSTER: list[Option] = [
    *_connection(("-X", "--command-property"), ("-F", "--command-config")),
    _wait("each answer"),
    click.option("--json", "as_json", is_flag=True, help="Write JSON, not a table."),
]

TUNE_CLUSTER: list[Option] = [
    click.option("-t", "--topic", type=TOPIC, required=True, help="A topic that is for the tuner alone."),
    *_connection(("-X", "--command-property"), ("-F", "--command-config")),
    _wait("each step"),
]

DOCTOR: list[Option] = [
    click.option(
        "--spark", is_flag=True, required=True, help="What writes of Spark need; nothing else is looked at yet."
    ),
    click.option("--master", metavar="URL", help="Spark's master; else that of Spark's own configuration."),
    click.option("-t", "--topic", type=TOPIC, help="A topic that is to be written."),
    *_connection(("-X", "--command-property"), ("-F", "--command-config")),
]

KCAT: list[Option] = [
    click.option("-P", "produce", is_flag=True, help="Write; what it does if it is not said."),
    click.option("-L", "metadata", is_flag=True, help="List brokers and topics."),
    click.option("-b", "brokers", metavar="HOST[:PORT][,...]", help="Brokers to begin with; the port is 9092."),
    click.option("-t", "topic", metavar="TOPIC", help="The topic to write to, or to list."),
    click.option("-p", "partition", type=click.IntRange(-1), metavar="N", help="The partition; -1: the partitioner's."),
    click.option("-D", "delimiter", default=r"\n", show_default=True, metavar="DELIM", help="Ends a message."),
    click.option("-K", "key_delimiter", metavar="DELIM", help="Split each message into key and value here."),
    click.option("-k", "key", metavar="KEY", help="The key of messages that have none."),
    click.option("-H", "headers", multiple=True, metavar="NAME=VALUE", help="A header for each message; NAME: null."),
    click.option("-l", "by_line", is_flag=True, help="A file is read by lines; else it is one message."),
    click.option("-T", "tee", is_flag=True, help="Copy the messages to standard output."),
    click.option("-c", "count", type=int, metavar="N", help="End after N messages; of files as a whole all are sent."),
    click.option("-Z", "empty_is_null", is_flag=True, help="Send empty keys and values as null."),
    click.option("-z", "codec", metavar="CODEC", help="Compression: gzip, snappy, lz4 or zstd."),
    click.option(
        "-m",
        "metadata_s",
        type=_Seconds(),
        default=5.0,
        show_default=True,
        metavar="SECONDS",
        help="To wait for metadata.",
    ),
    click.option("-F", "config_file", metavar="FILE", help="Options; else KCAT_CONFIG or ~/.config/kcat.conf."),
    click.option(
        "-X",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"An option by librdkafka's name; list, dump.  {SEEN}",
    ),
    click.option("-E", "go_on", is_flag=True, help="Go on after an error that passes, and after bad input."),
    click.option("-J", "as_json", is_flag=True, help="With -L: as JSON."),
    click.option("-d", "debug", metavar="WHAT", help="Show what the producer does."),
    click.option("-q", "quiet", is_flag=True, help="Errors only."),
    click.option("-v", "verbose", count=True, help="Show a summary; twice: the producer's warnings."),
    click.option("-V", "version", is_flag=True, help="Show the version."),
    _of_kcat_only("-C", "consume"),
    _of_kcat_only("-G", "group", takes="GROUP"),
    _of_kcat_only("-Q", "query"),
    _of_kcat_only("-M", "mock", takes="BROKERS"),
    _of_kcat_only("-o", "offset", takes="OFFSET"),
    _of_kcat_only("-e", "until_end"),
    _of_kcat_only("-f", "form", takes="FORMAT"),
    _of_kcat_only("-O", "show_offsets"),
    _of_kcat_only("-u", "unbuffered"),
    _of_kcat_only("-s", "deserializer", takes="SERDES"),
    _of_kcat_only("-r", "registry", takes="URL"),
]

CONSOLE: list[Option] = [
    click.option("--topic", type=TOPIC, help="The topic to write to."),
    *_connection(("--command-property", "--producer-property"), ("--command-config", "--producer.config")),
    click.option("--sync", is_flag=True, help="Wait for the acknowledgement of each record."),
    click.option("--timeout", "linger", metavar="MS", help="linger.ms."),
    click.option(
        "--compression-codec",
        "compression_codec",
        is_flag=False,
        flag_value="gzip",
        metavar="[CODEC]",
        help="none, gzip, snappy, lz4 or zstd; gzip if only the flag is given.",
    ),
    *(
        click.option(flag, flag.strip("-").replace("-", "_"), metavar="VALUE", help=f"{option}.")
        for flag, option in CONSOLE_OPTIONS.items()
        if flag != "--compression-codec"
    ),
    click.option("--line-reader", metavar="CLASS", help="Kafka's own LineMessageReader; others are Java."),
    click.option(
        "--reader-property", "--property", "reader", multiple=True, metavar="NAME=VALUE", help="parse.key, ..."
    ),
    click.option("--reader-config", "reader_files", multiple=True, metavar="FILE", help="Reader properties in a file."),
    click.option("--version", "version", is_flag=True, help="Show the version."),
]

PERF: list[Option] = [
    click.option("--topic", "-t", type=TOPIC, required=True, help="The topic to write to."),
    click.option("--num-records", "records", type=int, required=True, help="How many records."),
    click.option("--record-size", type=int, help="Bytes of a record, random letters."),
    click.option("--payload-file", metavar="FILE", help="Values are drawn from this file."),
    click.option("--payload-monotonic", is_flag=True, help="Values are the numbers from 0."),
    click.option("--payload-delimiter", default=r"\n", show_default=True, help="Between the values of a file."),
    click.option("--throughput", type=float, default=-1.0, help="Records a second at most; -1: no limit."),
    *_connection(("--command-property", "--producer-props", "-X"), ("--command-config", "--producer.config", "-F")),
    click.option(
        "--warmup-records", "warmup", type=int, default=0, help="First ones that a second summary leaves out."
    ),
    click.option("--reporting-interval", "interval_ms", type=float, default=5000.0, help="Ms between two lines."),
    click.option("--print-metrics", is_flag=True, help="Write the producer's metrics at the end."),
    click.option("--transactional-id", help="Send in transactions under this id."),
    click.option("--transaction-duration-ms", type=float, help="How long each stays open; 3000 unless said."),
    _wait("the topic"),
    VERBOSE,
]


class AbbreviatedCommand(click.Command):
    """A command whose flags may be cut short where that leaves one of them alone, as in Kafka's tools."""

    dashes: tuple[str, ...] = ("--",)
    """What a flag may begin with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Writes the flags out, which is what click understands."""
        return super().parse_args(ctx, self.spelled(ctx, args))

    def spelled(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """The arguments with whole names of flags; values stay as they are."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        found: list[str] = []
        rest = list(args)
        while rest:
            argument = rest.pop(0)
            name, equals, value = argument.partition("=")
            option = next((each for each in options if name in each.opts), None)
            if option is None and (whole := self._whole(name, options)) is not None:
                option, name = whole
                argument = f"{name}{equals}{value}"
            found.append(argument)
            if argument == "--":
                break
            if option is not None and not equals and not option.is_flag and rest and not rest[0].startswith("-"):
                found.append(rest.pop(0))
        return found + rest

    def _whole(self, name: str, options: Sequence[click.Option]) -> tuple[click.Option, str] | None:
        begin = next((dash for dash in self.dashes if name.startswith(dash)), None)
        text = "" if begin is None else name[len(begin) :]
        fits = {each: [full for full in each.opts if text and full.startswith(f"--{text}")] for each in options}
        exact = [(each, full) for each, names in fits.items() for full in names if full == f"--{text}"]
        some = exact or [(each, names[0]) for each, names in fits.items() if names]
        return some[0] if len(some) == 1 else None


class ConsoleCommand(AbbreviatedCommand):
    """kafka-console-producer's, which takes one dash as it takes two."""

    dashes: tuple[str, ...] = ("--", "-")


class GreedyCommand(AbbreviatedCommand):
    """A command whose options may take every ``name=value`` that follows, as in Kafka's tools."""

    greedy: frozenset[str] = frozenset({"--producer-props", "--command-property"})

    def spelled(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """Puts the flag before each of its values, too."""
        return spread(super().spelled(ctx, args), self.greedy)


def spread(args: Sequence[str], greedy: frozenset[str]) -> list[str]:
    """``--flag a=1 b=2`` as ``--flag a=1 --flag b=2``."""
    found: list[str] = []
    flag: str | None = None
    for argument in args:
        if argument in greedy:
            flag = argument
            continue
        if argument.startswith("-"):
            flag = None
        if flag is not None:
            found.append(flag)
        found.append(argument)
    return found


def given_options(values: Mapping[str, Any], property_flag: str) -> Given:
    """Producer options of a command line: files first, then single ones, then flags with a name of their own."""
    given = Given()
    for path in values["files"]:
        given = given.with_lines(load_properties(path))
    given = given.plus(pairs(values["options"], property_flag), property_flag)
    for flag, option in CONSOLE_OPTIONS.items():
        value = values.get(flag.strip("-").replace("-", "_"))
        if value is not None:
            given = given.plus({option: value}, flag)
    if values.get("codec") is not None:
        given = given.plus({"compression.type": values["codec"]}, "-z")
    if values["bootstrap"] is not None:
        given = given.plus({"bootstrap.servers": values["bootstrap"]}, "--bootstrap-server")
    return given


def wait_s(seconds: float | None, config: ProducerConfig) -> float:
    """How long the cluster is waited for at the beginning, if ``--timeout`` says ``seconds``."""
    if seconds is not None:
        return seconds
    return config["max.block.ms"] / 1000 if config.explicit("max.block.ms") else WAIT_S


def configuration(given: Given, verbosity: int) -> ProducerConfig:
    """The producer's configuration; ``-v`` shows what it adjusts."""
    with LogLines(Display(), verbosity):
        return given.config()


def layout(values: Mapping[str, Any], limit: int) -> tuple[Layout, bool]:
    """How inputs are read, and whether bad rows are skipped.

    Raises:
        CommandError: a delimiter or reader property that cannot be.
    """
    if len(values["separator"]) != 1 or values["separator"] in '\r\n"':
        raise CommandError(f"--separator must be one character, no quote or end of a line, not {values['separator']!r}")
    key_delimiter = values["key_delimiter"]
    lines = LineFormat(
        unescape(values["delimiter"], "-D"),
        None if key_delimiter is None else unescape(key_delimiter, "-K"),
    )
    skip = values["skip_bad"]
    if values["reader"]:
        reader = pairs(values["reader"], "--property")
        lines, ignored = console_format(reader, lines, dict.fromkeys(reader, "--property"))
        skip = skip or ignored
    table = TableFormat(values["key_column"], values["value_column"], values["separator"])
    json = JsonFormat(values["key_field"], values["envelope"])
    if json.envelope and json.key_field is not None:
        raise CommandError("--envelope and --key-field exclude each other: an envelope names its key")
    return Layout(values["form"], lines, json, table, limit=limit), skip


def header_pairs(texts: Iterable[str]) -> HeaderPairs:
    """``name=value`` as a header, ``name`` alone as one that is null."""
    found: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise CommandError(f"-H {text!r}: write name=value, or a name alone for null")
        if any("\udc80" <= each <= "\udcff" for each in name):
            raise CommandError(f"-H {text!r}: a header's name must be UTF-8")
        found.append((name, os.fsencode(value) if equals else None))
    return found
