"""One or more real Kafka nodes on free loopback ports, for tests, benches and ``make kafka``.

:class:`RealKafka` formats and starts combined brokers and controllers (KRaft), waits until every one of them
is named in a Metadata answer, and kills and removes all of it at the end; the nodes also end when this process
does, however it ends.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tools.kafka.jars import KAFKA_VERSION, archive_of, ensure_jars, java
from tools.kafka.probe import nodes_in_metadata
from tools.ports import free_ports

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

START_TIMEOUT_S = 60.0
START_ATTEMPTS = 3
STOP_TIMEOUT_S = 15.0
TOOL_TIMEOUT_S = 120.0
TOPIC_TIMEOUT_S = 30.0
PARTITIONS_AT_ONCE = 5_000
"""A controller takes at most 10,000 changes in one request."""
ANSWER_TIMEOUT_S = 10.0
POLL_S = 0.05
#: For what lives for seconds: half the time to start, half as fast once it is warm.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: An archive of classes that does not fit is no news to a test.
QUIET_SHARING = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
GUARD = Path(__file__).with_name("guard.py")


class KafkaFailed(RuntimeError):
    """A node or a tool did not do what it was started for; carries the end of its log."""


class Listener(NamedTuple):
    """A further listener of every node, beside ``PLAINTEXT``.

    ``properties`` go without their prefix ``listener.name.<name>.``; ``advertised_host`` is the cluster's if empty.
    """

    name: str
    protocol: str
    properties: Mapping[str, str]
    advertised_host: str = ""


class _Node:
    """One broker's folder, ports and process."""

    def __init__(self, node_id: int, folder: Path, ports: Sequence[int]) -> None:
        self.id = node_id
        self.folder = folder
        self.port, self.controller_port, *self.listener_ports = ports
        self.guard: subprocess.Popen[str] | None = None
        self.pid: int | None = None

    @property
    def properties(self) -> Path:
        return self.folder / "node.properties"

    @property
    def log(self) -> Path:
        return self.folder / "output.log"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def log_end(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        lines = [line for line in text.splitlines() if line.strip()]
        wrong = [line for line in lines if "ERROR" in line or "Exception" in line]
        return " | ".join((wrong or lines)[-5:]) or "it printed nothing"


class RealKafka:
    """A cluster of ``nodes`` brokers (ids from 0) of one Kafka version; started by ``with`` or :meth:`start`.

    ``properties`` go over the defaults of every node, ``jvm_options`` behind ours.  ``plugins`` is a folder of classes
    for the class path.  ``listeners`` are further ones, at ``address_of``.  ``quick_start`` leaves out the compiler
    that pays only after minutes under load, and takes classes out of an archive: for tests, not for benches.
    ``advertised_host`` is what metadata says; the nodes listen on 127.0.0.1 whatever it is.  Raises
    :class:`tools.kafka.jars.JarsUnavailable` when there is nothing to start, :class:`KafkaFailed` when it does not come
    up within ``start_timeout_s``.  A slow machine gets ``patience`` times each of these limits.
    """

    def __init__(
        self,
        version: str = KAFKA_VERSION,
        *,
        nodes: int = 1,
        properties: Mapping[str, str] | None = None,
        heap_mb: int = 256,
        quick_start: bool = False,
        advertised_host: str = "127.0.0.1",
        start_timeout_s: float = START_TIMEOUT_S,
        patience: float = 1.0,
        listeners: Sequence[Listener] = (),
        jvm_options: Sequence[str] = (),
        plugins: Path | None = None,
    ) -> None:
        self.version = version
        self._count = nodes
        self._properties = dict(properties or {})
        self._advertised_host = advertised_host
        self._start_timeout_s = start_timeout_s * patience
        self._patience = patience
        self._listeners = tuple(listeners)
        self._java = java()
        self._jars = ensure_jars(version)
        self._classes = f"{self._jars}/*" if plugins is None else f"{self._jars}/*{os.pathsep}{plugins}"
        archive = archive_of(version)
        sharing = (f"-XX:SharedArchiveFile={archive}", *QUIET_SHARING) if archive.exists() else ()
        self._quick = (*QUICK, *sharing)
        self._jvm_options = [f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC"]
        self._jvm_options += [*(self._quick if quick_start else ()), *jvm_options]
        self._folder: Path | None = None
        self._nodes: list[_Node] = []

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every node, comma-separated."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self._nodes)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of all nodes, running or not."""
        return tuple(node.id for node in self._nodes)

    def address(self, node: int = 0) -> tuple[str, int]:
        """Host and port of a node, running or not."""
        return "127.0.0.1", self._nodes[node].port

    def address_of(self, listener: str, node: int = 0) -> str:
        """``host:port`` of a further listener."""
        index = [entry.name for entry in self._listeners].index(listener)
        host = self._listeners[index].advertised_host or self._advertised_host
        return f"{host}:{self._nodes[node].listener_ports[index]}"

    def pid(self, node: int = 0) -> int | None:
        """The process id of a node's JVM; None when it is not running."""
        return self._nodes[node].pid

    def data_folder(self, node: int = 0) -> Path:
        """Where a node keeps its partitions."""
        return self._nodes[node].data

    # -- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Formats, starts and waits; tries again with other ports if another process took one meanwhile."""
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                self._start_once()
                return
            except KafkaFailed as error:
                self.stop()
                if attempt == START_ATTEMPTS or "Address already in use" not in str(error):
                    raise
            except BaseException:
                self.stop()
                raise

    def _start_once(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="forebay-kafka-"))
        each = 2 + len(self._listeners)
        ports = free_ports(each * self._count)
        self._nodes = [_Node(n, self._folder / str(n), ports[each * n : each * (n + 1)]) for n in range(self._count)]
        cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        # "-..." would be taken for an option by the tool.
        cluster_id = "f" + cluster_id[1:]
        formatting = []
        for node in self._nodes:
            node.data.mkdir(parents=True)
            node.properties.write_text("".join(f"{k}={v}\n" for k, v in self._settings(node).items()))
            arguments = ["format", "-t", cluster_id, "-c", str(node.properties)]
            command = self._command("kafka.tools.StorageTool", arguments, self._quick)
            with open(node.log, "wb") as log:
                formatting.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        for node, process in zip(self._nodes, formatting, strict=True):
            if process.wait(self._start_timeout_s):
                raise KafkaFailed(f"Kafka {self.version} node {node.id} could not be formatted: {node.log_end()}")
        for node in self._nodes:
            self.start_node(node.id)
        self.wait_until_ready()

    def start_node(self, node: int) -> None:
        """Starts a node that is not running, with the data it has; does not wait for it."""
        found = self._nodes[node]
        command = self._command("kafka.Kafka", [str(found.properties)], self._jvm_options)
        # Its own session: Ctrl-C ends the tests, which then end the nodes.
        found.guard = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(GUARD),
                str(os.getpid()),
                str(found.folder.parent),
                str(found.log),
                *command,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert found.guard.stdout is not None
        found.pid = int(found.guard.stdout.readline())

    def wait_until_ready(self) -> None:
        """Returns when every running node shows all running nodes in its Metadata answer."""
        deadline = time.monotonic() + self._start_timeout_s
        running = [node for node in self._nodes if node.pid is not None]
        wanted = {node.id for node in running}
        for node in running:
            while not wanted <= nodes_in_metadata("127.0.0.1", node.port):
                if node.guard is not None and node.guard.poll() is not None:
                    raise KafkaFailed(f"Kafka {self.version} node {node.id} ended while starting: {node.log_end()}")
                if time.monotonic() > deadline:
                    raise KafkaFailed(
                        f"Kafka {self.version} node {node.id} did not answer within "
                        f"{self._start_timeout_s:g} s: {node.log_end()}"
                    )
                time.sleep(POLL_S)

    def kill_node(self, node: int) -> None:
        """Ends a node at once (SIGKILL); its data stay."""
        found = self._nodes[node]
        if found.guard is None:
            return
        assert found.guard.stdin is not None and found.guard.stdout is not None
        found.guard.stdin.close()
        found.guard.wait(STOP_TIMEOUT_S * self._patience)
        found.guard.stdout.close()
        found.guard = found.pid = None

    def stop_node(self, node: int) -> None:
        """Ends a node in good order (SIGTERM: it hands its partitions over first), by force after some seconds."""
        found = self._nodes[node]
        if found.guard is None:
            return
        self._signal(node, signal.SIGTERM)
        try:
            # It ends with the node.
            found.guard.wait(STOP_TIMEOUT_S * self._patience)
        except subprocess.TimeoutExpired:
            pass  # kill_node is the force
        self.kill_node(node)

    def check_running(self) -> None:
        """Raises KafkaFailed with the end of the log if a node that was started has ended by itself."""
        for node in self._nodes:
            if node.guard is not None and (status := node.guard.poll()) is not None:
                raise KafkaFailed(f"node {node.id} ended by itself with status {status}: {node.log_end()}")

    def heal(self) -> None:
        """Lets every frozen node go on and starts every one that was ended; does not wait for them."""
        self.check_running()
        for node in self._nodes:
            if node.pid is None:
                self.start_node(node.id)
            else:
                self.thaw_node(node.id)

    def freeze_node(self, node: int) -> None:
        """Stops a node in the middle of its work (SIGSTOP): connections stay, answers do not come."""
        self._signal(node, signal.SIGSTOP)

    def thaw_node(self, node: int) -> None:
        """Lets a frozen node go on."""
        self._signal(node, signal.SIGCONT)

    def _signal(self, node: int, number: signal.Signals) -> None:
        pid = self._nodes[node].pid
        if pid is None:
            raise KafkaFailed(f"node {node} is not running")
        os.kill(pid, number)

    def stop(self) -> None:
        """Kills every node and removes their folders."""
        for node in self._nodes:
            self.kill_node(node.id)
        self._nodes = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- tools ------------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic and returns when every partition's leader answers for it.

        Metadata names a leader before that broker leads, so a record sent at once may get NOT_LEADER_OR_FOLLOWER.  A
        topic that is there already is taken: librdkafka repeats a request whose answer is late.
        """
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewPartitions, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        first = min(partitions, PARTITIONS_AT_ONCE)
        topic = NewTopic(name, num_partitions=first, replication_factor=replication, config=dict(config or {}))
        steps: list[Callable[[], Any]] = [partial(admin.create_topics, [topic])]
        for count in range(first, partitions, PARTITIONS_AT_ONCE):
            more = NewPartitions(name, min(count + PARTITIONS_AT_ONCE, partitions))
            steps.append(partial(admin.create_partitions, [more]))
        for step in steps:
            try:
                step()[name].result(TOPIC_TIMEOUT_S * self._patience)
            except KafkaException as error:
                # Also a number of partitions that it has already: the answer to the request before was late.
                if error.args[0].code() not in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS):
                    raise
        deadline = time.monotonic() + TOPIC_TIMEOUT_S * self._patience
        while missing := _without_leader(admin, name, partitions, ANSWER_TIMEOUT_S * self._patience):
            if time.monotonic() > deadline:
                raise KafkaFailed(f"topic {name!r}: not all of {partitions} partitions are led in time: {missing}")
            time.sleep(POLL_S)

    def run_tool(self, name: str, *arguments: str) -> str:
        """Runs one of Kafka's own tools by its class name; returns what it prints, raises KafkaFailed else."""
        timeout_s = TOOL_TIMEOUT_S * self._patience
        command = self._command(name, arguments, self._quick)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise KafkaFailed(f"{name}: no end after {timeout_s:g} s") from None
        if done.returncode:
            raise KafkaFailed(f"{name} ended with status {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
        return done.stdout

    def tool_command(self, name: str, *arguments: str) -> list[str]:
        """The command line that runs a class of this version's jars."""
        return self._command(name, arguments)

    def _command(self, name: str, arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
        logs = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [self._java, *options, logs, "-cp", self._classes, name, *arguments]

    # -- settings ---------------------------------------------------------------------------------------------

    def _settings(self, node: _Node) -> dict[str, str]:
        copies = str(min(3, self._count))
        voters = ",".join(f"{other.id}@127.0.0.1:{other.controller_port}" for other in self._nodes)
        own = list(zip(self._listeners, node.listener_ports, strict=True))
        protocols = "".join(f",{entry.name}:{entry.protocol}" for entry in self._listeners)
        return {
            "process.roles": "broker,controller",
            "node.id": str(node.id),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}"
            + "".join(f",{entry.name}://127.0.0.1:{port}" for entry, port in own),
            "advertised.listeners": f"PLAINTEXT://{self._advertised_host}:{node.port}"
            + "".join(
                f",{entry.name}://{entry.advertised_host or self._advertised_host}:{port}" for entry, port in own
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}",
            **_listener_properties(self._listeners),
            "log.dirs": str(node.data),
            "num.partitions": "6",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "5",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "default.replication.factor": copies,
            "min.insync.replicas": "2" if self._count >= 3 else "1",
            "transaction.state.log.min.isr": "2" if self._count >= 3 else "1",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            # Bounded, so that a bench does not fill the disk.
            "log.segment.bytes": str(256 << 20),
            "log.retention.bytes": str(1 << 30),
            # By age nothing goes: tests write records of long ago, and read them back.
            "log.retention.ms": "-1",
            "log.retention.check.interval.ms": "10000",
            "log.cleaner.dedupe.buffer.size": str(16 << 20),
            **self._properties,
        }


def _listener_properties(listeners: Sequence[Listener]) -> dict[str, str]:
    return {
        f"listener.name.{entry.name.lower()}.{key}": value
        for entry in listeners
        for key, value in entry.properties.items()
    }


def _without_leader(admin: AdminClient, name: str, partitions: int, timeout_s: float) -> str:
    """Why the topic is not ready: the first partition that no broker leads; empty when each one has its leader."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # exported, but not by __all__

    found = admin.list_topics(name, timeout=timeout_s).topics[name].partitions
    if len(found) < partitions or any(partition.leader < 0 for partition in found.values()):
        return f"{len(found)} of {partitions} partitions in the metadata, not all with a leader"
    asked = {TopicPartition(name, index): OffsetSpec.latest() for index in range(partitions)}  # type: ignore[no-untyped-call]
    for partition, answer in admin.list_offsets(asked, request_timeout=timeout_s).items():
        try:
            answer.result()
        except KafkaException as error:
            return f"partition {partition.partition}: {error}"
    return ""
