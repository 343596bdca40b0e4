"""The command ``forebay``: its subcommands for click, each imported when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from forebay._runtime.extras import of_extra

with of_extra(__name__, "cli"):
    import click

from forebay import implementation
from forebay.cli import flags
from forebay.cli.failure import FAILED, INTERRUPTED, OK, PREFIX, CommandError, exit_code_of, one_line, told
from forebay.cli.shared import cluster_config, confirmed, show_alone, write
from forebay.cli.tune_commands import tune

if TYPE_CHECKING:
    from forebay.admin import AdminClient
    from forebay.cli.produce import ProduceJob
    from forebay.config import ProducerConfig
    from forebay.model import ClusterDescription


def version_line() -> str:
    """The version, and which form of the package runs."""
    from forebay._runtime.version import VERSION

    python = ".".join(map(str, sys.version_info[:3]))
    return f"forebay {VERSION} ({implementation}, Python {python})"


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, help="Show the version and whether it runs compiled.")
@click.pass_context
def cli(context: click.Context, version: bool) -> int:
    """A Kafka producer on the command line."""
    if version:
        write(version_line())
        context.exit(OK)
    show_alone(context)
    return OK


@cli.command()
@flags.apply(flags.PRODUCE)
@click.argument("paths", nargs=-1, metavar="[FILE]...")
def produce(**values: Any) -> int:
    """Send lines, JSON lines, CSV or Parquet; from files, or from standard input ("-").

    The format goes by the file's suffix (.json .jsonl .csv .tsv .parquet; else lines).  Ends with a count of what
    was acknowledged; the exit code is 1 if a record failed or the input was bad.
    """
    from forebay.cli import produce as command

    config = flags.configuration(flags.given_options(values, "-X"), values["verbose"])
    layout, skip_bad = flags.layout(values, config["max.request.size"])
    partition = values["partition"]
    return produced(
        command.ProduceJob(
            config=config,
            topic=values["topic"],
            paths=values["paths"] or ("-",),
            wait_s=flags.wait_s(values["wait_s"], config),
            layout=layout,
            key=None if values["key"] is None else os.fsencode(values["key"]),
            headers=flags.header_pairs(values["headers"]),
            partition=None if partition == -1 else partition,
            empty_is_null=values["empty_is_null"],
            skip_bad=skip_bad,
            count=values["count"],
            quiet=values["quiet"],
            verbosity=values["verbose"],
        )
    )


@cli.command()
@flags.apply(flags.KCAT)
@click.argument("paths", nargs=-1, metavar="[FILE]...")
def kcat(paths: Sequence[str], **values: Any) -> int:
    """Write as kcat does, with its flags: -P to a topic, -L lists metadata.

    Options (-X) are librdkafka's.  The modes that read (-C, -G, -Q) are refused.
    """
    if values["version"]:
        write(version_line())
        return OK
    from forebay.cli import kcat as command

    return command.run(values, paths, produce=produced, describe=described, write=write)


@cli.command("console-producer", cls=flags.ConsoleCommand)
@flags.apply(flags.CONSOLE)
def console_producer(**values: Any) -> int:
    """Write lines of standard input as kafka-console-producer does, with its flags."""
    if values["version"]:
        write(version_line())
        return OK
    from forebay.cli import console as command

    return produced(command.job_of(values))


@cli.command()
@flags.apply(flags.CLUSTER)
@click.argument("topic", type=flags.TOPIC, required=False)
def topics(topic: str | None, as_json: bool, **values: Any) -> int:
    """List the topics, or with TOPIC its partitions.  It makes no topic."""
    from forebay.cli import cluster as command

    with controlled(values) as admin:
        command.topics(admin, topic, write, as_json=as_json)
    return OK


@cli.command()
@flags.apply(flags.CLUSTER)
@click.option("-n", "count", type=click.IntRange(1), default=10, show_default=True, help="How many records.")
@click.option("-p", "partition", type=click.IntRange(0), metavar="N", help="Of this partition alone.")
@click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="Whether records of open and aborted transactions are left out.",
)
@click.argument("topic", type=flags.TOPIC)
def tail(topic: str, **values: Any) -> int:
    """Show the newest records of a topic, the oldest of them first."""
    from forebay.cli import cluster as command

    shown = {name: values.pop(name) for name in ("count", "partition", "isolation", "as_json")}
    with controlled(values) as admin:
        command.tail(admin, topic, write, **shown)
    return OK


@cli.group(invoke_without_command=True)
@click.pass_context
def transactions(context: click.Context) -> None:
    """Transactions of the cluster, those of other producers too."""
    show_alone(context)


@transactions.command("list")
@flags.apply(flags.CLUSTER)
@click.option("--state", "states", multiple=True, metavar="STATE", help="In this state only, such as Ongoing.")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, metavar="ID", help="Of this producer only.")
@click.option("--prefix", metavar="TEXT", help="Ids that begin with this.")
def list_transactions(**values: Any) -> int:
    """List the transactional ids."""
    from forebay.cli import cluster as command

    wanted = {name: values.pop(name) for name in ("states", "producer_ids", "prefix", "as_json")}
    with controlled(values) as admin:
        command.list_transactions(admin, write, **wanted)
    return OK


@transactions.command("describe")
@flags.apply(flags.CLUSTER)
@click.argument("ids", nargs=-1, required=True, metavar="TRANSACTIONAL_ID...")
def describe_transactions(ids: Sequence[str], as_json: bool, **values: Any) -> int:
    """Show what the coordinators know of transactional ids."""
    from forebay.cli import cluster as command

    with controlled(values) as admin:
        command.describe_transactions(admin, ids, write, as_json=as_json)
    return OK


@transactions.command("abort")
@flags.apply(flags.CLUSTER[:-1])
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("transactional_id")
def abort_transaction(transactional_id: str, yes: bool, **values: Any) -> int:
    """Abort what is open under a transactional id, and fence its producer."""
    from forebay.cli import cluster as command

    with controlled(values) as admin:
        command.abort_transaction(admin, transactional_id, write, sure=lambda question: yes or confirmed(question))
    return OK


def controlled(values: Mapping[str, Any]) -> AbstractContextManager[AdminClient]:
    """An AdminClient by the flags of ``flags.CLUSTER``."""
    from forebay.cli import cluster as command

    return command.opened(cluster_config(values))


def produced(job: ProduceJob) -> int:
    """Sends a job with a producer; the exit code."""
    from forebay._runtime.clock import SystemClock
    from forebay.cli.produce import run
    from forebay.producer import KafkaProducer

    return run(job, make=KafkaProducer, clock=SystemClock())


def described(config: ProducerConfig, topic: str | None) -> ClusterDescription:
    """The cluster as one of its brokers describes it."""
    from forebay.cli import cluster as command

    with command.opened(config) as admin:
        return admin.describe_cluster(topic)


@cli.command(cls=flags.GreedyCommand)
@flags.apply(flags.PERF)
def perf(**values: Any) -> int:
    """Measure throughput and latency, with the flags and the output of kafka-producer-perf-test."""
    from forebay._runtime.clock import SystemClock
    from forebay.cli import perf as command
    from forebay.cli.input.rows import unescape
    from forebay.producer import KafkaProducer

    kinds = ("record_size", "payload_file", "payload_monotonic")
    if sum(values[kind] not in (None, False) for kind in kinds) != 1:
        raise CommandError("give exactly one of --record-size, --payload-file and --payload-monotonic")
    given = flags.given_options(values, "--command-property")
    if "client.id" not in given.values:
        given = given.plus({"client.id": command.CLIENT_ID}, "perf")
    duration = values["transaction_duration_ms"]
    if values["transactional_id"] is not None:
        given = given.plus({"transactional.id": values["transactional_id"]}, "--transactional-id")
    elif duration is not None and "transactional.id" not in given.values:
        from uuid import uuid4  # slow to import

        given = given.plus({"transactional.id": f"performance-producer-{uuid4()}"}, "perf")
    config = flags.configuration(given, values["verbose"])
    return command.run(
        command.PerfJob(
            config=config,
            topic=values["topic"],
            wait_s=flags.wait_s(values["wait_s"], config),
            records=values["records"],
            record_size=values["record_size"],
            payload_file=values["payload_file"],
            payload_delimiter=unescape(values["payload_delimiter"], "--payload-delimiter"),
            throughput=values["throughput"],
            warmup=values["warmup"],
            interval_ms=values["interval_ms"],
            print_metrics=values["print_metrics"],
            verbosity=values["verbose"],
            transaction_ms=command.TRANSACTION_MS if duration is None else duration,
        ),
        write,
        make=KafkaProducer,
        clock=SystemClock(),
    )


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; a loopback stands for both.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="Of the first node; 0: a free one."
)
@click.option("--advertise", default="", metavar="HOST[:PORT]", help="What clients are told, if it is not that.")
@click.option("--nodes", type=click.IntRange(1, 100), default=1, show_default=True, help="How many brokers.")
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True, help="Of topics that say none.")
@click.option("--topics", multiple=True, metavar="NAME[:PARTITIONS][,...]", help="Make these topics at once.")
def broker(host: str, port: int, *, advertise: str, topics: Sequence[str], **numbers: int) -> int:
    """Serve an embedded broker until Ctrl-C; the one line on stdout is its address.

    For development: it keeps the newest 5 MB of a partition, in memory.  docs/testing.md says what else it lacks.
    With --advertise, for containers and forwarded ports, the nodes have that host and PORT, PORT + 1 and so on.
    """
    from forebay.cli import broker as command

    names = [name.strip() for text in topics for name in text.split(",") if name.strip()]
    return command.run(host, port, advertise=advertise, topics=names, write=write, **numbers)


@cli.command()
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.argument("contains", default="", metavar="[TEXT]")
def config(form: Any, contains: str) -> int:
    """List the producer's options; with TEXT those that have it in name or description."""
    from forebay.cli import config as command

    click.echo(command.render(form, contains), nl=False)
    return OK


@cli.command()
@click.option(
    "--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, help="Seconds between looks."
)
@click.option("--once", is_flag=True, help="Print it once as text and end.")
@click.argument("where", required=False, metavar="[SOCKET|FOLDER]")
def top(where: str | None, interval: float, once: bool) -> int:
    """Show the inside of running producers: queues, memory, brokers, errors.

    A producer shows itself on a socket in the folder of its option describe.socket, or of the variable
    FOREBAY_DESCRIBE_SOCKET, which counts here, too.  Ctrl-C ends the view.
    """
    from forebay._runtime.ticket import Latch
    from forebay.cli import top as command

    never = Latch()
    return command.run(where, interval * 1000, once=once, write=write, wait=never.wait)


@cli.command()
@flags.apply(flags.DOCTOR)
def doctor(topic: str | None, master: str | None, spark: bool, **values: Any) -> int:
    """Say what keeps a Spark job from writing; it starts Spark, and with -b it asks the brokers from a task."""
    from forebay.cli import doctor as command

    given = flags.given_options(values, "-X").values
    return command.run({f"kafka.{name}": value for name, value in given.items()}, topic, master, write)


cli.add_command(tune)


PLACES = {"bootstrap_server": "producer.bootstrap.servers", "master": "spark.master", "report": "sink.report"}
"""Flags of ``pipeline run`` that are short for a place in the job file."""


@cli.group(invoke_without_command=True)
@click.pass_context
def pipeline(context: click.Context) -> None:
    """Declared jobs: a source, SQL, a mapping to records, a topic."""
    show_alone(context)


@pipeline.command()
@click.argument("job", metavar="JOB.toml")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help=f"Replace a value of the file.  {flags.SEEN}",
)
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT[,...]", help="Replace the file's brokers.")
@click.option("--master", metavar="URL", help="Replace the file's Spark master.")
@click.option("--report", metavar="FILE.html", help="Write a page with plots of the run.")
@click.option("--dry-run", is_flag=True, help="Show the plan and five records; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write the counters as JSON.")
def run(job: str, overrides: Sequence[str], *, dry_run: bool, as_json: bool, **places: str | None) -> int:
    """Run a job file on Spark; its steps go to stderr, its counters to stdout."""
    from forebay.cli import pipeline as command
    from forebay.spark.jobs import load

    changed = command.parse_overrides(overrides)
    if places["report"] is not None:
        places["report"] = os.path.abspath(places["report"])
    for flag, place in PLACES.items():
        if (value := places[flag]) is not None:
            changed[place] = value
    loaded = load(job, changed)  # a mistake in the file is one of usage, and reported before Spark starts
    return command.dry_run(loaded) if dry_run else command.run(loaded, as_json=as_json).exit_code


def execute(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code, after a message on stderr if it is not 0."""
    try:
        code = cli.main(None if arguments is None else list(arguments), prog_name="forebay", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except click.Abort as error:
        sys.stderr.write(f"{PREFIX}interrupted\n")
        return exit_code_of(error.__cause__) if isinstance(error.__cause__, KeyboardInterrupt) else INTERRUPTED
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (forebay{context.command_path[7:]} --help lists what there is)" if context is not None else ""
        sys.stderr.write(f"{PREFIX}{one_line(error.format_message())}{hint}\n")
        return error.exit_code
    except BrokenPipeError:
        # The reader of stdout has closed it.  The interpreter's own flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 -- every command ends in a line, not in a traceback
        sys.stderr.write(told(error))
        return exit_code_of(error)
