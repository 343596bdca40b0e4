"""What commands of several files share: a line of output, a group of commands, consent, and flags of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay._runtime.extras import of_extra

with of_extra(__name__, "cli"):
    import click

from forebay.cli import flags
from forebay.cli.failure import FAILED, USAGE, CommandError
from forebay.cli.report.progress import WAIT_S
from forebay.config import ProducerConfig


def write(text: str) -> None:
    """Writes a line to stdout at once, because a reader of a pipe may wait for it."""
    print(text, flush=True)


def show_alone(context: click.Context) -> None:
    """Ends a group of commands of which none is named: with its help, as a mistake."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE)


def confirmed(question: str, not_done: str = "nothing was aborted") -> bool:
    """The answer of who sits at the terminal.

    Args:
        not_done: what is so if there is none.

    Raises:
        CommandError: standard input ends before there is one.
    """
    try:
        return click.confirm(question, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            raise CommandError(f"{not_done}: there was no answer (--yes does not ask)", FAILED) from None
        raise


def cluster_config(values: Mapping[str, Any]) -> ProducerConfig:
    """How a cluster is reached, by the flags of ``flags.CLUSTER``, with the time of each answer in ``max.block.ms``."""
    given = flags.given_options(values, "-X")
    if values["wait_s"] is not None or "max.block.ms" not in given.values:
        given = given.plus({"max.block.ms": str(round((values["wait_s"] or WAIT_S) * 1000))}, "--timeout")
    return flags.configuration(given, 0)
