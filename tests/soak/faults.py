"""The faults of a run: which come when is drawn from the seed, and each ends what it began.

Two tracks run side by side, so that a connection may fail while a broker is away: one for the brokers, one for the
proxy.  On a track one fault follows the other; when the run is over, the one of that moment is cut short.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.support.admin import move_leader, wait_until_healthy
from tests.support.damage import RETRIABLE, Damage
from tests.support.pace import within
from tests.support.proxy import KafkaProxy
from tests.support.rewrite import PRODUCE
from tools.kafka import KafkaFailed, RealKafka

END_TXN = 26
#: Beyond it a producer of these runs gives a request up (request.timeout.ms).
REQUEST_TIMEOUT_S = within(1.5)
#: Whose answers are lost.  Brokers of this version are not asked to add partitions (KIP-890).
LOST_ANSWERS = (PRODUCE, END_TXN)


class Fault(NamedTuple):
    """One fault as drawn: the kind, a node's number, seconds it lasts, seconds of peace after it, and a die."""

    kind: str
    node: int
    seconds: float
    peace: float
    die: int

    def __str__(self) -> str:
        return f"{self.kind}(node={self.node}, {self.seconds:.2f} s, die={self.die})"


class Happened(NamedTuple):
    """A fault as it took place, in seconds since the run began; ``note`` says what could not be done."""

    begun: float
    ended: float
    fault: Fault
    note: str = ""

    def __str__(self) -> str:
        return f"{self.begun:7.2f} to {self.ended:7.2f} s: {self.fault} {self.note}".rstrip()


class Kind(NamedTuple):
    """How often a kind is in a deck, and from how many to how many seconds it lasts."""

    dealt: int
    shortest: float
    longest: float


NODE_FAULTS = {
    "kill": Kind(1, 0.0, 4.0),
    "restart": Kind(1, 0.0, 1.0),
    "freeze": Kind(1, 0.3, 1.0),
    "freeze long": Kind(1, 2.0, 5.0),
    "move leaders": Kind(3, 0.0, 0.5),
    "all away": Kind(1, 0.5, 3.0),
}
#: Only in runs that have the time for it: it takes all brokers' starts.
NODE_FAULTS_OF_LONG_RUNS = {**NODE_FAULTS, "kill all": Kind(1, 0.0, 2.0), "move leaders": Kind(6, 0.0, 0.5)}
PROXY_FAULTS = {
    "cut before": Kind(2, 0.05, 0.3),
    "cut after": Kind(2, 0.2, 0.5),
    "delay": Kind(1, 2.0, 3.0),
    "stall": Kind(1, 0.5, 3.0),
    "refuse": Kind(1, 0.2, 2.0),
    "rewrite": Kind(3, 0.3, 1.5),
    "throttle": Kind(1, 0.5, 2.0),
}
NODE_PEACE_S = (0.2, 2.0)
PROXY_PEACE_S = (0.1, 1.5)


def drawn(seed: str, kinds: dict[str, Kind], peace: tuple[float, float], nodes: int) -> Iterator[Fault]:
    """Faults without end: decks of all kinds, each shuffled, so that a short run has many kinds too."""
    dice = random.Random(seed)
    while True:
        deck = [kind for kind, times in kinds.items() for _ in range(times.dealt)]
        dice.shuffle(deck)
        for kind in deck:
            yield Fault(
                kind,
                dice.randrange(nodes),
                dice.uniform(kinds[kind].shortest, kinds[kind].longest),
                dice.uniform(*peace),
                dice.randrange(1 << 30),
            )


class NodeFaults:
    """What can happen to the brokers; each method returns when the cluster is whole again, or a note why not."""

    def __init__(self, kafka: RealKafka, topics: Sequence[tuple[str, int]], over: threading.Event) -> None:
        self._kafka = kafka
        self._topics = topics
        self._over = over

    def carry_out(self, fault: Fault) -> str:
        """Does it and undoes it."""
        table: dict[str, Callable[[Fault], None]] = {
            "kill": self.kill,
            "restart": self.restart,
            "freeze": self.freeze,
            "freeze long": self.freeze,
            "move leaders": self.move_leaders,
            "all away": self.all_away,
            "kill all": self.kill_all,
        }
        try:
            table[fault.kind](fault)
            return ""
        except (KafkaFailed, OSError) as error:
            return str(error)
        finally:
            self._kafka.heal()
            wait_until_healthy(self._kafka)

    def kill(self, fault: Fault) -> None:
        """SIGKILL, and a new start later."""
        self._kafka.kill_node(fault.node)
        self._over.wait(fault.seconds)

    def restart(self, fault: Fault) -> None:
        """In good order."""
        self._kafka.stop_node(fault.node)
        self._over.wait(fault.seconds)

    def freeze(self, fault: Fault) -> None:
        """SIGSTOP and SIGCONT."""
        self._kafka.freeze_node(fault.node)
        self._over.wait(fault.seconds)

    def all_away(self, fault: Fault) -> None:
        """SIGSTOP for all of them."""
        for node in self._kafka.node_ids:
            self._kafka.freeze_node(node)
        self._over.wait(fault.seconds)

    def kill_all(self, fault: Fault) -> None:
        """SIGKILL for all of them."""
        for node in self._kafka.node_ids:
            self._kafka.kill_node(node)
        self._over.wait(fault.seconds)

    def move_leaders(self, fault: Fault) -> None:
        """One partition of each topic gets another leader."""
        dice = random.Random(fault.die)
        for topic, partitions in self._topics:
            partition = dice.randrange(partitions)
            move_leader(self._kafka.address(fault.node), topic, partition, dice.choice(self._kafka.node_ids))
        self._over.wait(fault.seconds)


class ProxyFaults:
    """What can happen to the connections that go through the proxy."""

    def __init__(self, proxy: KafkaProxy, damage: Damage, over: threading.Event) -> None:
        self._proxy = proxy
        self._damage = damage
        self._over = over

    def carry_out(self, fault: Fault) -> str:
        """Does it and undoes it."""
        table: dict[str, Callable[[Fault], None]] = {
            "cut before": self.cut_before,
            "cut after": self.cut_after,
            "delay": self.delay,
            "stall": self.stall,
            "refuse": self.refuse,
            "rewrite": self.rewrite,
            "throttle": self.throttle,
        }
        try:
            table[fault.kind](fault)
        finally:
            self.end()
        return ""

    def end(self) -> None:
        """Everything flows again."""
        self._proxy.delay_ms = 0.0
        self._damage.stop()
        self._proxy.resume()
        self._proxy.accept()

    def cut_before(self, fault: Fault) -> None:
        """Requests do not arrive, then the connections go."""
        self._proxy.stall(answers=False, requests=True)
        self._over.wait(fault.seconds)
        self._proxy.cut()

    def cut_after(self, fault: Fault) -> None:
        """The brokers did the work, and nobody hears of it."""
        dice = random.Random(fault.die)
        self._proxy.lose_answers(dice.choice(LOST_ANSWERS), dice.randint(1, 5))
        self._over.wait(fault.seconds)

    def delay(self, fault: Fault) -> None:
        """Answers come later than anybody waits for them."""
        self._proxy.delay_ms = 1000 * REQUEST_TIMEOUT_S * (0.5 + fault.die % 100 / 100)
        self._over.wait(fault.seconds)

    def stall(self, fault: Fault) -> None:
        """Nothing comes, connections stay."""
        self._proxy.stall()
        self._over.wait(fault.seconds)

    def refuse(self, fault: Fault) -> None:
        """No connections at all."""
        self._proxy.refuse()
        self._over.wait(fault.seconds)

    def rewrite(self, fault: Fault) -> None:
        """Written, and answered with an error after which one tries again."""
        self._damage.every = 1 + fault.die % 3
        self._damage.code = RETRIABLE[fault.die % len(RETRIABLE)]
        self._over.wait(fault.seconds)

    def throttle(self, fault: Fault) -> None:
        """Each answer asks for a pause (KIP-219)."""
        self._damage.throttle_ms = 50 + fault.die % 400
        self._over.wait(fault.seconds)


class Track:
    """One thread that carries out faults one after the other until it is stopped."""

    def __init__(
        self, faults: Iterator[Fault], carry_out: Callable[[Fault], str], begun: float, over: threading.Event
    ) -> None:
        self.happened: list[Happened] = []
        self.error: BaseException | None = None
        self._faults = faults
        self._carry_out = carry_out
        self._begun = begun
        self._over = over
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Waits for the end of the fault of this moment, once the run is over; TimeoutError when it does not come."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"a fault has not ended after {timeout_s:g} s; before it: {self.happened[-3:]}")

    def _run(self) -> None:
        try:
            for fault in self._faults:
                begun = time.monotonic() - self._begun
                note = self._carry_out(fault)
                self.happened.append(Happened(begun, time.monotonic() - self._begun, fault, note))
                if self._over.wait(fault.peace):
                    return
        except BaseException as error:  # noqa: BLE001 -- the run asks for it at its end
            self.error = error
