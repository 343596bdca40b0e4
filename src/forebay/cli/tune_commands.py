"""``forebay tune``: its subcommands for click, each imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forebay._runtime.extras import of_extra

with of_extra(__name__, "cli"):
    import click

from forebay.cli import flags
from forebay.cli.properties import pairs
from forebay.cli.shared import cluster_config, confirmed, show_alone, write

REPORT = click.option("--report", metavar="FILE.html", help="Write a page with plots.")
YES = click.option("--yes", is_flag=True, help="Do not ask.")
SAMPLE = click.option(
    "--sample",
    metavar="FILE",
    help="Values, one a line: what compression leaves of batches is measured on them.  Its time is measured in each "
    "run, so the output differs a little even with the same seed.",
)


@click.group(invoke_without_command=True)
@click.pass_context
def tune(context: click.Context) -> None:
    """What settings of a producer give for a load, by a simulation: no broker is needed."""
    show_alone(context)


@tune.command()
@click.argument("path", required=False, metavar="[FILE]")
def init(path: str | None) -> int:
    """Write a commented file that describes a load, to begin with: load.toml, if no other is named."""
    from forebay.cli import tune as command

    return command.init(path or command.DEFAULT_FILE, write)


@tune.command()
@click.argument("path", metavar="FILE")
@click.option("-X", "options", multiple=True, metavar="NAME=VALUE", help="A setting that replaces the file's.")
@SAMPLE
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same one gives the same output."
)
@click.option(
    "--seeds", type=click.IntRange(1, 100), help="Simulations, which tell how sure the figures are: 3 of short loads."
)
@click.option("--seconds", type=click.FloatRange(0.001, 86_400), help="For which the load comes, instead of enough.")
@REPORT
def predict(path: str, options: Sequence[str], **wanted: Any) -> int:
    """Say what the settings of FILE give for its load: latency, requests, memory, what is lost.

    The exit code is 1 if the load is not served, or a limit of the goal is not kept.
    """
    from forebay.cli import tune as command

    changed = pairs(options, "-X")
    return command.predicted(path, changed, write, **wanted)


@tune.command()
@click.argument("path", metavar="FILE")
@click.option("-X", "options", multiple=True, metavar="NAME=VALUE", help="A setting that replaces the file's.")
@click.option("--goal", "goals", multiple=True, metavar="NAME=VALUE", help="A part of the goal, such as p99_ms=20.")
@SAMPLE
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON.")
@click.option("--properties", metavar="FILE", help="Write the settings that are proposed into this file.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same one gives the same output."
)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Processes that simulate: the number of processors, up to four."
)
@REPORT
def advise(path: str, options: Sequence[str], goals: Sequence[str], **wanted: Any) -> int:
    """Look for better settings for the load of FILE, and say why and at what price.

    The exit code is 1 if nothing keeps the goal, or the load cannot be served.
    """
    from forebay.cli import tune as command

    changed, goal = pairs(options, "-X"), pairs(goals, "--goal")
    return command.advised(path, changed, write, goal=goal, **wanted)


@tune.command()
@click.argument("where", required=False, metavar="[SOCKET|FOLDER]")
@click.option("--seconds", type=click.FloatRange(1, 86_400), default=60.0, show_default=True, help="For how long.")
@click.option("-o", "--output", "path", metavar="FILE", help="What is written: load.toml, if no other is named.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def record(where: str | None, seconds: float, path: str | None, *, force: bool) -> int:
    """Describe the load of running producers, which they show by describe.socket, in a file.

    They are looked at once a second, so bursts below a second are unseen; producer.record_trace(path, seconds=...) sees
    each record.
    """
    from forebay._runtime.ticket import Latch
    from forebay.cli import tune as command

    return command.recorded(where, path or command.DEFAULT_FILE, write, Latch().wait, seconds=seconds, replace=force)


@tune.command()
@flags.apply(flags.TUNE_CLUSTER)
@click.option(
    "-o", "output", default="cluster.toml", show_default=True, metavar="FILE", help="Where the cluster is written."
)
@YES
def calibrate(topic: str, output: str, *, yes: bool, **values: Any) -> int:
    """Measure a cluster's brokers, and this machine, for predictions.

    A scratch topic gets some hundred to three thousand records for each broker that leads a partition of it.  A topic
    that holds any other record is refused.  [cluster] file = "cluster.toml" in a load's file then names what was
    measured.
    """
    from forebay.cli import tune_real as command

    def sure(question: str) -> bool:
        return yes or confirmed(question, "nothing was measured")

    return command.calibrated(cluster_config(values), topic, output, write, sure)


@tune.command()
@click.argument("path", metavar="FILE")
@click.option("--seconds", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="For how long.")
def stalls(path: str, seconds: float) -> int:
    """Watch how this machine lets threads wait that could run, and write it into FILE.

    [client] stalls = "FILE" in a load's file then has a simulated producer stall as often and as long.
    """
    from forebay.cli import tune_real as command

    return command.stalls_watched(path, write, seconds=seconds)


@tune.command()
@click.argument("path", metavar="FILE")
@flags.apply(flags.TUNE_CLUSTER)
@click.option("--seconds", type=click.FloatRange(1, 86_400), default=60, show_default=True, help="The load comes for.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The same one gives the same load.")
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON.")
@YES
def check(path: str, topic: str, *, seconds: float, seed: int, as_json: bool, yes: bool, **values: Any) -> int:
    """Send the load of FILE for real, and show what was measured beside what was predicted.

    The exit code is 1 if a figure is outside its tolerance.  A topic that begins with records of others is refused.
    """
    from forebay.cli import tune_real as command

    def sure(question: str) -> bool:
        return yes or confirmed(question, "nothing was sent")

    given = flags.given_options(values, "-X").values
    config = cluster_config(values)
    return command.checked(path, given, config, topic, write, sure, seconds=seconds, seed=seed, as_json=as_json)


@tune.command()
@click.argument("path", required=False, metavar="[JOB]")
@click.option("--rows", type=click.IntRange(1), help="Of the table.")
@click.option("--bytes", "row_bytes", type=click.IntRange(1), help="Of a row: key and value.")
@click.option("--tasks", type=click.IntRange(1), help="That run at the same time.")
@click.option("--splits", type=click.IntRange(1), help="Tasks in all, if not as many as run at the same time.")
@click.option("--executors", type=click.IntRange(1), help="That these tasks run on; 1 if not given.")
@click.option("--partitions", type=click.IntRange(1), help="Of the topic; 12 if not given.")
@click.option("--keyed/--no-keys", default=None, help="Rows have keys, which decide their partitions.")
@click.option("--grouped/--not-grouped", default=None, help="The rows of a partition are in one task already.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Rows a second that a task hands over at most.")
@click.option("--ratio", type=click.FloatRange(0, 2, min_open=True), help="What a codec leaves of the bytes.")
@click.option("--cluster", metavar="FILE", help="With [cluster], as `calibrate` writes it; else one node is guessed.")
@click.option("-X", "options", multiple=True, metavar="NAME=VALUE", help="An option of the sink's producer.")
@click.option(
    "--busy", type=click.FloatRange(1, 100), default=50.0, show_default=True, help="Per cent of a broker's handlers."
)
@click.option(
    "--trigger-seconds", "trigger_s", type=click.FloatRange(0, min_open=True), help="The write has to fit in."
)
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same one gives the same output."
)
def spark(
    path: str | None,
    options: Sequence[str],
    *,
    cluster: str | None,
    busy: float,
    trigger_s: float | None,
    as_json: bool,
    seed: int,
    **values: Any,
) -> int:
    """Say what a DataFrame's write asks of the brokers, and how many of its tasks may run at the same time.

    JOB is a file of `forebay pipeline`; what it does not say, such as --rows, --bytes and --tasks, comes from the
    command line.  The exit code is 1 if rows are lost, or the write takes longer than the trigger.
    """
    from forebay.cli import tune_spark as command

    return command.spark(
        path,
        values,
        pairs(options, "-X"),
        write,
        cluster=cluster,
        busy=busy / 100,
        trigger_s=trigger_s,
        seed=seed,
        as_json=as_json,
    )
