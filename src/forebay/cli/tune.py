"""``forebay tune``: what settings give for a load, without a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from forebay.cli.failure import FAILED, OK, CommandError
from forebay.tune import Brokers, Goal, Workload, predict
from forebay.tune.files import TEMPLATE, in_file, read
from forebay.tune.text import prediction_text

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
    write(f"{path} is written; change it, then run: forebay tune predict {path}")
    return OK


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
    document = read(path)
    load = in_file(path, lambda: Workload.of(document.load))
    brokers = in_file(path, lambda: Brokers.of(document.cluster))
    goal = in_file(path, lambda: Goal(**document.goal))
    settings: dict[str, Any] = {**document.settings}
    for name, value in changed.items():
        settings[name.replace("_", ".")] = value
    found = predict(load, settings, brokers=brokers, seed=seed, seconds=seconds)
    write(found.as_json().rstrip("\n") if as_json else prediction_text(found, load, brokers, goal).rstrip("\n"))
    return OK if found.served and not goal.broken(found.figures()) else FAILED
