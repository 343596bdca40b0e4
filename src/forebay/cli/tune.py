"""``forebay tune``: what settings give for a load, without a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from forebay.cli.failure import FAILED, OK, CommandError
from forebay.tune import Brokers, Goal, Workload, advise, predict
from forebay.tune._checks import choice
from forebay.tune.files import TEMPLATE, in_file, read
from forebay.tune.text import advice_text, prediction_text

DEFAULT_FILE = "load.toml"


def init(path: str, write: Callable[[str], object]) -> int:
    """Writes a file to begin with.

    Raises:
        CommandError: there is one already, or it cannot be written.
    """
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise CommandError(f"{path} is there already; name another file") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
    write(f"{path} is written; change it, then run: forebay tune advise {path}")
    return OK


class Question(NamedTuple):
    """What a file asks."""

    load: Workload
    brokers: Brokers
    goal: Goal
    settings: dict[str, Any]


def asked(path: str, changed: Mapping[str, str], goal: Mapping[str, str] | None = None) -> Question:
    """A file with other settings, and other parts of its goal.

    Raises:
        ConfigError: something in the file, an option or a part of the goal is not right.
    """
    document = read(path)
    settings: dict[str, Any] = {**document.settings}
    for name, value in changed.items():
        settings[name.replace("_", ".")] = value
    wanted: dict[str, Any] = {**document.goal, **{name: _of_goal(value) for name, value in (goal or {}).items()}}
    return Question(
        in_file(path, lambda: Workload.of(document.load)),
        in_file(path, lambda: Brokers.of(document.cluster)),
        in_file(path, lambda: goal_of(wanted)),
        settings,
    )


def goal_of(given: Mapping[str, Any]) -> Goal:
    """Raises TuneError for a part that a goal does not have."""
    for name in given:
        choice("a goal's part", name, [each.name for each in fields(Goal)])
    return Goal(**given)


def _of_goal(text: str) -> Any:
    # A number where it is one; "64 MiB" and "requests" stay texts.
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def advised(
    path: str,
    changed: Mapping[str, str],
    write: Callable[[str], object],
    *,
    goal: Mapping[str, str],
    as_json: bool,
    seed: int,
    properties: str | None,
) -> int:
    """Looks for better settings for the load of a file; the exit code.

    Raises:
        ConfigError: something in the file, or an option, is not right.
        CommandError: the file of properties cannot be written.
    """
    question = asked(path, changed, goal)
    load, brokers, wanted, settings = question
    found = advise(load, wanted, settings=settings, brokers=brokers, seed=seed)
    write(found.as_json().rstrip("\n") if as_json else advice_text(found, load, brokers, wanted).rstrip("\n"))
    if properties is not None:
        lines = [f"{name}={value}\n" for name, value in {**settings, **found.settings}.items()]
        try:
            Path(properties).write_text("".join(lines), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{properties} cannot be written: {error.strerror}") from None
    return OK if found.met else FAILED


def predicted(
    path: str,
    changed: Mapping[str, str],
    write: Callable[[str], object],
    *,
    as_json: bool,
    seed: int,
    seconds: float | None,
) -> int:
    """Simulates the load of a file with its settings and ``changed`` ones; the exit code.

    Raises:
        ConfigError: something in the file, or an option, is not right.
    """
    load, brokers, goal, settings = asked(path, changed)
    found = predict(load, settings, brokers=brokers, seed=seed, seconds=seconds)
    write(found.as_json().rstrip("\n") if as_json else prediction_text(found, load, brokers, goal).rstrip("\n"))
    return OK if found.served and not goal.broken(found.figures()) else FAILED
