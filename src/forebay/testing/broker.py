"""A Kafka broker for tests and development that installs with pip.

:class:`EmbeddedBroker` is librdkafka's mock cluster, out of the ``confluent-kafka`` wheel, in a process of its
own, with the faults it can inject.  It speaks enough of the protocol for any producer and consumer, over real
sockets on 127.0.0.1 and, where the machine has IPv6, on ::1.  It is for tests and development, not for data:

| Asked of it | What the embedded broker does |
|---|---|
| Keeping records | in memory, at most the newest 5 MiB of each partition; ends with all it has |
| Produce | up to version 10, topics by name; a batch of any size; no checksum is looked at |
| Formats v0 and v1 | takes what is not compressed |
| A batch sent again | is written again; sequence numbers are looked at only with a transactional id |
| Acknowledgements | have timestamp 1234; the records keep their own |
| Offsets by time | finds none |
| Transactions | of the first generation (transaction version 0), without fencing |
| What was aborted | is shown to all readers |
| End markers | have no checksum: `AdminClient.read_from` and `check.crcs` stop there |
| Consumer groups | keeps members and committed offsets; forgets offsets sent to a transaction |
| Topics | made by `create_topic`, `--topics`, or by being asked for (then 4 partitions) |
| Administration | none: CreateTopics, DeleteTopics, DescribeConfigs, ListGroups ... are not answered |
| Quotas, ACLs, TLS, SASL | none |
| confluent-kafka, aiokafka | are served |
| kafka-python | is served by `forebay broker`; by `EmbeddedBroker` with `api_version=(2, 3)` |
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from forebay.errors import IllegalArgumentError, IllegalStateError, KafkaError

if TYPE_CHECKING:
    from forebay._runtime.times import Seconds
    from forebay.admin import AdminClient
    from forebay.testing.faults import Faults
    from forebay.testing.records import ReadRecord

#: In place of an error code: the node closes the connection instead of answering.
DISCONNECT = -195

#: Partitions of a topic that a client brought into being by asking for it; fixed in librdkafka.
AUTO_CREATED_PARTITIONS = 4

ALL_NODES = -1
NO_LEADER = -1
START_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0
READER: dict[str, Any] = {"client.id": "forebay-testing", "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
"""Options of what reads topics.  A node that was down answers at once when it is up, so nobody need be spared."""
LIBRARY_PATTERNS = (
    "confluent_kafka.libs/librdkafka*.so*",  # Linux wheels
    "confluent_kafka/.dylibs/librdkafka*.dylib",  # macOS wheels
    "confluent_kafka/cimpl*.so",  # built against the system's library: found through what it is linked to
)


class EmbeddedBrokerError(KafkaError):
    """The embedded broker cannot be started, has ended, or refuses a call; says which and why."""


class LoggedRequest(NamedTuple):
    """One request as the embedded broker received it; the time is the broker's, in microseconds."""

    node: int
    api_key: int
    timestamp_us: int


def library_path() -> Path:
    """Where the installed ``confluent-kafka`` keeps librdkafka.

    Raises :class:`EmbeddedBrokerError` when there is none, OSError when a folder cannot be read.  The package itself is
    not imported: that takes longer than starting the broker.
    """
    spec = find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise EmbeddedBrokerError(
            "the embedded broker is part of the package confluent-kafka, which is not installed: "
            "pip install 'forebay[testing]'"
        )
    site = Path(spec.origin).parent.parent
    for pattern in LIBRARY_PATTERNS:
        folder, _, name = pattern.rpartition("/")
        # Not Path.glob: from Python 3.12 on it takes a folder that cannot be opened for an empty one.
        found = fnmatch.filter(os.listdir(site / folder), name) if (site / folder).is_dir() else []
        if found:
            return site / folder / min(found)
    raise EmbeddedBrokerError(
        f"confluent-kafka in {site} holds no librdkafka (looked for {', '.join(LIBRARY_PATTERNS)})"
    )


class EmbeddedBroker:
    """A cluster of ``nodes`` mock brokers (ids 1 to ``nodes``) that lives until :meth:`close`.

    ::

        with EmbeddedBroker(topics={"orders": 6}) as broker:
            KafkaProducer({"bootstrap.servers": broker.bootstrap_servers})

    ``partitions`` is the default of :meth:`create_topic`; a topic that a client only asks for always gets 4.
    ``topics`` (name to number of partitions) are created at once.  The process ends with the one that started it,
    however that ends.  All methods may be called from any thread.  They raise :class:`EmbeddedBrokerError` for what the
    mock refuses (an unknown topic or node) and when its process has died, :class:`IllegalStateError` after
    :meth:`close`.
    """

    def __init__(self, *, nodes: int = 1, partitions: int = 4, topics: Mapping[str, int] | None = None) -> None:
        if not 1 <= nodes <= 100:
            raise IllegalArgumentError(f"nodes must be 1 to 100, not {nodes}")
        if partitions < 1:
            raise IllegalArgumentError(f"partitions must be at least 1, not {partitions}")
        self.nodes: tuple[int, ...] = tuple(range(1, nodes + 1))
        self._partitions = partitions
        # One call at a time on the pipe; also guards _process against a close by another thread.  Re-entrant, because a
        # signal handler may interrupt a call: it may close, and any other call is refused.
        self._lock = threading.RLock()
        self._busy = threading.Lock()
        self._owner = os.getpid()
        self._buffered = b""
        self._calls = 0
        self._admin: AdminClient | None = None
        self._process: subprocess.Popen[bytes] | None = _start(nodes)
        try:
            started = self._answer(self._process, "start", None, START_TIMEOUT_S)
            self.librdkafka: str = started["librdkafka"]
            self._addresses = dict(zip(self.nodes, started["bootstrap"].split(","), strict=True))
            for name, count in (topics or {}).items():
                self.create_topic(name, count)
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every node, comma-separated."""
        return ",".join(self._addresses.values())

    @property
    def pid(self) -> int | None:
        """The broker's process id; None after :meth:`close`."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the broker's process is there; False after :meth:`close`."""
        process = self._process
        return process is not None and process.poll() is None

    def address(self, node: int = 1) -> tuple[str, int]:
        """Host and port on which ``node`` listens."""
        if node not in self._addresses:
            raise IllegalArgumentError(f"node {node} is not one of {self.nodes}")
        host, _, port = self._addresses[node].rpartition(":")
        return host, int(port)

    # -- topics -----------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int | None = None, *, replication: int = 1) -> None:
        """Creates a topic that is not there yet; replicas beyond the number of nodes are left out."""
        count = self._partitions if partitions is None else partitions
        if count < 1:
            # The mock would make a topic without partitions, which no real broker has.
            raise IllegalArgumentError(f"topic {name!r} needs at least 1 partition, not {count}")
        self._call("create_topic", name, count, replication)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        self._call("delete_topic", name)

    def set_topic_error(self, name: str, code: int | type[KafkaError]) -> None:
        """Answers ``code`` for this topic in Metadata (and AddPartitionsToTxn) from now on; 0 ends that."""
        self._call("set_topic_error", name, _code(code))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Moves the partition's first offset up to ``before_offset``."""
        self._call("delete_records", topic, partition, before_offset)

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True, timeout: Seconds = CALL_TIMEOUT_S
    ) -> list[ReadRecord]:
        """What a topic holds now, by partition and then by offset.  One that is not there is made, and holds nothing.

        Args:
            partition: None for all.
            committed: without what was aborted, and without what is in an open transaction.
            timeout: seconds.

        Raises:
            TimeoutError: there is no such partition, nobody leads it, or the broker does not answer; the cause says it.
        """
        from forebay.admin import AdminClient
        from forebay.testing.records import read_topic

        with self._lock:
            if self._process is None:
                raise IllegalStateError("records: this embedded broker is closed")
            if self._admin is None:
                self._admin = AdminClient(READER | {"bootstrap.servers": self.bootstrap_servers})
            admin = self._admin
        return read_topic(admin, topic, partition, committed, timeout)

    @property
    def faults(self) -> Faults:
        """Faults that last for a ``with`` block."""
        from forebay.testing.faults import Faults

        return Faults(self)

    # -- leaders ----------------------------------------------------------------------------------------------

    def set_leader(self, topic: str, partition: int, node: int | None) -> None:
        """Moves the leadership to ``node`` (None: no leader) and raises the leader epoch.

        The mock crashes when it is asked by Produce v10 for a partition without a leader: for such tests first
        lower that API with :meth:`set_api_versions`.
        """
        self._call("set_leader", topic, partition, NO_LEADER if node is None else node)

    def push_leader_answer(self, topic: str, partition: int, node: int, epoch: int) -> None:
        """Makes the next Metadata answer, once, show this leader and epoch instead of the true ones."""
        self._call("push_leader_answer", topic, partition, node, epoch)

    def set_coordinator(self, kind: str, key: str, node: int) -> None:
        """Names the coordinator of a ``"transaction"`` or ``"group"``."""
        self._call("set_coordinator", kind, key, node)

    # -- nodes ------------------------------------------------------------------------------------------------

    def node_down(self, node: int | None = None) -> None:
        """Cuts every connection of ``node`` (None: of all) and takes no new ones; leaders stay as they are.

        On ::1 a new connection is taken and ends at once.
        """
        self._call("node_down", _node(node))

    def node_up(self, node: int | None = None) -> None:
        """Lets ``node`` (None: all) take connections again, on the same port."""
        self._call("node_up", _node(node))

    def set_rtt(self, rtt_ms: int, node: int | None = None) -> None:
        """Holds back every answer of ``node`` (None: of all) for ``rtt_ms`` milliseconds."""
        self._call("set_rtt", _node(node), rtt_ms)

    def set_rack(self, node: int, rack: str) -> None:
        """The rack that Metadata shows for ``node``."""
        self._call("set_rack", node, rack)

    def advertise(self, node: int, host: str, port: int) -> None:
        """The address that Metadata shows for ``node``; where it listens does not change."""
        self._call("advertise", node, host, port)

    def set_api_versions(self, api_key: int, lowest: int, highest: int) -> None:
        """Narrows the versions of an API that the nodes advertise and take; -1, -1 removes the API.

        The mock does not refuse a version above those it implements; answers are then not what they say.
        """
        self._call("set_api_versions", int(api_key), lowest, highest)

    # -- errors -----------------------------------------------------------------------------------------------

    def push_request_errors(self, api_key: int, *codes: int | type[KafkaError]) -> None:
        """Fails the next requests of this API on any node, one code each, in order.

        0 lets one through; :data:`DISCONNECT` closes the connection instead of answering.  Metadata answers
        carry no such code: use :meth:`set_topic_error`.
        """
        self._call("push_request_errors", int(api_key), [_code(code) for code in codes])

    def clear_request_errors(self, api_key: int) -> None:
        """Forgets what :meth:`push_request_errors` still holds for this API."""
        self._call("clear_request_errors", int(api_key))

    def push_node_errors(self, node: int, api_key: int, *errors: tuple[int | type[KafkaError], int]) -> None:
        """Fails or delays the next requests of this API on ``node``: pairs of code and delay in ms.

        For this API the node goes by its own list from now on, also when it is used up: what
        :meth:`push_request_errors` holds no longer reaches it.
        """
        self._call("push_node_errors", node, int(api_key), [(_code(code), rtt_ms) for code, rtt_ms in errors])

    def node_errors_left(self, node: int, api_key: int) -> int:
        """How many of the errors pushed for ``node`` were not used yet."""
        return int(self._call("node_errors_left", node, int(api_key)))

    def push_partition_errors(self, topic: str, partition: int, api_key: int, *codes: int | type[KafkaError]) -> None:
        """Fails this partition in the next requests of this API; needs confluent-kafka 2.16 or later."""
        self._call("push_partition_errors", topic, partition, int(api_key), [_code(code) for code in codes])

    # -- request log ------------------------------------------------------------------------------------------

    def start_request_log(self) -> None:
        """Keeps every request from now on, and forgets what was kept before."""
        self._call("start_request_log")

    def stop_request_log(self) -> None:
        """Stops keeping requests, and forgets those kept."""
        self._call("stop_request_log")

    def clear_request_log(self) -> None:
        """Forgets the requests kept so far."""
        self._call("clear_request_log")

    def requests(self, api_keys: Iterable[int] | None = None) -> list[LoggedRequest]:
        """The requests kept so far in the order of their arrival, those of ``api_keys`` if given."""
        wanted = None if api_keys is None else frozenset(api_keys)
        found = [LoggedRequest(*entry) for entry in self._call("requests")]
        return [entry for entry in found if wanted is None or entry.api_key in wanted]

    # -- life -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the broker's process; a second call does nothing, and so does one in a forked child."""
        with self._lock:
            process, self._process = self._process, None
        if process is None or os.getpid() != self._owner:
            return
        if self._admin is not None:
            self._admin.close()
        assert process.stdin is not None and process.stdout is not None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):  # the process has died already
                pipe.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._process is None else f"process {self._process.pid}"
        return f"<EmbeddedBroker {self.bootstrap_servers} ({state})>"

    # -- the admin channel ----------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._lock:
            process = self._process
            if process is None:
                raise IllegalStateError(f"{name}: this embedded broker is closed")
            if self._busy.locked():
                raise IllegalStateError(f"{name}: this thread is in the middle of another call of this broker")
            assert process.stdin is not None
            # A ``with`` lets it go wherever Ctrl-C ends the call; a flag that a ``finally`` resets could stay set.
            with self._busy:
                try:
                    self._calls = number = self._calls + 1
                    line = json.dumps({"call": name, "args": arguments, "number": number})
                    process.stdin.write(line.encode() + b"\n")
                    process.stdin.flush()
                    answer = self._answer(process, name, number, CALL_TIMEOUT_S)
                except (OSError, ValueError):  # it died, or a handler closed it during this call
                    raise _ended(process, name) from None
        return answer

    def _answer(self, process: subprocess.Popen[bytes], name: str, number: int | None, timeout_s: float) -> Any:
        assert process.stdout is not None
        while True:
            while b"\n" not in self._buffered:
                if not select.select([process.stdout], [], [], timeout_s)[0]:
                    raise EmbeddedBrokerError(f"{name}: the embedded broker did not answer within {timeout_s:g} s")
                received = os.read(process.stdout.fileno(), 1 << 16)
                if not received:
                    raise _ended(process, name)
                self._buffered += received
            line, _, self._buffered = self._buffered.partition(b"\n")
            answer = json.loads(line)
            # An earlier call's, which nobody waited for: its time was over, or Ctrl-C ended it.
            if answer.get("number") != number:
                continue
            if "error" in answer:
                raise EmbeddedBrokerError(f"{name}: {answer['error']}")
            return answer["ok"]


def _start(nodes: int) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("_broker_process.py")
    # Isolated and without site-packages: the script needs neither, and so starts in 50 ms.
    isolated = [sys.executable, "-I", "-S", str(script)]
    try:
        command = [*isolated, str(library_path()), str(nodes), str(os.getpid())]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except (OSError, MemoryError) as error:
        reason = str(error) or repr(error)
        raise EmbeddedBrokerError(f"the embedded broker's process did not start: {reason}") from error


def _ended(process: subprocess.Popen[bytes], name: str) -> EmbeddedBrokerError:
    try:
        status = f"status {process.wait(STOP_TIMEOUT_S)}"
    except subprocess.TimeoutExpired:
        status = "its pipe only"
    return EmbeddedBrokerError(f"{name}: the embedded broker's process {process.pid} has ended ({status})")


def _code(code: int | type[KafkaError]) -> int:
    if isinstance(code, int):
        return code
    if code.code is None:
        raise IllegalArgumentError(f"{code.__name__} is no answer of a broker: it has no code")
    return int(code.code)


def _node(node: int | None) -> int:
    return ALL_NODES if node is None else node
