"""A world: real producers on a clock that an agenda of events moves, before simulated brokers.

The producers are put together by ``forebay._assembly`` as always.  Their threads are never started: the world takes
their turns, when an answer or a record wakes them, or when a wait of theirs is over.  The same seed gives the same
world, whatever the machine.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

# What a producer imports on a thread of its own where it is needed; the simulated one has it at once.
import forebay._accumulator.split  # noqa: F401
from forebay._assembly import Surroundings, assemble
from forebay._network.static_resolver import StaticResolver
from forebay._records.compression import CompressionType, Compressor, NoneCompressor
from forebay._runtime.log import OF_THREADS
from forebay._runtime.manual_clock import ManualClock
from forebay._runtime.threads import get_ident
from forebay._runtime.ticket import Ticket
from forebay.config import ProducerConfig
from forebay.producer._path import SendPath
from forebay.tune._checks import TuneError
from forebay.tune._world.agenda import Agenda
from forebay.tune._world.callers import Caller, TableCaller, records, replays_from
from forebay.tune._world.costs import Costs, RatioCompressor
from forebay.tune._world.field import Field, Notes
from forebay.tune._world.selector import EventSelector
from forebay.tune._world.service import Cluster
from forebay.tune._world.stalling import Stalling
from forebay.tune.brokers import Brokers
from forebay.tune.measures import Entry, Recorder
from forebay.tune.stalls import Stalls
from forebay.tune.trace import Trace
from forebay.tune.workload import Workload

CLIENT = "forebay-tune-simulation"
PATIENCE_MS = 3_600_000.0
"""In which everything ends after the load: far more than a time of the settings, because a quota may mute a connection
for long.  Nearly nothing happens meanwhile, so it costs nothing to wait for."""
LEAST_MS = 0.001
"""Between two turns: a producer that would go round at once must not stop the time."""
START_MS = 60_000.0
"""In which producers have to know the cluster."""


class Simulation(Exception):
    """The world does not behave: a mistake of this package."""


class Outcome(Ticket):
    """Waits for the outcome of a batch."""

    def __init__(self, producer: SimulatedProducer, entry: Entry, result: Any) -> None:
        super().__init__()
        self._all = (producer, entry, result)

    def wake(self) -> None:
        """As ``Ticket.wake``."""
        producer, entry, result = self._all
        producer.finish(entry, result)


class SimulatedProducer:
    """A producer whose turns the world takes.

    Args:
        config: complete.
        load: says how batches compress.
    """

    def __init__(
        self,
        world: World,
        config: ProducerConfig,
        load: Workload,
        chance: random.Random,
        stalling: Stalling | None,
    ) -> None:
        self.agenda = world.agenda
        self.turn_at = math.inf
        """When its next turn is."""
        self._asked = math.inf
        """When it would be, if the machine did not stall."""
        self._clock = world.clock
        self._costs = world.costs
        self.stalling = stalling
        self.next_at = world.next_at
        """As ``callers.Producer.next_at``."""
        self._recorder = world.recorder
        self.selector = EventSelector(world.clock, world.cluster.services)
        around = Surroundings(
            clock=world.clock,
            random=chance.random,
            selector=lambda: self.selector,
            resolver=StaticResolver,
            compressor=partial(self._compressor, load),
            shows=False,
        )
        self.parts = assemble(config, around)
        self.parts.accumulator.closer.helpers = None  # threads
        self.parts.sender.outcomes.on_expiry = _ignore
        self.path: Any = SendPath()
        self.path._prepare(self.parts)
        self.selector.on_news = self._on_news
        self.selector.on_requests = self._on_requests
        self._total = config["buffer.memory"]
        self._busy_until = self._extra_ms = 0.0
        self._requests = self._batches = 0
        self._running = False
        self._result: Any = None
        self._entry = Entry()
        self._entries: dict[Any, Entry] = {}
        self._latest: dict[tuple[str, int], Entry] = {}

    def _compressor(self, load: Workload, kind: CompressionType, level: int | None, caller: Any) -> Compressor:
        if kind is CompressionType.NONE:
            return NoneCompressor(0)
        said = load.compression
        if said is None:
            raise TuneError(
                f"compression.type={kind.label} needs to know how small batches become: say it in [load], such as "
                "compression = {ratio = 0.3}"
            )

        def charge(size: int) -> None:
            self._extra_ms += said.ms_per_mib * size / (1 << 20)

        return RatioCompressor(kind, said.of, charge)

    # -- turns -------------------------------------------------------------------------------------------

    def _on_news(self) -> None:
        if not self._running:
            self._turn_from(self._clock.now() + self._costs.wake)

    def _turn_from(self, when: float) -> None:
        when = max(when, self._busy_until)
        if when < self._asked:
            self._asked = when
            self.turn_at = when if self.stalling is None else self.stalling.turn(when)

    def turn(self) -> None:
        """One turn of the sender: what came in, what is due, and what goes out."""
        now = self._clock.now()
        self.turn_at = self._asked = math.inf
        self._running = True
        self._requests = self._batches = 0
        selector, costs = self.selector, self._costs
        if selector.has_news():
            self.parts.client.poll(0.0, now)
        selector.forget_wakeup()
        self.parts.sender.run_once(now)
        self._running = False
        spent = costs.of_turn(self._requests, self._batches) + self._charged_ms()
        self._recorder.cpu_ms += spent
        self._busy_until = now + max(spent, LEAST_MS)
        self._turn_from(now if selector.again else now + max(selector.timeout, 0.0) + costs.wake)
        self.look_at_pool()

    def look_at_pool(self) -> None:
        """Notes how much memory is in use."""
        pool = self.parts.accumulator.pool
        self._recorder.use_pool(self._total - pool.available(), pool.holders)

    def _on_requests(self) -> None:
        """Requests were written: notes the batches in them, which are the newest in flight."""
        now = self._clock.now()
        starved = self.parts.accumulator.pool.queued() > 0
        for batch in reversed(self.parts.sender.in_flight):
            if batch.drained != now:
                break
            entry = self._entries.get(batch.result)
            if entry is not None:
                self._recorder.drain(entry, batch, starved=starved)
            self._batches += 1
        self._requests += 1

    # -- what callers need -------------------------------------------------------------------------------

    def _charged_ms(self) -> float:
        """What compression took since this was asked for."""
        charged, self._extra_ms = self._extra_ms, 0.0
        return charged

    def accepted(self, future: Any, due: float, now: float, held_ms: float) -> float:
        """As ``callers.Producer.accepted``."""
        result = future._batch
        if result is not self._result:
            if result.done:
                self._recorder.refuse(result.error)
                if held_ms:
                    self._recorder.hold(held_ms)
                return 0.0
            self._result = result
            self._entry = self._entries.get(result) or self._begin_entry(result, now)
        entry = self._entry
        if now != due:
            entry.late = True
        if held_ms:
            entry.held.append((len(entry.times), held_ms))
            self._recorder.hold(held_ms)
        entry.dues.append(due)
        entry.times.append(now)
        return self._charged_ms() if self._extra_ms else 0.0

    def _begin_entry(self, result: Any, now: float) -> Entry:
        entry = self._entries[result] = Entry()
        where = (result.topic, result.partition)
        before = self._latest.get(where)
        if before is not None and before.drained == math.inf:
            before.closed_at = min(before.closed_at, now)
        self._latest[where] = entry
        result.subscribe(Outcome(self, entry, result))
        self.look_at_pool()
        return entry

    def finish(self, entry: Entry, result: Any) -> None:
        """A batch has its outcome."""
        del self._entries[result]
        self._recorder.finish(entry, result)

    # -- beginning and end -------------------------------------------------------------------------------

    def knows(self, topics: Sequence[str]) -> bool:
        """Whether it can send to each partition of the topics at once; asks for what it lacks."""
        now, parts = self._clock.now(), self.parts
        cluster = parts.metadata.cluster()
        missing = [topic for topic in topics if not cluster.partition_count(topic)]
        for topic in missing:
            parts.metadata.add_topic(topic, now)
        ready = [parts.client.ready(node, now) for node in cluster.nodes]
        self._on_news()
        if missing or not all(ready):
            return False
        for topic in topics:
            parts.accumulator.refresh(topic, cluster)
        return parts.transactions is None or bool(parts.transactions.has_producer_id)

    def has_work(self) -> bool:
        """Whether a record has no outcome yet, or a request that nobody waits for any more still keeps memory."""
        accumulator = self.parts.accumulator
        return bool(accumulator.has_incomplete()) or accumulator.pool.available() != self._total

    def close(self) -> None:
        """Ends its parts."""
        self._running = True
        self.parts.accumulator.close()
        self.parts.metadata.close()
        self.parts.client.close(self._clock.now())
        self.parts.users.close_all()
        self.parts.metrics.close()


class World:
    """Everything that a run needs.

    Args:
        settings: of each producer, by Kafka's names, as ``files.checked_settings`` gives them.
        seed: of everything that is random.
        stalls: of each producer's machine; None: it never stalls.
        field: producers beside those of the load, which are not simulated.
        notes: get what the brokers are asked, for the field of another run.
    """

    def __init__(
        self,
        load: Workload,
        brokers: Brokers,
        settings: Mapping[str, Any],
        *,
        costs: Costs,
        seed: int,
        stalls: Stalls | None = None,
        field: Field | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.load = load
        self.costs = costs
        self.stalls = stalls
        self.seed = seed
        self.clock = ManualClock()
        self.agenda = Agenda(self.clock)
        config = _config(settings, ["127.0.0.1:9092"])
        self.recorder = Recorder(self.clock, config, range(1, len(brokers.nodes) + 1))
        leaders = None if load.trace is None else load.trace.homes(len(brokers.nodes))
        self.cluster = Cluster(
            self.agenda, brokers, load.topics, f"{seed}", self.recorder, leaders=leaders, field=field, notes=notes
        )
        self.config = config = _config(settings, self.cluster.bootstrap)
        self.patience_ms = PATIENCE_MS + config["delivery.timeout.ms"] + config["max.block.ms"]
        self.producers = [
            SimulatedProducer(self, config, load, random.Random(f"{seed} producer {number}"), self.stalling(number))
            for number in range(load.producers)
        ]
        for number, producer in enumerate(self.producers):
            producer.selector.number = number
        self.callers: list[Caller] = []
        self._topics = tuple(name for name, _count in load.topics)

    def stalling(self, number: int) -> Stalling | None:
        """Of a producer's machine; None: it never stalls, and nothing computes there."""
        if self.stalls is None and not self.costs.switch:
            return None
        return Stalling(self.stalls, self.costs.switch, random.Random(f"{self.seed} stalls of producer {number}"))

    def run(self, seconds: float) -> Recorder:
        """Lets the load come for so long, then lets what is under way end."""
        with quiet():
            self._start()
            begin = self.clock.now()
            end = begin + 1000 * seconds
            self.recorder.begin(begin, end)
            self.cluster.begin(begin, end)
            self._begin_callers(begin, end)
            self._go_on(end)
            self._finish(end)
            self.recorder.end(sum(caller.left() for caller in self.callers))
        return self.recorder

    def close(self) -> None:
        """Ends the producers."""
        with quiet():
            for producer in self.producers:
                producer.close()

    def next_at(self) -> float:
        """When something happens next, if no record comes first."""
        heap, producers = self.agenda.heap, self.producers
        turn_at = producers[0].turn_at if len(producers) == 1 else self._next_turn().turn_at
        return turn_at if not heap or turn_at < heap[0][0] else heap[0][0]

    def _next_turn(self) -> SimulatedProducer:
        return min(self.producers, key=lambda producer: producer.turn_at)

    def _go_on(self, until: float) -> None:
        """Lets everything happen until then."""
        agenda, heap = self.agenda, self.agenda.heap
        only = self.producers[0] if len(self.producers) == 1 else None
        while True:
            producer = only or self._next_turn()
            at = heap[0][0] if heap else math.inf
            if producer.turn_at <= at:
                if producer.turn_at > until:
                    break
                agenda.move_to(producer.turn_at)
                producer.turn()
            elif at <= until:
                agenda.go_on()
            else:
                break
        agenda.move_to(until)

    def _start(self) -> None:
        """Until each producer knows the cluster and is connected to it."""
        limit = self.clock.now() + START_MS
        missing = self.producers
        while missing := [producer for producer in missing if not producer.knows(self._topics)]:
            if self.clock.now() > limit:
                raise Simulation("a simulated producer does not come to know its cluster")
            self._go_on(self.clock.now() + 10)

    def _begin_callers(self, begin: float, end: float) -> None:
        if self.load.trace is not None:
            self._begin_replays(self.load.trace, begin, end)
            return
        chance = random.Random(f"{self.seed} callers")
        for producer_number, producer in enumerate(self.producers):
            for number, stream in enumerate(self.load.streams):
                topics = self._topics if stream.topic is None else (stream.topic,)
                seed = f"{self.seed} stream {number} of producer {producer_number}"
                source = records(stream, topics, seed, begin, end)
                closed = stream.callers == "closed"
                make: Callable[..., Caller] = partial(Caller, record_ms=self.costs.record)
                if stream.batch_rows > 1:
                    make = partial(TableCaller, record_ms=self.costs.row, rows=stream.batch_rows)
                think_ms = stream.think_ms if closed else None
                for _ in range(stream.threads):
                    caller = make(
                        producer,
                        source,
                        think_ms=think_ms,
                        wake_ms=self.costs.wake,
                        end=end,
                        callbacks=stream.callbacks,
                    )
                    self.callers.append(caller)
                    caller.begin(begin + chance.random() * stream.think_ms if closed else begin)

    def _begin_replays(self, trace: Trace, begin: float, end: float) -> None:
        """One caller for each producer: what a trace says of threads is only what came of them."""
        chance = random.Random(f"{self.seed} replays")
        callbacks = any(stream.callbacks for stream in self.load.streams)
        for number, producer in enumerate(self.producers):
            source = trace.replay(begin, end, replays_from(trace, chance, end - begin, first=number == 0))
            costs: dict[str, Any] = {"record_ms": self.costs.record, "wake_ms": self.costs.wake}
            caller = Caller(producer, source, think_ms=None, **costs, end=end, shifts=True, callbacks=callbacks)
            self.callers.append(caller)
            caller.begin(begin)

    def _finish(self, end: float) -> None:
        """Until each record that was taken has its outcome."""
        while any(caller.held_since is not None for caller in self.callers) or any(
            producer.has_work() for producer in self.producers
        ):
            if self.next_at() > end + self.patience_ms:
                raise Simulation(f"records have no outcome {self.patience_ms / 1000:g} s after the load's end")
            self._go_on(self.next_at())
        for producer in self.producers:
            producer.look_at_pool()


def _config(settings: Mapping[str, Any], bootstrap: list[str]) -> ProducerConfig:
    ours = {"bootstrap.servers": bootstrap, "client.id": CLIENT, "enable.metrics.push": False}
    return ProducerConfig({**settings, **ours})


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps what simulated producers log out of the process's log: it tells of brokers that do not exist.

    They run on the calling thread.  Real producers log on threads of their own.
    """
    own = get_ident()

    def is_real(line: logging.LogRecord) -> bool:
        return line.thread != own

    loggers = [logging.getLogger(name) for name in OF_THREADS]
    for logger in loggers:
        logger.addFilter(is_real)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_real)


def _ignore(now: float) -> None:
    """Nobody wants to look into a simulated producer whose records expire."""
