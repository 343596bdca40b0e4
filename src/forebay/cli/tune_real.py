"""``forebay tune calibrate`` and ``check``: what needs a real cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from forebay._runtime.clock import SystemClock
from forebay.cli.failure import FAILED, OK, writing
from forebay.cli.outputs import check_output
from forebay.cli.report.progress import Display, LogLines
from forebay.cli.tune import asked
from forebay.config import ProducerConfig
from forebay.tune import calibration, checking, own_costs, real_check
from forebay.tune.calibration import BEGIN, LARGE, LARGE_BYTES, LARGE_RUNS, MOST_RECORDS, Calibration
from forebay.tune.files import in_file
from forebay.tune.stalls import LONG_MS, MARK, Stalls, sleep, watch

Write = Callable[[str], object]
MIB = 1 << 20
OWN_CLUSTER = re.compile(re.escape(BEGIN.encode()))
OWN_STALLS = re.compile(rb'\{"%b":' % re.escape(MARK.encode()))
STALLS_S = 10.0
"""For which a machine is watched."""


def calibrated(config: ProducerConfig, topic: str, output: str, write: Write, sure: Callable[[str], bool]) -> int:
    """Measures a cluster into a file, and the client's own costs into the user's cache.

    Raises:
        CommandError: the file is another one's, or cannot be written.
        ConfigError: the topic is not for the tuner, or a broker went away.
    """
    path = Path(output)
    check_output(path, OWN_CLUSTER, "cluster that was measured")
    servers = ",".join(map(str, config.bootstrap))
    size = LARGE_RUNS * LARGE * LARGE_BYTES // MIB
    if not sure(f"Write up to {MOST_RECORDS:,} records and {size} MiB to topic {topic} of {servers} for each broker?"):
        write("nothing was measured")
        return FAILED
    with LogLines(Display()):
        found = calibration.measure(config, topic, tell=write)
        costs = own_costs.measured()
        stalls = watch(SystemClock(), sleep, STALLS_S)
    with writing(path):
        path.write_text(found.as_toml(), encoding="utf-8")
    for line in _lines(found):
        write(line)
    place = own_costs.cache_file()
    with writing(place, FAILED):
        own_costs.keep(costs, place, own_costs.machine())
        own_costs.keep_stalls(stalls, place, own_costs.machine())
    write(
        f"{'this client':<12}wake {costs.wake * 1000:.1f} µs, turn {costs.turn * 1000:.1f}, request "
        f"{costs.request * 1000:.1f}, batch {costs.batch * 1000:.1f}, record {costs.record * 1000:.2f}; kept in {place}"
    )
    write(_of_stalls(stalls))
    write(
        f'{output} is written, from {found.records:,} records; name it in a load\'s file: [cluster] file = "{output}"'
    )
    return OK


def stalls_watched(path: str, write: Write, *, seconds: float) -> int:
    """Watches how this machine stalls, into a file.

    Raises:
        CommandError: the file is another one's, or cannot be written.
    """
    check_output(path, OWN_STALLS, "file of stalls")
    write(f"this machine is watched for {seconds:g} s, beside whatever else it does")
    found = watch(SystemClock(), sleep, seconds)
    with writing(path):
        Path(path).write_text(found.as_json(), encoding="utf-8")
    write(_of_stalls(found))
    write(f'{path} is written; name it in a load\'s file: [client] stalls = "{path}"')
    return OK


def _of_stalls(found: Stalls) -> str:
    wakes = f"a thread wakes {found.p50:.3g} ms late in the median, p99 {found.p99:.3g}, {found.longest:,.3g} at most"
    return f"{'stalls':<12}{found.rate:,.3g} times a second for {LONG_MS:g} ms or more; {wakes}"


def _lines(found: Calibration) -> list[str]:
    return [
        f"{f'broker {node.id}':<12}round trip {node.broker.rtt_ms:.3g} ms, a request {node.broker.fixed_ms:.3g} ms, "
        f"a MiB {node.broker.per_mib_ms:.3g} ms, followers {node.broker.replication_ms:.3g} ms"
        for node in found.nodes
    ]


def checked(
    path: str,
    given: Mapping[str, str],
    config: ProducerConfig,
    topic: str,
    write: Write,
    sure: Callable[[str], bool],
    *,
    seconds: float,
    seed: int,
    as_json: bool = False,
) -> int:
    """Sends the load of a file to a real topic, and says what was predicted of it; the exit code.

    Args:
        given: producer options that replace the file's, among them how the cluster is reached.
        config: of the questions that are asked before.

    Raises:
        ConfigError: something in the file, or of the topic, is not right.
        KafkaError: the producer cannot be made, or refuses a record.
    """
    load, brokers, _goal, settings, costs, stalls = asked(path, given)
    in_file(path, lambda: real_check.producer_config(settings))
    with LogLines(Display()):
        found = checking.scratch(config, topic)
    planned = in_file(
        path, lambda: real_check.plan(load, settings, topic, found, brokers=brokers, seconds=seconds, seed=seed)
    )
    servers = ",".join(map(str, config.bootstrap))
    if not sure(f"Send about {load.rate * seconds:,.0f} records to topic {topic} of {servers}?"):
        write("nothing was sent")
        return FAILED
    with LogLines(Display()):
        checked = planned.carried_out(costs, stalls)
    write((checked.as_json() if as_json else checked.as_text()).rstrip("\n"))
    return OK if checked.kept else FAILED
