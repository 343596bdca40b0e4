"""``forebay tune``: what settings give for a load, without a broker."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from forebay._insight.values import ProducerDescription
from forebay._runtime.clock import SystemClock
from forebay.cli.failure import FAILED, OK, CommandError, writing
from forebay.cli.outputs import check_output, check_place
from forebay.cli.report.progress import Line
from forebay.cli.top import look, sockets
from forebay.tune import (
    Advice,
    Brokers,
    Compression,
    Costs,
    Goal,
    Prediction,
    Stalls,
    Trace,
    Workload,
    advise,
    brokers_of,
    own_costs,
    predict,
    span,
)
from forebay.tune._checks import choice, refused
from forebay.tune._workers import MOST_BY_DEFAULT, processors
from forebay.tune.advice import CODEC as PROPOSED_CODEC
from forebay.tune.files import TEMPLATE, Document, in_file, read
from forebay.tune.fitting import seen_cluster, seen_facts, seen_load, seen_settings
from forebay.tune.text import advice_text, prediction_text
from forebay.tune.trace import is_trace

DEFAULT_FILE = "load.toml"
EVERY_MS = 1000.0
BESIDE = ("nothing", "computing")
SEEDS = 3
FEW_RECORDS = 50_000
"""Of a load that is simulated several times.  Not by the time that it takes: the outcome is the same on any machine."""
PROPERTIES = "# Proposed by forebay tune advise"
"""How a file of them begins."""
OWN_PROPERTIES = re.compile(re.escape(PROPERTIES.encode()))
OWN_PAGE = re.compile(rb"<!doctype html>[^\0]{,500}: forebay tune</title>")
UNSEEN = "Bursts shorter than a second are not seen, and single sizes are not told apart (record_trace sees both)."


def init(path: str, write: Callable[[str], object]) -> int:
    """Writes a file to begin with.

    Raises:
        CommandError: there is one already, or it cannot be written.
    """
    if os.path.lexists(path):
        raise CommandError(f"{path} is there already; name another file")
    with writing(path), Path(path).open("xb") as file:
        file.write(TEMPLATE.encode())
    write(f"{path} is written; change it, then run: forebay tune advise {path}")
    return OK


class Question(NamedTuple):
    """What a file asks."""

    load: Workload
    brokers: Brokers
    goal: Goal
    settings: dict[str, Any]
    costs: Costs | None
    stalls: Stalls | None


def asked(
    path: str, changed: Mapping[str, str], goal: Mapping[str, str] | None = None, sample: str | None = None
) -> Question:
    """A file with other settings, other parts of its goal, and the compression that a sample of values shows.

    Raises:
        ConfigError: something in the file, an option or a part of the goal is not right.
        CommandError: the sample cannot be read.
    """
    if is_trace(path):
        load = Workload.replaying(Trace.open(path))
        document = Document({}, {}, {}, {}, {})
    else:
        document = read(path)
        load = in_file(path, lambda: Workload.of(document.load))
    settings: dict[str, Any] = {**({} if load.trace is None else load.trace.settings), **document.settings}
    for name, value in changed.items():
        settings[name.replace("_", ".")] = value
    if sample is not None:
        load = load.compressed(sampled(sample, str(settings.get("compression.type", "none"))))
    wanted: dict[str, Any] = {**document.goal, **{name: _of_goal(value) for name, value in (goal or {}).items()}}
    return Question(
        load,
        in_file(path, lambda: Brokers.of(document.cluster)) if document.cluster else brokers_of(load),
        in_file(path, lambda: goal_of(wanted)),
        settings,
        *in_file(path, lambda: client_of(document.client, load)),
    )


def sampled(path: str, codec: str) -> Compression:
    """What a codec leaves of the lines of a file; without a codec in use, that which is proposed.

    Raises:
        CommandError: the file cannot be read.
        ConfigError: it has no lines, or there is no such codec.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    return own_costs.compression_of(lines, PROPOSED_CODEC if codec == "none" else codec)


def client_of(table: Mapping[str, Any], load: Workload) -> tuple[Costs | None, Stalls | None]:
    """What is known of the producer's own work and of its machine: from the file, a trace, or the user's cache.

    Raises:
        ConfigError: a value is not right, or there are no stalls where it says.
    """
    place, machine = own_costs.cache_file(), own_costs.machine()
    costs = own_costs.kept(place, machine)
    if "beside" in table:
        computing = choice("beside", table["beside"], BESIDE) == "computing"
        costs = replace(costs or Costs(), switch=1000 * sys.getswitchinterval() if computing else 0.0)
    if "stalls" in table:
        if not isinstance(table["stalls"], str):
            raise refused("stalls", table["stalls"], "the name of a file that forebay tune stalls has written")
        return costs, Stalls.from_json(table["stalls"])
    of_trace = None if load.trace is None else load.trace.stalls
    return costs, of_trace or own_costs.kept_stalls(place, machine)


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
    sample: str | None = None,
    report: str | None = None,
    workers: int | None = None,
) -> int:
    """Looks for better settings for the load of a file; the exit code.

    Args:
        workers: processes that simulate; None: as many as there are processors, up to four.

    Raises:
        ConfigError: something in the file, or an option, is not right.
        CommandError: the file of properties, or the page, cannot be written.
    """
    check_page(report)
    if properties is not None:
        check_output(properties, OWN_PROPERTIES, "file of settings that were proposed")
    question = asked(path, changed, goal, sample)
    load, brokers, wanted, settings, costs, stalls = question
    with Line(SystemClock().now) as line:
        found = advise(
            load,
            wanted,
            settings=settings,
            brokers=brokers,
            costs=costs,
            stalls=stalls,
            seed=seed,
            workers=workers or min(processors(), MOST_BY_DEFAULT),
            progress=line.show,
        )
    write(found.as_json().rstrip("\n") if as_json else advice_text(found, load, brokers, wanted).rstrip("\n"))
    write_page(found, report)
    if properties is not None:
        proposed = {**settings, **found.settings}
        lines = [f"{PROPERTIES}.\n", *(f"{name}={value}\n" for name, value in proposed.items())]
        with writing(properties):
            Path(properties).write_text("".join(lines), encoding="utf-8")
    return OK if found.met else FAILED


def check_page(page: str | None) -> None:
    """Raises CommandError if a page, where one is wanted, could not be written there."""
    if page is not None:
        check_output(page, OWN_PAGE, "page of the tuner")


def write_page(found: Advice | Prediction, page: str | None) -> None:
    """Writes the page, where one is wanted.

    Raises:
        CommandError: it cannot be written.
    """
    if page is not None:
        with writing(page):
            found.write_report(page)


def predicted(
    path: str,
    changed: Mapping[str, str],
    write: Callable[[str], object],
    *,
    as_json: bool,
    seed: int,
    seeds: int | None = None,
    seconds: float | None,
    sample: str | None = None,
    report: str | None = None,
) -> int:
    """Simulates the load of a file with its settings and ``changed`` ones; the exit code.

    Args:
        seeds: that are simulated; None: three where they take few seconds.

    Raises:
        ConfigError: something in the file, or an option, is not right.
        CommandError: the page cannot be written.
    """
    check_page(report)
    load, brokers, goal, settings, costs, stalls = asked(path, changed, sample=sample)
    records = load.rate * load.producers * (span(load, brokers) if seconds is None else seconds)
    found = predict(
        load,
        settings,
        brokers=brokers,
        costs=costs,
        stalls=stalls,
        seed=seed,
        seeds=seeds or (SEEDS if records <= FEW_RECORDS else 1),
        seconds=seconds,
    )
    write(found.as_json().rstrip("\n") if as_json else prediction_text(found, load, brokers, goal).rstrip("\n"))
    write_page(found, report)
    return OK if found.served and not goal.broken(found.figures()) else FAILED


def recorded(
    where: str | None,
    path: str,
    write: Callable[[str], object],
    wait: Callable[[float], object],
    *,
    seconds: float,
    replace: bool,
) -> int:
    """Looks at running producers once a second, and writes a file that describes their load; the exit code.

    Args:
        where: a socket or a folder of ``describe.socket``.
        wait: for so many ms.

    Raises:
        CommandError: no producer shows itself there, or the file cannot be written.
        ConfigError: nothing can be said of the load.
    """
    if Path(path).exists() and not replace:
        raise CommandError(f"{path} is there already; name another file, or add --force")
    check_place(path)
    found = sockets(where)
    seen: list[list[ProducerDescription]] = [[] for _ in found]
    for at in range(max(1, round(seconds)) + 1):
        if at > 0:
            wait(EVERY_MS)
        for looks, each in zip(seen, look(found, []), strict=True):
            if each.seen is not None:
                looks.append(each.seen)
    text = file_text(seen)
    with writing(path):
        Path(path).write_text(text, encoding="utf-8")
    write(f"{path} is written, of {sum(map(bool, seen))} producer(s) in {seconds:g} s. {UNSEEN}")
    write(f"Put what runs today under [settings], then run: forebay tune predict {path}")
    return OK


def file_text(looks: Sequence[Sequence[ProducerDescription]]) -> str:
    """The file that a recording of looks gives.

    Raises:
        ConfigError: nothing can be said of the load.
    """
    load = seen_load(looks)
    used = [each for each in looks if each]
    streams = load.pop("stream", [])
    lines = [f"# {UNSEEN}", *(f"# seen: {fact}" for fact in seen_facts(used)), "", "[load]", *_lines(load)]
    for stream in streams:
        lines += ["", "[[load.stream]]", *_lines(stream)]
    lines += ["", "[cluster]  # the way and the work are a guess from the mean of answers", *_lines(seen_cluster(used))]
    lines += ["", "[settings]  # the socket does not tell them: add linger.ms, batch.size and what else is set"]
    lines += [f'"{name}" = {value}' for name, value in seen_settings(used).items()]
    return "".join(f"{line}\n" for line in lines)


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in table.items()]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{name}" = {_toml(each)}' for name, each in value.items()) + "}"
    return json.dumps(value)
