"""The commands of ``forebay tune`` for click; what they do is in ``tune``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from forebay.cli.flags import show_alone, write
from forebay.cli.properties import pairs


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
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same one gives the same output."
)
@click.option("--seconds", type=click.FloatRange(0.001, 86_400), help="For which the load comes, instead of enough.")
def predict(path: str, options: Sequence[str], *, as_json: bool, seed: int, seconds: float | None) -> int:
    """Say what the settings of FILE give for its load: latency, requests, memory, what is lost.

    The exit code is 1 if the load is not served, or a limit of the goal is not kept.
    """
    from forebay.cli import tune as command

    changed = pairs(options, "-X")
    return command.predicted(path, changed, write, as_json=as_json, seed=seed, seconds=seconds)


@tune.command()
@click.argument("path", metavar="FILE")
@click.option("-X", "options", multiple=True, metavar="NAME=VALUE", help="A setting that replaces the file's.")
@click.option("--goal", "goals", multiple=True, metavar="NAME=VALUE", help="A part of the goal, such as p99_ms=20.")
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON.")
@click.option("--properties", metavar="FILE", help="Write the settings that are proposed into this file.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same one gives the same output."
)
def advise(
    path: str, options: Sequence[str], goals: Sequence[str], *, as_json: bool, properties: str | None, seed: int
) -> int:
    """Look for better settings for the load of FILE, and say why and at what price.

    The exit code is 1 if nothing keeps the goal, or the load cannot be served.
    """
    from forebay.cli import tune as command

    changed, goal = pairs(options, "-X"), pairs(goals, "--goal")
    return command.advised(path, changed, write, goal=goal, as_json=as_json, seed=seed, properties=properties)
