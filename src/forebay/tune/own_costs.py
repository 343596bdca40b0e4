"""The client's own costs, measured on this machine in three seconds against a sink that only acknowledges, and kept.

All but ``wake`` are processor time.  Records are sent by the callback of the record before, on the sender's thread, so
that no thread has to be woken: a round then takes one turn.  Rounds of one batch, of many batches in one request, and
of as many requests as batches tell the parts of it.  ``wake`` is half of what a record that another thread sends takes
longer than a bare request: the sender is woken twice, by the record and by the answer.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import forebay
from forebay._assembly import system_surroundings
from forebay._records.batch_v2 import append_record
from forebay._records.compression import CompressionType, compressor
from forebay._runtime.clock import Clock, SystemClock
from forebay._runtime.version import VERSION
from forebay.config import ProducerConfig
from forebay.errors import ConfigError
from forebay.model import DeliveryReport
from forebay.producer import KafkaProducer
from forebay.tune._checks import TuneError
from forebay.tune._json import json_of
from forebay.tune._probe import Place, Probe, asking
from forebay.tune._sink import PARTITIONS, TOPIC
from forebay.tune._workers import environment
from forebay.tune._world.costs import Costs
from forebay.tune.stalls import Stalls
from forebay.tune.workload import Compression

VALUE = bytes(100)
MANY, SEVERAL = PARTITIONS, 5
"""Batches of a request; requests of a turn."""
SPAN_MS = 150.0
REPEATS = 3
SAMPLE_SIZES = (1, 2_000, 4_000, 8_000, 16_000)
"""Bytes of the batches of a sample; the first one is a record each."""
SAMPLE_ROUNDS = 3
RECORDS = 50_000
LONE = 50
PAUSE_MS = 10.0
"""Before each of these: who has slept takes longer to begin."""
LEAST_MS = 0.00005
PLACES = 5
WAIT_S = 30.0
STALLS = "stalls.json"
"""The file beside that of the costs."""


class Rounds:
    """Records to the first ``width`` partitions at a time, each time by the callback of the last one's outcome."""

    def __init__(self, producer: Any, width: int, clock: Clock) -> None:
        self._producer = producer
        self._width = width
        self._clock = clock
        self._end = 0.0
        self._left = 0
        self._done = threading.Event()
        self._failure: BaseException | None = None
        self.count: int = 0

    def run(self, ms: float, cpu: Callable[[], float]) -> float:
        """Goes round for so long; processor ms of a round.

        Raises:
            KafkaError: a record failed.
        """
        self.count = 0
        self._done.clear()
        before = cpu()
        self._end = self._clock.now() + ms
        self._send()
        if not self._done.wait(WAIT_S):
            raise TuneError("the client's own costs could not be measured: the local sink does not answer")
        if self._failure is not None:
            raise self._failure
        return (cpu() - before) / self.count

    def _send(self) -> None:
        self._left = self._width
        for partition in range(self._width):
            self._producer.send(TOPIC, VALUE, partition=partition, on_delivery=self._settled)

    def _settled(self, report: DeliveryReport) -> None:
        self._failure = report.error or self._failure
        self._left -= 1
        if self._left:
            return
        self.count += 1
        if self._failure is None and self._clock.now() < self._end:
            self._send()
        else:
            self._done.set()


def measured(clock: Clock | None = None) -> Costs:
    """Measures them; three seconds of this machine.

    Raises:
        TuneError: the local sink does not start or answer.
    """
    clock = clock or SystemClock()
    with sink() as address:
        with KafkaProducer(**options(address)) as producer:
            producer.send(TOPIC, VALUE, partition=0).result(WAIT_S)
            one = least(Rounds(producer, 1, clock))
            several = least(Rounds(producer, SEVERAL, clock))
            many = least(Rounds(producer, MANY, clock))
            wake = (lone_ms(producer, clock) - trip_ms(address, clock)) / 2
        # So small that each batch is a request.
        with KafkaProducer(**options(address, max_request_size=2 * len(VALUE))) as producer:
            producer.send(TOPIC, VALUE, partition=0).result(WAIT_S)
            apart = least(Rounds(producer, SEVERAL, clock))
        with KafkaProducer(**options(address, linger_ms=60_000, batch_size=1 << 20)) as producer:
            producer.send(TOPIC, VALUE, partition=0)
            record = record_ms(producer)
            producer.flush(WAIT_S)
    return costs_of(record, one, several, many, apart, wake)


def costs_of(record: float, one: float, several: float, many: float, apart: float, wake: float) -> Costs:
    """The parts.

    Args:
        record: ms of a call of send.
        one: of one batch.
        several: of ``SEVERAL`` batches in one request.
        many: of ``MANY`` batches in one request.
        apart: of ``SEVERAL`` requests with a batch each.
    """
    batch = (many - one) / (MANY - 1) - record
    request = (apart - several) / (SEVERAL - 1)
    turn = one - record - max(batch, 0.0) - max(request, 0.0)
    return Costs(
        **{
            name: max(LEAST_MS, round(ms, PLACES))
            for name, ms in {
                "wake": wake,
                "turn": turn,
                "request": request,
                "batch": batch,
                "record": record,
            }.items()
        }
    )


def options(address: str, **more: Any) -> dict[str, Any]:
    """Of a producer that sends at once, and sends nothing of its own."""
    return {
        "bootstrap_servers": address,
        "linger_ms": 0,
        "enable_metrics_push": False,
        "max_sparse_batches_in_flight": 0,
        **more,
    }


def least(rounds: Rounds) -> float:
    """Of some times the one that was disturbed least."""
    return min(rounds.run(SPAN_MS, cpu_ms) for _ in range(REPEATS))


def record_ms(producer: Any) -> float:
    """Processor ms of a call of send into a batch that has room."""
    spent: list[float] = []
    for _ in range(REPEATS):
        before = cpu_ms()
        for _number in range(RECORDS // REPEATS):
            producer.send(TOPIC, VALUE, partition=0)
        spent.append((cpu_ms() - before) / (RECORDS // REPEATS))
    return min(spent)


def lone_ms(producer: Any, clock: Clock) -> float:
    """Ms from a call of send on this thread until the callback runs; the median of some."""
    found: list[float] = []
    pause = threading.Event()
    for _ in range(LONE):
        pause.wait(PAUSE_MS / 1000)
        begun = clock.now()
        ends: list[float] = []
        producer.send(TOPIC, VALUE, partition=0, on_delivery=lambda report, ends=ends: ends.append(clock.now())).result(
            WAIT_S
        )
        producer.flush(WAIT_S)
        found.append(ends[0] - begun)
    return sorted(found)[LONE // 2]


def trip_ms(address: str, clock: Clock) -> float:
    """Ms of a bare request of this thread; the median of some."""
    around = system_surroundings()._replace(clock=clock)
    with asking(ProducerConfig(bootstrap_servers=address), "the measuring of this client", around) as (session, _clock):
        node = session.any_node(session.deadline("an answer", 1000 * WAIT_S))
        found = Probe(session, Place(TOPIC, 0, node, 1), clock.wall, 1000 * WAIT_S).round_trips(LONE, PAUSE_MS)
    return sorted(found)[LONE // 2]


def cpu_ms() -> float:
    """Of this process, all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return 1000 * (used.ru_utime + used.ru_stime)


@contextlib.contextmanager
def sink() -> Iterator[str]:
    """The address of a sink in a process of its own.

    Raises:
        TuneError: it does not start.
    """
    command = [sys.executable, "-m", "forebay.tune._sink"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port.isdigit():
                raise TuneError("the client's own costs could not be measured: the local sink does not start")
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


# -- what is kept --------------------------------------------------------------------------------------------


def compression_of(values: Sequence[bytes], codec: str) -> Compression:
    """What a codec leaves of batches of these values, small ones and large ones, and how long it takes.

    Measured here and now, so that the time is another one each time.

    Args:
        values: of records without keys, in their order.
        codec: as ``compression.type`` names it.

    Raises:
        TuneError: there are no values.
        ConfigError: there is no such codec, or its package is not installed.
    """
    if not any(values):
        raise TuneError("a sample has values to compress, one a line; there is none")
    found = compressor(CompressionType.of(codec))
    ratios = {}
    for size in SAMPLE_SIZES:
        batches = batches_of(values, size)
        before = sum(map(len, batches))
        ratios[before // len(batches)] = round(sum(len(found.compress([each])) for each in batches) / before, 4)
    fastest = math.inf
    for _ in range(SAMPLE_ROUNDS):
        begun = cpu_ms()
        for each in batches:
            found.compress([each])
        fastest = min(fastest, cpu_ms() - begun)
    return Compression(min(2.0, ratios[max(ratios)]), round(fastest * (1 << 20) / before, 3), tuple(ratios.items()))


def batches_of(values: Sequence[bytes], size: int) -> list[bytes]:
    """The records of batches that have this size or a little more; the last one is left out unless it is alone."""
    batches, batch = [], bytearray()
    for value in values:
        append_record(batch, 0, 0, None, value, ())
        if len(batch) >= size:
            batches.append(bytes(batch))
            batch.clear()
    return batches if batches else [bytes(batch)]


def machine() -> str:
    """What the costs depend on: the processor's model, and the versions of what runs on it."""
    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_bytes().decode(errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    model = model or platform.processor() or platform.machine()
    return f"{model}; forebay {VERSION} {forebay.implementation}; Python {platform.python_version()}"


def cache_file(environment: Mapping[str, str] = os.environ) -> Path:
    """In the user's cache (``XDG_CACHE_HOME``, else ``~/.cache``)."""
    given = environment.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "forebay" / "costs.json"


def keep(costs: Costs, path: Path, name: str) -> None:
    """Writes them beside those of other machines and versions.

    Raises:
        OSError: it cannot be written.
    """
    _keep(asdict(costs), path, name)


def keep_stalls(stalls: Stalls, path: Path, name: str) -> None:
    """As ``keep``, beside the costs."""
    _keep(asdict(stalls), path.with_name(STALLS), name)


def _keep(table: Mapping[str, Any], path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json_of({**_read(path), name: table})
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def kept(path: Path, name: str) -> Costs | None:
    """Those of this machine and version; None if there are none that can be."""
    found = _read(path).get(name)
    if not isinstance(found, dict) or set(found) | {"switch"} != {field.name for field in fields(Costs)}:
        return None
    try:
        return Costs(**found)
    except ConfigError:
        return None


def kept_stalls(path: Path, name: str) -> Stalls | None:
    """As ``kept``."""
    try:
        return Stalls.of_table(_read(path.with_name(STALLS))[name])
    except (KeyError, TypeError, ValueError, ConfigError):
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
