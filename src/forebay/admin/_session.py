"""The requests of an AdminClient, driven to their answers in the caller's thread, and retried until a deadline.

A session has connections of its own and nobody else's turn moves them: whoever asks, polls.  One thread at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from forebay._network.client import NetworkClient
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.metadata import Metadata
from forebay._protocol.versions import SUPPORTED, Range, api_name
from forebay._runtime.backoff import ExponentialBackoff
from forebay._runtime.clock import Clock
from forebay._runtime.owner import change_owner
from forebay._runtime.threads import hub_of_caller, pause
from forebay.errors import DisconnectError, KafkaError, KafkaTimeoutError, RetriableError, error_for
from forebay.model import Node

T = TypeVar("T")

SLICE_MS = 100.0
"""Longest wait in one turn, so that a signal handler (Ctrl-C) runs that soon."""
GREENLET_MS = 5.0
"""Longest wait in one turn of a greenlet, which does not see what arrives meanwhile."""

logger = logging.getLogger("forebay.admin")


class Deadline(NamedTuple):
    """Until when a call may go on: monotonic ms, and what to say when it is over."""

    at: float
    what: str
    timeout_ms: float

    def error(self, cause: BaseException | None) -> KafkaTimeoutError:
        """For the caller, with what stood in the way."""
        why = f": {cause}" if cause is not None else ""
        error = KafkaTimeoutError(f"{self.what} was not done within {self.timeout_ms / 1000:g} s{why}")
        error.__cause__ = cause
        return error


class _OutOfTime(KafkaTimeoutError):
    """The deadline is over in the middle of an attempt; the message says what was waited for."""


class Question(NamedTuple):
    """A request that any broker may get; ``versions`` narrows what this package speaks."""

    api_key: int
    build: Callable[[int], list[bytes]]
    parse: Callable[[int, bytes | memoryview], Any]
    versions: Range | None = None


class Timed(NamedTuple):
    """An answer, with the monotonic ms at which its request was sent and it was received."""

    sent: float
    received: float
    body: Any


def raise_for(error_code: int, message: str | None = None, /, **context: object) -> None:
    """Raises the error of a broker's code; 0 is none."""
    error = error_for(error_code, message, **context)
    if error is not None:
        raise error


class AdminSession:
    """Connections, and how to ask.

    Args:
        request_timeout_ms: ``request.timeout.ms``, after which a connection that owes an answer is given up.
        closers: what ends the parts, in order.
    """

    def __init__(
        self,
        *,
        client: NetworkClient,
        metadata: Metadata,
        clock: Clock,
        backoff: ExponentialBackoff,
        request_timeout_ms: float,
        closers: Iterable[Callable[[], object]],
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._clock = clock
        self._backoff = backoff
        self._closers = tuple(closers)
        self.request_timeout_ms: float = request_timeout_ms
        self.coordinators: dict[str, Node] = {}
        """Coordinators of transactional ids, as last heard."""
        self.torn: bool = False
        """The session is good for nothing but closing: a turn was left half way (Ctrl-C), or a broker refused us for
        good, and the next call is to try with connections of its own."""

    def deadline(self, what: str, timeout_ms: float) -> Deadline:
        """``timeout_ms`` from now."""
        return Deadline(self._clock.now() + timeout_ms, what, timeout_ms)

    def retry(self, deadline: Deadline, attempt: Callable[[], T]) -> T:
        """What ``attempt`` returns, once it does not end in an error that passes.

        Raises:
            KafkaTimeoutError: the deadline is over; the last error is the cause.
            KafkaError: one that does not pass.
        """
        failures = 0
        last: RetriableError | None = None
        # Connections that ended while nobody asked for anything are noticed before they are used.
        self._poll(0)
        while True:
            try:
                return attempt()
            except _OutOfTime as error:
                # What failed before says more than what the last attempt was waiting for.
                late = deadline.error(last or self._metadata.last_error("") or error)
                raise late from late.__cause__
            except RetriableError as error:
                last = error
            delay = self._backoff.delay(failures)
            failures += 1
            if self._clock.now() + delay >= deadline.at:
                raise deadline.error(last)
            logger.debug("%s: trying again in %.0f ms after %s", deadline.what, delay, last)
            self._pause(delay)

    def ask(self, node: Node, question: Question, deadline: Deadline) -> Any:
        """The parsed answer of ``node``.

        Raises:
            DisconnectError: there is no connection, or it was lost before the answer; the broker may have acted.
            KafkaTimeoutError: no answer before the deadline.
            UnsupportedVersionError: nothing in common with this broker.
        """
        return self.ask_all((node,), question, deadline)[0]

    def ask_all(self, nodes: Sequence[Node], question: Question, deadline: Deadline) -> list[Any]:
        """The parsed answers of several nodes, in their order; all are asked before the first answer is waited for.

        Raises:
            KafkaError: as ``ask``, of the first node that has none.
        """
        for node in nodes:
            # Begins to connect.
            self._client.ready(node, self._clock.now())
        answers: dict[int, ClientResponse] = {}
        oldest, newest = question.versions or SUPPORTED[question.api_key]
        for place, node in enumerate(nodes):
            self._connect(node, deadline)
            request = ClientRequest(
                node.id,
                question.api_key,
                oldest,
                newest,
                question.build,
                question.parse,
                timeout_ms=self.request_timeout_ms,
                on_complete=partial(answers.__setitem__, place),
            )
            self._client.send(request, self._clock.now())
        for place, node in enumerate(nodes):
            while place not in answers:
                self._turn(deadline, f"the answer to {api_name(question.api_key)} of {node}")
            failure = answers[place].error
            if failure is not None:
                raise failure
        return [answers[place].body for place in range(len(nodes))]

    def timed(
        self,
        node: Node,
        question: Question,
        deadline: Deadline,
        *,
        count: int,
        in_flight: int = 1,
        pause_ms: float = 0.0,
    ) -> list[Timed]:
        """Asks the same ``count`` times with up to ``in_flight`` requests under way; the answers in their order.

        Args:
            pause_ms: before each request, where none is under way.

        Raises:
            KafkaError: as ``ask``, of the first request that has no answer.
        """
        answers: list[ClientResponse] = []
        sent: list[float] = []
        oldest, newest = question.versions or SUPPORTED[question.api_key]
        self._connect(node, deadline)
        while len(answers) < count:
            if pause_ms and len(sent) == len(answers):
                self._pause(pause_ms)
            now = self._clock.now()
            while len(sent) < min(count, len(answers) + in_flight) and self._client.ready(node, now):
                request = ClientRequest(
                    node.id,
                    question.api_key,
                    oldest,
                    newest,
                    question.build,
                    question.parse,
                    timeout_ms=self.request_timeout_ms,
                    on_complete=answers.append,
                )
                self._client.send(request, now)
                sent.append(now)
            self._turn(deadline, f"the answer to {api_name(question.api_key)} of {node}")
            failure = next((answer.error for answer in answers if answer.error is not None), None)
            if failure is not None:
                raise failure
        return [Timed(at, answer.received, answer.body) for at, answer in zip(sent, answers, strict=True)]

    def any_node(self, deadline: Deadline) -> Node:
        """A broker to ask what any of them can answer."""
        while True:
            self._raise_if_refused()
            if not self._metadata.is_bootstrap:
                node = self._client.least_loaded_node(self._clock.now())
                if node is not None:
                    return node
            self._turn(deadline, "a broker")

    def all_nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        """Every broker of the cluster, asked anew."""
        self.refresh(deadline)
        return self._metadata.cluster().nodes

    def controller(self, deadline: Deadline) -> Node:
        """The broker that takes requests for the controller."""
        cluster = self._metadata.cluster()
        if self._metadata.is_bootstrap:
            self.refresh(deadline)
            cluster = self._metadata.cluster()
        return cluster.node(cluster.controller_id) or self.any_node(deadline)

    def refresh(self, deadline: Deadline) -> None:
        """Waits for an answer about the brokers that was asked for from now on."""
        version = self._metadata.request_update()
        while self._metadata.version <= version or self._metadata.is_bootstrap:
            self._raise_if_refused()
            self._turn(deadline, "metadata")

    def feature_level(self, name: str, deadline: Deadline) -> int:
        """A finalized feature's level, of the newest epoch heard of; 0 where there is none (KIP-584)."""
        self.any_node(deadline)
        levels: tuple[int, int] = self._client.versions.features.levels.get(name, (0, 0))
        return levels[1]

    def last_error(self) -> KafkaError | None:
        """What kept the brokers from being known, of late."""
        return self._metadata.last_error("")

    def close(self) -> None:
        """Ends the connections; whatever fails in that is logged."""
        for close in self._closers:
            try:
                close()
            except Exception:  # the others have to be closed all the same
                logger.exception("While closing an AdminClient")

    def close_after_fork(self) -> None:
        """In a forked child: closes the descriptors and touches nothing else."""
        self._client.close_after_fork()

    def _connect(self, node: Node, deadline: Deadline) -> None:
        while not self._client.ready(node, self._clock.now()):
            if self._client.states.failed(node.id):
                refusal = self._client.states.authentication_error(node.id)
                if refusal is not None:
                    self.torn = True
                    raise refusal
                failure = self._client.states.last_error(node.id)
                why = f": {failure.__cause__ or failure}" if failure is not None else ""
                raise DisconnectError(f"No connection to {node}{why}") from failure
            self._turn(deadline, f"a connection to {node}")

    def _raise_if_refused(self) -> None:
        try:
            self._metadata.raise_if_failed()
        except KafkaError:
            self.torn = True
            raise

    def _turn(self, deadline: Deadline, awaited: str) -> None:
        left = deadline.at - self._clock.now()
        if left <= 0:
            raise _OutOfTime(f"still waiting for {awaited}")
        self._poll(min(left, SLICE_MS))

    def _pause(self, ms: float) -> None:
        end = self._clock.now() + ms
        while (left := end - self._clock.now()) > 0:
            self._poll(min(left, SLICE_MS))

    def _poll(self, timeout_ms: float) -> None:
        try:
            hub = hub_of_caller()
            if hub is not None:
                # In poll(2) it would stop the other greenlets of its thread.
                pause(hub, min(timeout_ms, GREENLET_MS) / 1000)
                timeout_ms = 0.0
            change_owner(self._client)
            self._client.poll(timeout_ms, self._clock.now())
        except BaseException:
            self.torn = True
            raise
