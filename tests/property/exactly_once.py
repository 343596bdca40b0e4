"""Drivers and tasks of exactly-once writes, let go step by step in every order that a few switches can make.

An *actor* is a driver's life, a task that nobody waits for, or something that befalls Kafka.  It stops before each
thing that others can see.  A *schedule* says where another actor goes on.  Whoever never goes on again has crashed, and
whoever goes on late is stale or a zombie.  Every schedule ends with one more driver that is left alone, and then every
row has to be there once.  ``Explorer`` plays all schedules with a few switches, each state once, and notes each rule
that is broken, with the shortest schedule that it has found for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from greenlet import greenlet

from forebay.errors import KafkaError
from forebay.model import TransactionDescription, TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import Claim, Fate, State, TaskOutcome, Write
from tests.fakes.transactions import ONGOING, World

Seen = TypeVar("Seen")

TASKS = 2
ROWS_OF_A_TASK = 2
DOUBLED = "a row is there twice"
MISSING = "a row is missing, and no error says so"
LOST_IS_READ = "a transaction that is lost by the control topic can be read"
TAKEN_UNSETTLED = "an id of a decision that is not settled gets another producer"
ENDS_NEWER = "a driver ends a transaction of a newer claim"
HOLDS_READERS = "what was open holds readers after a sweep"
BROKEN_RULE = "an error that nobody expects"
LAST = "last driver"


class Rules(Protocol):
    """The protocol that is played."""

    def begin(self, topic: Topic) -> Claim:
        """Before the tasks."""
        ...

    def commit(self, topic: Topic, outcomes: list[TaskOutcome]) -> None:
        """After them."""
        ...

    def abort(self, topic: Topic, outcomes: list[TaskOutcome], claim: Claim) -> None:
        """After a failure."""
        ...

    def task_id(self, worker: str, claim: Claim, partition: int, attempt: int) -> str:
        """What a task attempt writes under; raises KafkaError if it may not."""
        ...

    def is_loud(self, error: KafkaError) -> bool:
        """Whether the error says that rows may be missing, so that a user has to look."""
        ...

    def is_named(self, error: KafkaError) -> bool:
        """Whether the error of a driver is one that says what happened, and not one of its requests'."""
        ...


class Life(NamedTuple):
    """What one driver does: writes one after the other, in Python workers of its own or in somebody else's."""

    name: str
    writes: tuple[Write, ...]
    workers: str = ""
    aborts: bool = True
    """Whether Spark calls ``abort`` when its commit fails."""
    one_worker: bool = False
    """Whether the first worker runs all tasks, one after the other."""


class Zombie(NamedTuple):
    """A task attempt that no driver waits for any more: of a stage's earlier attempt, or a speculative copy."""

    name: str
    of: str
    """The driver with whose first claim it was started."""
    partition: int
    attempt: int
    worker: str = ""
    """Whose it is, if not one of its own."""


class Setting(NamedTuple):
    """Who takes part."""

    lives: tuple[Life, ...]
    zombies: tuple[Zombie, ...] = ()
    time_out: bool = False
    expiry: bool = False
    version: int = 2


def rows_of(write: Write, partition: int) -> list[Any]:
    """The rows of a task, the same in each repetition."""
    return [(write.version, partition, row) for row in range(ROWS_OF_A_TASK)]


class Topic:
    """The control topic of one driver; notes which claim it acts for, and what breaks a rule."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._world = history.world
        self.number = 0

    def claim(self) -> TransactionIdentity:
        driver = self._world.claim()
        self._history.claims += 1
        self.number = self._history.claims
        self._history.numbers[driver[1:3]] = self.number
        return driver

    def read(self) -> State:
        return self._seen("read", self._world.read())

    def write(self, driver: TransactionIdentity, state: State) -> TransactionIdentity:
        after = self._world.write(driver, state)
        self._history.numbers[after[1:3]] = self.number
        return after

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        self._world.step("end")
        before = self._open(identity.transactional_id)
        done = self._world.end_in_coordinator(identity, commit)
        self._check_mine(identity.transactional_id, before)
        return self._seen("end", done)

    def describe(self, ids: Iterable[str], **more: Any) -> Mapping[str, TransactionDescription | None]:
        return self._seen("describe", self._world.describe(ids, **more))

    def ongoing(self, prefix: str) -> list[str]:
        return self._seen("list", self._world.ongoing(prefix))

    def fence(self, transactional_id: str) -> None:
        self._world.step("fence")
        self._history.check_settled(transactional_id)
        before = self._open(transactional_id)
        self._world.init(transactional_id)
        self._check_mine(transactional_id, before)

    def _open(self, transactional_id: str) -> tuple[int, int] | None:
        entry = self._world.entries.get(transactional_id)
        return (entry.producer_id, entry.epoch) if entry is not None and entry.state == ONGOING else None

    def _check_mine(self, transactional_id: str, before: tuple[int, int] | None) -> None:
        if before is None or self._open(transactional_id) == before:
            return
        if self._history.owners.get((transactional_id, *before), 0) > self.number:
            self._history.broken(ENDS_NEWER)

    def _seen(self, name: str, result: Seen) -> Seen:
        actor = self._history.current
        if actor is not None:
            actor.trail = hash((actor.trail, name, repr(result)))
        return result


@dataclass
class Actor:
    """Somebody who goes on when told to."""

    name: str
    body: Callable[[], None]
    ready: Callable[[], bool] = lambda: True
    thread: Any = None
    finished: bool = False
    trail: int = 0
    """Of what it has seen: with it a state is known again."""


@dataclass
class History:
    """One schedule as it is played."""

    setting: Setting
    rules: Rules
    world: World = field(init=False)
    claims: int = 0
    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """Of the claims, by the driver's producer id and epoch."""
    owners: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """The claim of each task's transaction."""
    found: list[str] = field(default_factory=list)
    """Rules that were broken."""
    loud: bool = False
    current: Actor | None = None

    def __post_init__(self) -> None:
        self.world = World(version=self.setting.version)
        self.world.before_step = self._stop
        self._first_claims: dict[str, Claim] = {}
        self._lost: set[tuple[str, int, int]] = set()
        self._busy: set[str] = set()
        self._noted: set[Write] = set()
        """What Spark's own log has; whoever starts goes on behind it."""
        self._records = 0
        self.actors: dict[str, Actor] = {}
        for life in self.setting.lives:
            self._add(life.name, lambda life=life: self._live(life))  # type: ignore[misc]
        for one in self.setting.zombies:
            self._add(
                one.name,
                lambda one=one: self._wake(one),  # type: ignore[misc]
                lambda one=one: one.of in self._first_claims,  # type: ignore[misc]
            )
        if self.setting.time_out:
            self._add("time-out", self.world.time_out)
        if self.setting.expiry:
            self._add("expiry", self.world.expire)
        self._main = greenlet.getcurrent()

    def _add(self, name: str, body: Callable[[], None], ready: Callable[[], bool] = lambda: True) -> None:
        self.actors[name] = Actor(name, body, ready)

    # Actors

    def _stop(self, step: str) -> None:
        if self.current is not None:
            self.current.trail = hash((self.current.trail, step))
            self._main.switch()

    def go_on(self, name: str) -> None:
        """Lets the actor make one step."""
        actor = self.current = self.actors[name]
        if actor.thread is None:
            actor.thread = greenlet(actor.body)
        actor.thread.switch()
        actor.finished = actor.thread.dead
        self.current = None
        self._check()

    def close(self) -> None:
        """Ends the actors that stand in the middle of something: the collector of garbage cannot free them."""
        for actor in self.actors.values():
            if actor.thread is not None and not actor.finished:
                actor.thread.throw()

    def waiting(self) -> list[str]:
        """Actors that can go on."""
        return [name for name, actor in self.actors.items() if not actor.finished and actor.ready()]

    def _live(self, life: Life) -> None:
        topic = Topic(self)
        for write in life.writes:
            if write in self._noted:
                continue
            if not self._write(topic, life, write):
                return
            self.world.step("note")
            self._noted.add(write)

    def _write(self, topic: Topic, life: Life, write: Write) -> bool:
        outcomes: list[TaskOutcome] = []
        claim, of_driver = None, True
        try:
            claim = self.rules.begin(topic)
            self._first_claims.setdefault(life.name, claim)
            of_driver = False  # a task's error is translated where it writes (``TaskTransaction.reason``)
            for partition in range(TASKS):
                worker = f"{life.workers or life.name}{0 if life.one_worker else partition}"
                outcomes.append(self._task(worker, claim, write, partition, 0))
            open_then, of_driver = self._open_now(), True
            self.rules.commit(topic, outcomes)
        except KafkaError as error:
            self.loud = self.loud or self.rules.is_loud(error)
            if of_driver and not self.rules.is_named(error):
                self.broken(BROKEN_RULE)
            if claim is not None and life.aborts:
                self.rules.abort(topic, outcomes, claim)
            return False
        # Whose own id has expired in the middle of a commit cannot tell that nobody has taken it.
        mine = topic.number == self.claims and protocol.driver_id("p") in self.world.entries
        if mine and open_then & self._open_now():
            self.broken(HOLDS_READERS)
        if any(self.world.visible.count(row) < 1 for part in range(TASKS) for row in rows_of(write, part)):
            self.broken(MISSING)
        return True

    def _task(self, worker: str, claim: Claim, write: Write, partition: int, attempt: int) -> TaskOutcome:
        if protocol.role(claim, write, partition) is protocol.Role.SKIP:
            return TaskOutcome(claim, write, partition, True)
        while worker in self._busy:
            worker += "'"  # A process runs one task at a time.
        self._busy.add(worker)
        outcome = self._attempt(worker, claim, write, partition, attempt)
        self._busy.remove(worker)
        return outcome

    def _attempt(self, worker: str, claim: Claim, write: Write, partition: int, attempt: int) -> TaskOutcome:
        transactional_id = self.rules.task_id(worker, claim, partition, attempt)
        self.world.step("init")
        entry = self.world.entries.get(transactional_id)
        self.check_settled(transactional_id)
        if entry is not None and entry.state == ONGOING:
            self.world._abort(entry)
            self.world.step("init again")
        identity = self.world.init(transactional_id)
        self.owners[identity[:3]] = self.numbers[claim.driver[1:3]]
        rows = rows_of(write, partition)
        for row in rows:
            self.world.step("produce")
            self.world.produce(identity, [row])
        digest = sum(hash(row) for row in rows) & (2**64 - 1)
        task = protocol.TaskWrite(partition, identity, len(rows), digest)
        return TaskOutcome(claim, write, partition, False, task)

    def _wake(self, one: Zombie) -> None:
        life = next(life for life in self.setting.lives if life.name == one.of)
        try:
            self._task(one.worker or one.name, self._first_claims[one.of], life.writes[0], one.partition, one.attempt)
        except KafkaError:
            pass  # Nobody waits for it.

    def end(self) -> None:
        """One more driver, alone, as often as Spark would start it again; then nothing may be missing or doubled."""
        writes = tuple(dict.fromkeys(write for life in self.setting.lives for write in life.writes))
        life = Life(LAST, writes)
        for _ in range(3):
            self._live(life)
            if not self._missing(writes):
                break
        self._check()
        if self._missing(writes) and not self.loud:
            self.broken(MISSING)

    def _missing(self, writes: Iterable[Write]) -> bool:
        wanted = Counter(row for write in writes for part in range(TASKS) for row in rows_of(write, part))
        return bool(wanted - Counter(self.world.visible))

    # Rules

    def broken(self, rule: str) -> None:
        """Notes it."""
        if rule not in self.found:
            self.found.append(rule)

    def check_settled(self, transactional_id: str) -> None:
        """Before InitProducerId of a task's id."""
        decision = self.world.last_state().decision
        if decision is not None and any(
            task.identity.transactional_id == transactional_id for task in decision.with_fate(Fate.OPEN)
        ):
            self.broken(TAKEN_UNSETTLED)

    def _open_now(self) -> set[tuple[str, int, int]]:
        return {
            (name, entry.producer_id, entry.epoch)
            for name, entry in self.world.entries.items()
            if entry.state == ONGOING and not name.endswith("-driver")
        }

    def _check(self) -> None:
        if self.world.doubled():
            self.broken(DOUBLED)
        for record in self.world.records[self._records :]:
            decision = protocol.decode(record).decision
            for task in decision.with_fate(Fate.LOST) if decision else ():
                self._lost.add(task.identity[:3])
        self._records = len(self.world.records)
        if self._lost & self.world.committed:
            self.broken(LOST_IS_READ)

    def state(self) -> Any:
        """With which a state is known again."""
        world = self.world
        return (
            tuple(
                (name, one.producer_id, one.epoch, one.state, tuple(one.rows)) for name, one in world.entries.items()
            ),
            tuple(world.records),
            tuple(sorted(world.visible)),
            tuple((actor.trail, actor.finished) for actor in self.actors.values()),
            tuple(sorted(self._noted)),
            self.claims,
        )


Schedule = tuple[tuple[int, str], ...]
"""Before which step who goes on; LAST ends it."""


class Explorer:
    """All schedules of a setting.

    Args:
        switches: how often an actor that could go on is left for another one.
        most: schedules, if they are not to be all.
        after: how each of them begins.
    """

    def __init__(
        self, setting: Setting, make_rules: Callable[[], Rules], *, switches: int, most: int = 0, after: Schedule = ()
    ) -> None:
        self._setting = setting
        self._make_rules = make_rules
        self._switches = switches
        self._most = most
        self._seen: dict[Any, int] = {}
        self._todo: list[tuple[Schedule, int]] = [(after, switches)]
        self.schedules = 0
        self.found: dict[str, Schedule] = {}

    @property
    def states(self) -> int:
        """How many states were seen."""
        return len(self._seen)

    def run(self, *, until: str | None = None) -> Explorer:
        """Plays them all, or until a rule is broken."""
        while self._todo and until not in self.found and (not self._most or self.schedules < self._most):
            schedule, left = self._todo.pop(0)
            self._play(schedule, left)
        return self

    def _play(self, schedule: Schedule, left: int) -> None:
        history = History(self._setting, self._make_rules())
        forced = dict(schedule)
        last = max(forced, default=-1)
        self.schedules += 1
        current = LAST
        point = 0
        while True:
            waiting = history.waiting()
            if point > last:
                if not self._is_new(history, current, left):
                    break
                self._branch(schedule, point, left, current, waiting)
            current = goes_on(current, point, forced, waiting)
            if current == LAST:
                history.end()
                break
            history.go_on(current)
            point += 1
        history.close()
        for rule in history.found:
            known = self.found.get(rule)
            if known is None or len(schedule) < len(known):
                self.found[rule] = schedule

    def _is_new(self, history: History, current: str, left: int) -> bool:
        key = hash((history.state(), current))
        if self._seen.get(key, -1) >= left:
            return False
        self._seen[key] = left
        return True

    def _branch(self, schedule: Schedule, point: int, left: int, current: str, waiting: list[str]) -> None:
        """Notes all other ways to go on from here."""
        cost = 1 if current in waiting else 0
        if cost > left:
            return
        chosen = goes_on(current, point, {}, waiting)
        others = [name for name in (*waiting, LAST) if name != chosen]
        self._todo.extend(((*schedule, (point, other)), left - cost) for other in others)


def goes_on(current: str, point: int, forced: Mapping[int, str], waiting: list[str]) -> str:
    """Who makes the next step: the one that the schedule names, or the one that made the last, or the first."""
    if point in forced:
        return forced[point]
    return current if current in waiting else (*waiting, LAST)[0]


def play(setting: Setting, rules: Rules, schedule: Schedule) -> History:
    """One schedule alone, to look at what it does."""
    history = History(setting, rules)
    forced = dict(schedule)
    current = LAST
    point = 0
    while True:
        current = goes_on(current, point, forced, history.waiting())
        if current == LAST:
            history.end()
            history.close()
            return history
        history.world.steps.append(f"-- {current}")
        history.go_on(current)
        point += 1
